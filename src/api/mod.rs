//! The five kinds of Argo Rollouts and our own `GitSource`, as they are on the wire.
//!
//! Plain data: no behaviour, no defaults that the API server does not fill in, no opinion about what makes sense. What it
//! means is `model`'s.

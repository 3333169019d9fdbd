//! Tidegate owns the whole way from a git commit to a fully rolled-out, verified version in a Kubernetes cluster, and
//! tells the commit so.
//!
//! # One idea
//!
//! **Deciding is a pure function of a snapshot; doing is separate.** A decision sees a view and answers with the world it
//! wants, what to remember, when to look again and why. Reading, writing, clocks and sockets live elsewhere, so the same
//! functions decide in a cluster, in the embedded cluster, in a test under virtual time, and in a forecast.
//!
//! ```text
//!             look (what must be read?)            decide                  diff
//! trigger ──▶ observe ──────────────────▶ View ──▶ Verdict ──────────────▶ [Action] ──▶ act ──▶ record ──▶ announce
//!             (reads only)                 │       target, memory′, wake, why           (writes only)
//!                                          └─ serialisable: any decision can be replayed from one file
//! ```
//!
//! # The modules
//!
//! `kubernetes ← api ← model ← {rollout, analysis, experiment, sync, manifest, route, metric, forge} ← engine ← {io, embedded} ←
//! {sim, cmd}`: an arrow points at what is used. What is in the tree today:
//!
//! | module | what it is |
//! |---|---|
//! | [`kubernetes`] | what every API server knows: kinds, schemas, defaults, validation, patches, apply, selectors |
//! | [`api`] | the custom resources as on the wire |
//! | [`model`] | what they mean: exact types, problems, hashes, health |
//! | [`rollout`] | deciding about a Rollout: sizes, steps, history |
//! | [`route`] | telling routers where traffic goes; one leaf per router |
//! | [`analysis`] | deciding about an AnalysisRun: what is due, what measurements come to; the language of conditions |
//! | [`experiment`] | deciding about an Experiment: versions beside each other, and what their analyses come to |
//! | [`metric`] | what providers are asked, and what their answers mean; one leaf per provider |
//! | [`sync`] | deciding about a GitSource: the objects of a commit, what is applied and pruned, what the commit is told |
//! | [`manifest`] | bytes of files to objects that know their places |
//! | [`kustomize`] | folders that are kustomizations to the objects that they render |
//! | [`engine`] | the one loop of Rollouts, AnalysisRuns, Experiments and Services, without its I/O: driver, pass, queue, fence, cache |
//! | [`forge`] | telling commits how they went, webhooks; one leaf per git host |
//! | [`install`] | what to install in a cluster: accounts, rights, the Deployment |
//! | [`lint`] | manifests to every problem they have |
//! | [`migrate`] | objects of other tools as ours, and what has no equivalent |
//! | [`plan`] | what a commit will do: changes, hash, what a forecast holds, outputs |
//! | [`tree`] | a Rollout and all that belongs to it, as people see it |
//! | [`workflow`] | a plan as a step of a workflow: event, annotations, outputs, when it fails |
//! | [`embedded`] | a Kubernetes API server in memory, and the world around it |
//! | [`embedded::http`] | its front: a `tower::Service`, and a listener for kubectl |
//! | [`listen`] | accepting connections, for every listener |
//! | [`io`] | watches, writes and the daemon on a cluster; repositories, hosts and the door for webhooks |
//! | [`sim`] | embedded cluster and engine in one process and virtual time |
//! | [`cmd`] | the command line, one file per command |
//!
//! # The rules
//!
//! 1. Only `io/`, `embedded/http`, `listen`, `sim/`, `cmd/` and `main.rs` touch a runtime, a client, files, sockets, processes, the
//!    environment, the clock or chance. `tests/it/modules.rs` says so.
//! 2. The core has no errors: problems and reasons are values, made into text in one place.
//! 3. Bad input gets one clear message and changes nothing.
//! 4. The embedded cluster must not drift into fiction: `tests/conformance` plays the same requests to it and to a real
//!    kube-apiserver, and their answers must be equal.
//!
//! # Where the design was changed
//!
//! * The design has one `embedded/store`; here decoding, schemas, patches, apply and the rules of the built-in kinds are
//!   a module below `api`, [`kubernetes`], because a lint, a pod-template hash and a diff need the same knowledge as a
//!   server, and each part has its own answers recorded from the real one.
//! * The store does not step by itself: [`embedded::controllers::World`] is a value beside it, with `step`, `settle` and
//!   `advance` over a `&mut Store`, because a store without a world (a dry run, a recorded view, a conformance test) and
//!   several worlds over one store (a restart of every controller) are both wanted.
//! * Objects are not `serde_json::Value`s but [`kubernetes::value::Value`]s: shared trees of two-word nodes. A patch copies
//!   its path, the history shares the rest, and "did this subtree change" is a comparison of addresses. That is what makes
//!   a stored ReplicaSet a few kilobytes and a patch a few microseconds.
//! * The design gives git to git2 as a whole; here [`io::git`] speaks the protocol itself and leaves packs, objects and hashes
//!   to git2. Its transports take authorities and time-outs for the whole process and by unsafe calls, read the user's
//!   `known_hosts` and bring a second TLS library; with our own, every source has its own trust and every byte a budget.

pub mod cmd;
pub mod io;
pub mod sim;

pub use tidegate_core::{
    analysis, api, engine, experiment, forge, install, kustomize, lint, metric, migrate, model, plan, rollout, route,
    sync, tree, workflow,
};
pub use tidegate_embedded::{self as embedded, listen};
pub use tidegate_kubernetes::{self as kubernetes, manifest, value};

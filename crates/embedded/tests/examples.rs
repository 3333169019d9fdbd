//! The examples run to their ends, with what they assert on the way.

#[path = "../examples/front.rs"]
mod front;
#[path = "../examples/store.rs"]
mod store;
#[path = "../examples/world.rs"]
mod world;

#[test]
fn the_store_alone_answers_requests() {
    store::main();
}

#[test]
fn a_world_plays_controllers_and_kubelets() {
    world::main();
}

#[test]
fn a_controller_of_kube_runs_on_the_front() {
    front::main();
}

//! The store alone: requests in, answers out. No runtime, no clock, and nothing happens by itself.
//!
//! `cargo run -p tidegate-embedded --example store`

use jiff::Timestamp;
use tidegate_embedded::store::{
    Config, Store,
    request::{Options, Request, Verb},
};
use tidegate_kubernetes::value;

pub(crate) fn main() {
    let mut store = Store::new(Config::new(Timestamp::UNIX_EPOCH, /* seed */ 1));
    let config_map = || Request {
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        ..Request::default()
    };
    let create = Request {
        verb: Verb::Create,
        body: Some(value!({"metadata": {"name": "a"}, "data": {"k": "v"}})),
        ..config_map()
    };

    // A dry run answers as if, and changes nothing.
    let options = Options { dry_run: true, ..Options::default() };
    let answer = store.apply(Request { options, ..create.clone() });
    assert_eq!(answer.map(|response| response.code), Ok(201));
    assert!(store.get("", "configmaps", "default", "a").is_none());

    let answer = store.apply(create.clone());
    assert_eq!(answer.map(|response| response.code), Ok(201));
    let stored = store.get("", "configmaps", "default", "a");
    let data = stored.and_then(|object| object.value.str_at(&["data", "k"]));
    assert_eq!(data, Some("v"));

    // Refusals are those of a real server, word for word.
    let refusal = store.apply(create).expect_err("there is one already");
    assert_eq!((refusal.code, refusal.message.as_str()), (409, "configmaps \"a\" already exists"));
    println!("{}", refusal.message);
}

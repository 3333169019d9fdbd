//! What is merged is compared with what was reviewed: the daemon finds the plan hash that the plan had.

use tidegate::{
    manifest,
    plan::Side,
    sim::plan::{Reading, Sides, make},
};

use crate::{cases::rules, truth::Bed};

fn map(name: &str, text: &str) -> (String, String) {
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: '{text}'}}\n");
    (format!("deploy/{name}.yaml"), text)
}

fn hash(old: &[(String, String)], new: &[(String, String)]) -> String {
    let side = |files: &[(String, String)]| {
        let files = files.iter().map(|(path, text)| manifest::read(path.clone(), text.as_bytes())).collect();
        Reading::of(Side::default(), files)
    };
    // The plan of a pull request does not know the namespace of the GitSource.
    let mut rules = rules();
    rules.scope.namespace = "default".into();
    make(&Sides { old: side(old), new: side(new) }, &rules).hash
}

#[tokio::test(start_paused = true)]
async fn a_commit_says_whether_it_is_what_was_reviewed() {
    let mut bed = Bed::new(&[]);
    let first = vec![map("a", "x")];
    let plain = bed.commit(&first, "first").await;
    assert_eq!(bed.succeeds(&plain).await, "rolled out: 1 object", "who names no plan is told nothing of one");
    let second = vec![map("a", "y"), map("b", "x")];
    let reviewed = hash(&first, &second);
    let commit = bed.commit(&second, &format!("second\n\nTidegate-Plan: {reviewed}\n")).await;
    let words = bed.succeeds(&commit).await;
    assert_eq!(words, format!("rolled out: 2 objects; as in the reviewed plan {}", &reviewed[..12]));
    // Somebody slips something in after the review.
    let (third, merged) = (vec![map("a", "z"), map("b", "x")], vec![map("a", "z"), map("b", "slipped in")]);
    let (reviewed, brings) = (hash(&second, &third), hash(&second, &merged));
    let commit = bed.commit(&merged, &format!("third\n\nTidegate-Plan: {reviewed}\n")).await;
    let words = bed.succeeds(&commit).await;
    let (reviewed, brings) = (&reviewed[..12], &brings[..12]);
    assert_eq!(words, format!("rolled out: 2 objects; not the reviewed plan {reviewed}: this is plan {brings}"));
    bed.end().await;
}

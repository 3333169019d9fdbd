use proptest::prelude::*;

use super::*;
use crate::manifest;

proptest! {
    #[test]
    fn no_manifest_makes_it_panic(text in "(apiVersion: argoproj.io/v1alpha1\nkind: (Rollout|Experiment|AnalysisTemplate|AnalysisRun)\n(metadata: \\{name: [a-c-]{0,3}\\}\n)?spec:\n(  (replicas|strategy|selector|template|metrics|args|templates|analyses|duration): [-\\[\\]{}a-c0-9:,\"' ]{0,20}\n){0,4}---\n){1,3}") {
        let report = lint(&[manifest::read("x.yaml", text.as_bytes())]);
        output::text(&report, true);
        output::sarif(&report, "1");
        output::github(&report);
        output::json(&report);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_once_however_many_sets_it_is_in() {
    let rollout =
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {replica: 1, stratgy: {}}\n";
    let files = [manifest::read("base.yaml", rollout.as_bytes()), manifest::read("patch.yaml", rollout.as_bytes())];
    let once = lint_sets(&files[..1], &[FileSet { files: vec![0], ..FileSet::default() }]);
    let set = |patches: Vec<usize>| FileSet { files: vec![0], patches, ..FileSet::default() };
    let sets = lint_sets(&files, &[set(Vec::new()), set(vec![1]), set(vec![1])]);
    let named = |report: &Report, name: &str| -> Vec<String> {
        let findings = report.findings.iter().filter(|finding| finding.at.source.name == name);
        findings.map(|finding| format!("{}: {}", finding.rule, finding.what)).collect()
    };
    assert!(once.findings.len() > 2);
    assert_eq!(named(&sets, "base.yaml"), named(&once, "base.yaml"));
    // A patch is judged by its fields alone.
    let fields =
        ["unknown-field: there is no field replica in spec", "unknown-field: there is no field stratgy in spec"];
    assert_eq!(named(&sets, "patch.yaml"), fields);
    assert_eq!((sets.files, sets.objects), (2, 2));
}

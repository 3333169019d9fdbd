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

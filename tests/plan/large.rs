//! Plans that would take longer than anybody waits, and what workloads elsewhere change.

use std::time::{Duration, Instant};

use tidegate::{
    manifest,
    plan::{Plan, Side, forecast::Outcome, output},
    sim::plan::{Reading, Rules, Sides, make},
};

use crate::cases::rules;

fn rollout(name: &str, replicas: i64, image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  strategy: {{canary: {{steps: [{{setWeight: 50}}]}}}}\n---\n"
    )
}

fn plan(old: &str, new: &str, rules: &Rules) -> Plan {
    let side = |name: &str, text: &str| {
        let files = vec![manifest::read("deploy/web.yaml", text.as_bytes())];
        Reading::of(Side { name: name.into(), commit: String::new() }, files)
    };
    make(&Sides { old: side("main", old), new: side("HEAD", new) }, rules)
}

#[test]
fn a_rollout_of_thousands_of_pods_is_forecast_to_its_end() {
    let plan = plan(&rollout("web", 1500, "web:1"), &rollout("web", 1500, "web:2"), &rules());
    let forecast = plan.rollouts[0].forecast.as_ref().unwrap();
    assert_eq!((forecast.outcome, forecast.message.as_str()), (Outcome::Healthy, ""));
    assert_eq!(forecast.lowest.1, 1500);
}

#[test]
fn sr24_what_is_too_large_to_forecast_says_so_at_once() {
    for replicas in [5001, 2_000_000_000] {
        let began = Instant::now();
        let plan = plan(&rollout("web", 1, "web:1"), &rollout("web", replicas, "web:2"), &rules());
        let [rollout] = plan.rollouts.as_slice() else { panic!("{:?}", plan.rollouts) };
        let said = format!("it is too large to forecast: {replicas} pods, and forecasts are made of up to 5000");
        assert_eq!((rollout.reason.as_str(), &rollout.forecast), (said.as_str(), &None));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[test]
fn sr24_a_plan_ends_at_its_deadline_and_says_what_it_did_not_forecast() {
    let all = |image: &str| (0..20).map(|number| rollout(&format!("web{number}"), 1000, image)).collect::<String>();
    let began = Instant::now();
    let rules = Rules { deadline: Some(began + Duration::from_secs(1)), ..rules() };
    let plan = plan(&all("web:1"), &all("web:2"), &rules);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!((plan.rollouts.len(), plan.objects.len()), (20, 20));
    for rollout in plan.rollouts.iter().filter(|rollout| rollout.forecast.is_none()) {
        assert!(
            rollout.reason.ends_with("how it would go is not known: the time for forecasts is over"),
            "{}",
            rollout.reason
        );
    }
    assert!(plan.rollouts.iter().filter(|rollout| rollout.forecast.is_none()).count() > 10);
}

/// What matters most is read first, and the rest is counted.
#[test]
fn a_plan_of_five_thousand_manifests_stays_readable() {
    let map = |at: usize, text: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{at}}}\ndata: {{k: '{text}'}}\n---\n")
    };
    let maps = |text: &str| (0..4998).map(|at| map(at, text)).collect::<String>();
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: zz-data}\nspec: {accessModes: [ReadWriteOnce], \
                 resources: {requests: {storage: 1Gi}}}\n---\n";
    let old = maps("a") + claim + &rollout("zz-web", 2, "web:1");
    let new = maps("b") + &rollout("zz-web", 2, "web:2");
    let plan = plan(&old, &new, &rules());
    assert_eq!(plan.objects.len(), 5000);
    let text = anstream::adapter::strip_str(&output::text(&plan)).to_string();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
    let order = [
        "Rollout shop/zz-web: new rollout",
        "PersistentVolumeClaim shop/zz-data: it is deleted",
        "What changes",
        "delete PersistentVolumeClaim shop/zz-data",
        "change Rollout shop/zz-web",
        "change ConfigMap shop/map-0 ",
        "change 4600 more of kind ConfigMap",
    ];
    assert!(order.is_sorted_by_key(|part| at(part)), "{text}");
    assert!(text.lines().count() < 1500, "{} lines", text.lines().count());
    let markdown = output::markdown(&plan, output::LIMIT, &|_| None);
    assert!(
        markdown.len() <= output::LIMIT && markdown.contains("zz-web") && markdown.contains("zz-data"),
        "{}",
        markdown.len()
    );
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
}

#[test]
fn deadlines_and_budgets_are_judged_by_the_pods_of_the_workload() {
    let all = |image: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  progressDeadlineSeconds: 10\n  \
             workloadRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  strategy: {{canary: {{steps: [{{setWeight: 50}}]}}}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 0\n  selector: {{matchLabels: {{app: web}}}}\n  \
             template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n      - name: app\n        image: {image}\n        \
             readinessProbe: {{httpGet: {{path: /, port: 80}}, initialDelaySeconds: 30}}\n---\n\
             apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: web}}\nspec: {{minAvailable: 2, selector: {{matchLabels: {{app: web}}}}}}\n"
        )
    };
    let plan = plan(&all("web:1"), &all("web:2"), &rules());
    let found: Vec<&str> = plan.warnings.iter().map(|warning| warning.rule.as_str()).collect();
    assert!(found.contains(&"deadline-too-short") && found.contains(&"budget-blocks-restart"), "{found:?}");
}

//! The page as a whole, and what is left of it when objects go.

use super::*;
use crate::value;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(place: &Place) -> Key {
    Key { machine: Machine::Rollout, place: place.clone() }
}

fn rollout() -> Value {
    value!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"replicas": 4, "strategy": {"canary": {"trafficRouting": {"istio": {}, "nginx": {}}}}},
        "status": {
            "replicas": 5, "availableReplicas": 3, "updatedReplicas": 1,
            "conditions": [{"type": "Progressing", "reason": "RolloutPaused"}],
        },
    })
}

fn run() -> Value {
    value!({
        "metadata": {"namespace": "shop", "name": "web-1"},
        "spec": {"metrics": [{"name": "rate", "provider": {"web": {}}}], "dryRun": [{"metricName": ".*"}]},
        "status": {"phase": "Running", "metricResults": [{"name": "rate", "phase": "Failed"}]},
    })
}

fn objects<'a>(rollout: &'a Value, run: &'a Value) -> Objects<'a> {
    Objects { rollouts: vec![rollout], runs: vec![run], experiments: vec![run], templates: vec![run] }
}

fn gauges() -> Gauges {
    Gauges {
        queued: 2,
        running: 1,
        fenced: 3,
        objects: vec![("rollouts".into(), 1)],
        version: "1.2.3",
        architecture: "x",
    }
}

/// The lines of the page that begin with this.
fn lines(page: &str, beginning: &str) -> Vec<String> {
    page.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
}

#[test]
fn a_page_has_argos_names_labels_and_help() {
    let web = Place::new("shop", "web");
    let mut metrics = Metrics::default();
    metrics.passed(&key(&web), 0.2, Ending::Settled);
    metrics.passed(&key(&web), 2.0, Ending::Failed);
    metrics.passed(&Key { machine: Machine::Service, place: web.clone() }, 9.0, Ending::Settled);
    metrics.passed(&Key { machine: Machine::Analysis, place: Place::new("shop", "web-1") }, 0.2, Ending::Settled);
    metrics.fenced(Machine::Rollout);
    metrics.refused(Machine::Sync);
    metrics.announced(web, "Normal", "RolloutPaused");
    metrics.asked(Request::of("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web/status", 200));
    let page = metrics.page(&objects(&rollout(), &run()), &gauges(), at(0));
    let of = r#"namespace="shop",name="web""#;
    for expected in [
        "# HELP rollout_info Information about rollout.\n# TYPE rollout_info gauge".to_owned(),
        format!(r#"rollout_info{{{of},strategy="canary",traffic_router="Nginx",phase="Paused"}} 1"#),
        r#"analysis_run_info{namespace="shop",name="web-1",phase="Running"} 1"#.to_owned(),
        r#"analysis_run_phase{namespace="shop",name="web-1",phase="Pending"} 0"#.to_owned(),
        r#"analysis_run_metric_type{namespace="shop",name="web-1",metric="rate",type="Web"} 1"#.to_owned(),
        r#"analysis_run_metric_phase{namespace="shop",name="web-1",metric="rate",type="Web",dry_run="true",phase="Failed"} 1"#
            .to_owned(),
        r#"analysis_template_metric_info{namespace="shop",name="web-1",type="Web",metric="rate"} 1"#.to_owned(),
        r#"experiment_info{namespace="shop",name="web-1",phase="Running"} 1"#.to_owned(),
        r#"experiment_phase{namespace="shop",name="web-1",phase="Running"} 1"#.to_owned(),
        r#"experiment_phase{namespace="shop",name="web-1",phase="Inconclusive"} 0"#.to_owned(),
        r#"analysis_run_reconcile_count{namespace="shop",name="web-1"} 1"#.to_owned(),
        format!("rollout_info_replicas_available{{{of}}} 3"),
        format!("rollout_info_replicas_unavailable{{{of}}} 2"),
        format!("rollout_info_replicas_desired{{{of}}} 4"),
        format!("rollout_info_replicas_updated{{{of}}} 1"),
        format!(r#"rollout_phase{{{of},strategy="canary",phase="Paused"}} 1"#),
        format!(r#"rollout_phase{{{of},strategy="canary",phase="Abort"}} 0"#),
        "# HELP rollout_reconcile Rollout reconciliation performance.\n# TYPE rollout_reconcile histogram".to_owned(),
        format!(r#"rollout_reconcile_bucket{{{of},le="0.15"}} 0"#),
        format!(r#"rollout_reconcile_bucket{{{of},le="0.25"}} 1"#),
        format!(r#"rollout_reconcile_bucket{{{of},le="+Inf"}} 2"#),
        format!("rollout_reconcile_sum{{{of}}} 2.2"),
        "# TYPE rollout_reconcile_error counter".to_owned(),
        format!("rollout_reconcile_error{{{of}}} 1"),
        format!(r#"rollout_events_total{{{of},type="Normal",reason="RolloutPaused"}} 1"#),
        r#"controller_clientset_k8s_request_total{kind="rollouts",namespace="shop",name="web",verb="Patch",status_code="200"} 1"#.to_owned(),
        r#"argo_rollouts_controller_info{version="v1.2.3"} 1"#.to_owned(),
        r#"build_info{version="v1.2.3",goversion="",goarch="x",commit=""} 1"#.to_owned(),
        r#"workqueue_depth{name="Rollouts"} 2"#.to_owned(),
        r#"tidegate_passes_total{machine="rollout",outcome="failed"} 1"#.to_owned(),
        r#"tidegate_writes_total{kind="rollouts",verb="patch"} 1"#.to_owned(),
        r#"tidegate_cache_objects{kind="rollouts"} 1"#.to_owned(),
        "tidegate_fenced 3".to_owned(),
        r#"tidegate_refused_total{machine="rollout"} 0"#.to_owned(),
        r#"tidegate_refused_total{machine="sync"} 1"#.to_owned(),
        "tidegate_queue_depth 2".to_owned(),
        r#"tidegate_passes_total{machine="service",outcome="settled"} 1"#.to_owned(),
        r#"tidegate_fence_waits_total{machine="rollout"} 1"#.to_owned(),
    ] {
        assert!(page.contains(&expected), "{expected}\nis not in\n{page}");
    }
}

#[test]
fn requests_are_told_apart_by_kind_and_verb() {
    #[track_caller]
    fn check(method: &str, path: &str, expected: (&str, &str, &str, &str)) {
        let Request { kind, namespace, name, verb, .. } = Request::of(method, path, 200);
        assert_eq!((kind.as_str(), namespace.as_str(), name.as_str(), verb), expected, "{path}");
    }
    check("GET", "/api/v1/services?limit=500", ("services", "", "N/A", "List"));
    check("GET", "/apis/apps/v1/namespaces/a/replicasets?watch=true&x=y", ("replicasets", "a", "N/A", "Watch"));
    check("GET", "/api/v1/namespaces/a/services/b", ("services", "a", "N/A", "Get"));
    check("POST", "/api/v1/namespaces/a/events", ("events", "a", "N/A", "Create"));
    check("PATCH", "/apis/apps/v1/namespaces/a/replicasets/b", ("replicasets", "a", "N/A", "Patch"));
    check("POST", "/api/v1/namespaces/a/pods/b/eviction", ("pods", "a", "N/A", "Create"));
    check("DELETE", "/apis/x/v1/namespaces/a/things/b", ("things", "a", "N/A", "Delete"));
    check("GET", "/version", ("Unknown", "Unknown", "Unknown", "Get"));
}

#[test]
fn nothing_is_left_of_an_object_that_is_gone() {
    let mut metrics = Metrics::default();
    let places = ["web", "api"].map(|name| Place::new("shop", name));
    for place in &places {
        metrics.passed(&key(place), 0.1, Ending::Failed);
        metrics.announced(place.clone(), "Normal", "x");
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/{}", place.name);
        metrics.asked(Request::of("PATCH", &path, 200));
    }
    metrics.forget("rollouts", &places[0], at(0));
    metrics.forget("rollouts", &places[1], at(0));
    metrics.passed(&key(&places[1]), 0.1, Ending::Settled);
    let page = metrics.page(&Objects::default(), &gauges(), at(64));
    assert!(page.contains("name=\"web\""), "a last reading sees it");
    let page = metrics.page(&Objects::default(), &gauges(), at(65));
    assert_eq!(
        lines(&page, "rollout_reconcile_error{"),
        ["rollout_reconcile_error{namespace=\"shop\",name=\"api\"} 1"]
    );
    assert!(!page.contains("name=\"web\""), "{page}");
}

#[test]
fn attempts_are_measured_by_how_they_ended() {
    let read = |duration: Value| crate::api::read::<RolloutStatus>(&value!({"duration": duration})).object;
    let mut metrics = Metrics::default();
    let running = read(value!({"rolloutStartedAt": "1970-01-01T00:00:00Z"}));
    let ended = read(value!({
        "rolloutStartedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:02:00Z",
        "totalManualPauseDurationSeconds": 30, "completionStatus": "Promoted",
    }));
    metrics.recorded(&running, &ended, at(120));
    metrics.recorded(&ended, &ended, at(130));
    let page = metrics.page(&Objects::default(), &gauges(), at(130));
    assert_eq!(lines(&page, "rollout_duration_seconds_sum"), ["rollout_duration_seconds_sum{status=\"Promoted\"} 120"]);
    let progression = lines(&page, "rollout_progression_duration_seconds_sum");
    assert_eq!(progression, ["rollout_progression_duration_seconds_sum{status=\"Promoted\"} 90"]);
    let manual = lines(&page, "rollout_manual_pause_duration_seconds_count");
    assert_eq!(manual, ["rollout_manual_pause_duration_seconds_count{status=\"Promoted\"} 1"]);
}

#[test]
fn sr21_only_objects_of_ours_are_counted_by_name_and_none_for_ever() {
    let mut metrics = Metrics::default();
    let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
    for number in 0..2000 {
        metrics.asked(Request::of("GET", &format!("/api/v1/namespaces/a/configmaps/c{number}"), 200));
        metrics.asked(Request::of("GET", &format!("/api/v1/namespaces/a/secrets/s{number}"), 404));
    }
    for kind in ["rollouts", "analysisruns", "experiments"] {
        metrics.asked(Request::of("PATCH", &format!("/apis/argoproj.io/v1alpha1/namespaces/a/{kind}/mine"), 200));
    }
    metrics.asked(Request::of("PATCH", "/apis/tidegate.dev/v1alpha1/namespaces/a/gitsources/mine/status", 200));
    let series = |metrics: &mut Metrics, seconds: i64| {
        let page = metrics.page(&Objects::default(), &Gauges::default(), at(seconds));
        page.lines().filter(|line| line.starts_with("controller_clientset_k8s_request_total{")).count()
    };
    assert_eq!(series(&mut metrics, 0), 6);
    let page = metrics.page(&Objects::default(), &Gauges::default(), at(0));
    assert!(!page.contains("\"s1\"") && page.contains("\"mine\""), "{page}");
    for kind in ["rollouts", "analysisruns", "experiments", "gitsources"] {
        metrics.forget(kind, &Place::new("a", "mine"), at(0));
    }
    assert_eq!(series(&mut metrics, 100_000), 2);
}

/// The names of the labels of a line, besides `le`.
fn labels(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = line.split_once('{').map_or("", |(_, labels)| labels);
    while let Some((name, after)) = rest.split_once("=\"") {
        names.push(name.trim_start_matches(',').to_owned());
        rest = after.split_once('"').map_or("", |(_, rest)| rest);
    }
    names.retain(|name| name != "le");
    names
}

#[test]
fn the_table_is_what_is_served() {
    let mut metrics = Metrics::default();
    let web = Place::new("shop", "web");
    for machine in [Machine::Rollout, Machine::Analysis, Machine::Experiment] {
        metrics.passed(&Key { machine, place: web.clone() }, 0.2, Ending::Failed);
    }
    metrics.decided(0.1);
    metrics.fenced(Machine::Rollout);
    metrics.watched_anew("pods");
    metrics.announced(web.clone(), "Normal", "x");
    metrics.asked(Request::of("PATCH", "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web", 200));
    let duration = value!({
        "rolloutStartedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:02:00Z", "completionStatus": "Promoted",
    });
    let ended = crate::api::read::<RolloutStatus>(&value!({"duration": duration})).object;
    metrics.recorded(&RolloutStatus::default(), &ended, at(120));
    let one = || value!({"commit": "1", "at": "1970-01-01T00:00:00Z"});
    let done = value!({
        "seen": one(), "applied": one(), "rolledOut": one(),
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
    });
    metrics.synced(&web, &GitSourceStatus::default(), &crate::api::read(&done).object);
    metrics.reported(&web, &Outcome::Posted(None));
    let page = metrics.page(&objects(&rollout(), &run()), &gauges(), at(0));
    let mut served: Vec<(String, String, String, Vec<String>)> = Vec::new();
    for line in page.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => served.push(((*name).into(), String::new(), (*help).into(), Vec::new())),
            ["#", "TYPE", _, kind] => served.last_mut().unwrap().1 = (*kind).to_owned(),
            _ => {
                served.last_mut().unwrap().3 = labels(line);
            }
        }
    }
    let mut table: Vec<(String, String, String, Vec<String>)> = table::TABLE
        .iter()
        .map(|row| {
            let labels = row.labels.iter().map(|label| (*label).to_owned()).collect();
            (row.name.to_owned(), row.kind.as_str().to_owned(), row.help.to_owned(), labels)
        })
        .collect();
    table.sort();
    served.sort();
    assert_eq!(served, table);
}

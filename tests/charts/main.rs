//! The Helm chart and the kustomize bases give the objects that `tidegate manifests` prints, for several choices. Run by
//! `tests/charts/run`, which builds helm and kustomize. And Prometheus takes the alerts and the dashboard's expressions.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tidegate::{kubernetes::value::Value, manifest};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn program(variable: &str) -> Command {
    Command::new(env::var_os(variable).unwrap_or_else(|| panic!("{variable} names no program: start tests/charts/run")))
}

#[track_caller]
fn printed(done: Output) -> String {
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The objects of a text, each as JSON, sorted by what they are called.
#[track_caller]
fn objects(text: &str, mut change: impl FnMut(&mut Value)) -> Vec<(String, Value)> {
    let file = manifest::read("objects.yaml", text.as_bytes());
    let problems: Vec<&str> = file.mistakes.iter().map(|mistake| mistake.what.as_str()).collect();
    assert_eq!(problems, [""; 0], "{text}");
    let mut objects: Vec<(String, Value)> = file
        .objects
        .into_iter()
        .map(|object| {
            let mut value = object.value;
            change(&mut value);
            let at = |path: &[&str]| value.str_at(path).unwrap_or_default().to_owned();
            let name = format!("{} {}/{}", at(&["kind"]), at(&["metadata", "namespace"]), at(&["metadata", "name"]));
            (name, value)
        })
        .collect();
    objects.sort_by(|one, other| one.0.cmp(&other.0));
    objects
}

fn ours(flags: &[&str]) -> Vec<(String, Value)> {
    let done = Command::new(env!("CARGO_BIN_EXE_tidegate")).arg("manifests").args(flags).output().unwrap();
    objects(&printed(done), |_| ())
}

#[track_caller]
fn same(theirs: &[(String, Value)], ours: &[(String, Value)], what: &str) {
    let names = |objects: &[(String, Value)]| objects.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(theirs), names(ours), "{what}");
    for ((name, theirs), (_, ours)) in theirs.iter().zip(ours) {
        assert!(theirs == ours, "{what}: {name}\n  it gives    {}\n  manifests   {}", theirs.to_json(), ours.to_json());
    }
}

fn helm_template(values: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut helm = program("HELM");
    helm.args(["template", "tidegate", "--namespace=ops"]).arg(root().join("charts/tidegate"));
    values.iter().for_each(|value| {
        helm.args(["--set-json", value]);
    });
    helm.env("HOME", folder.path()).output().unwrap()
}

#[test]
fn the_chart_gives_what_the_command_prints() {
    let everything = [
        r#"webhooks=true"#,
        r#"pages={"enabled":true,"url":"https://tide.example"}"#,
        r#"serviceMonitor=true"#,
        r#"alerts=true"#,
        r#"dashboard=true"#,
        r#"networkPolicy=true"#,
        r#"reads=["secrets","certificates.cert-manager.io"]"#,
        r#"extraArgs=["--require-secret-hosts","--aws-host=%s {{ .Values }}"]"#,
        r#"instanceId="blue""#,
    ];
    let all_flags = [
        "--webhooks",
        "--pages=https://tide.example",
        "--service-monitor",
        "--alerts",
        "--dashboard",
        "--network-policy",
        "--read=secrets",
        "--read=certificates.cert-manager.io",
        "--run-arg=--require-secret-hosts",
        "--run-arg=--aws-host=%s {{ .Values }}",
        "--instance-id=blue",
    ];
    let joined = |more: &[&'static str], base: &[&'static str]| [base, more].concat();
    let cases: Vec<(Vec<&str>, Vec<&str>)> = vec![
        (vec![], vec![]),
        (vec!["replicas=1"], vec!["--replicas=1"]),
        (vec!["replicas=3", "webhooks=true"], vec!["--replicas=3", "--webhooks"]),
        (vec![r#"watchNamespace="ops""#], vec!["--watch-namespace=ops"]),
        (vec![r#"watchNamespace="shop""#], vec!["--watch-namespace=shop"]),
        (vec![r#"pages.enabled=true"#, "networkPolicy=true"], vec!["--pages", "--network-policy"]),
        (vec![r#"pages.url="https://no""#, "serviceMonitor=true"], vec!["--service-monitor"]),
        (vec![r#"image={"repository":"r.example:5000/t","tag":"x"}"#], vec!["--image=r.example:5000/t:x"]),
        (
            vec![r#"image.digest="sha256:0123456789012345678901234567890123456789012345678901234567890123""#],
            vec![
                "--image=ghcr.io/tidegate/tidegate@sha256:0123456789012345678901234567890123456789012345678901234567890123",
            ],
        ),
        (vec!["crds=false", r#"reads=["secrets"]"#], vec!["--without-crds", "--read=secrets"]),
        (everything.to_vec(), all_flags.to_vec()),
        (joined(&[r#"watchNamespace="ops""#], &everything), joined(&["--watch-namespace=ops"], &all_flags)),
        (joined(&[r#"watchNamespace="shop""#], &everything), joined(&["--watch-namespace=shop"], &all_flags)),
    ];
    for (values, flags) in cases {
        let theirs = objects(&printed(helm_template(&values)), |object| {
            // The one difference, on purpose: with a definition every object of its kind would go.
            if object.str_at(&["kind"]) == Some("CustomResourceDefinition") {
                let keep = object.remove_at(&["metadata", "annotations", "helm.sh/resource-policy"]);
                assert_eq!(keep.as_ref().and_then(Value::as_str), Some("keep"));
                if object.at(&["metadata", "annotations"]) == Some(&Value::object()) {
                    object.remove_at(&["metadata", "annotations"]);
                }
            }
        });
        let flags = [&["--namespace=ops", "--without-namespace"], flags.as_slice()].concat();
        same(&theirs, &ours(&flags), &format!("{values:?}"));
    }
}

#[test]
fn what_only_the_chart_can_choose_is_where_it_belongs() {
    let values = [
        r#"image.pullPolicy="Always""#,
        r#"imagePullSecrets=[{"name":"registry"}]"#,
        r#"resources={"limits":{"memory":"1Gi"}}"#,
        r#"envFrom=[{"configMapRef":{"name":"proxy"}}]"#,
        r#"podAnnotations={"a/b":"c"}"#,
        r#"serviceAccountAnnotations={"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/t"}"#,
        r#"nodeSelector={"disk":"ssd"}"#,
        r#"tolerations=[{"key":"k","operator":"Exists"}]"#,
        r#"affinity={"nodeAffinity":{}}"#,
        r#"priorityClassName="high""#,
    ];
    let found = objects(&printed(helm_template(&values)), |_| ());
    let of = |kind: &str| &found.iter().find(|(name, _)| name.starts_with(kind)).unwrap().1;
    let template = of("Deployment ").at(&["spec", "template"]).unwrap();
    let pod = template.at(&["spec"]).unwrap();
    let container = &pod.list_at(&["containers"])[0];
    let json = |value: Option<&Value>| value.map(Value::to_json).unwrap_or_default();
    for (value, expected) in [
        (container.at(&["imagePullPolicy"]), r#""Always""#),
        (container.at(&["resources"]), r#"{"limits":{"memory":"1Gi"},"requests":{"cpu":"50m","memory":"64Mi"}}"#),
        (container.at(&["envFrom"]), r#"[{"configMapRef":{"name":"proxy"}}]"#),
        (pod.at(&["imagePullSecrets"]), r#"[{"name":"registry"}]"#),
        (pod.at(&["nodeSelector"]), r#"{"disk":"ssd"}"#),
        (pod.at(&["tolerations"]), r#"[{"key":"k","operator":"Exists"}]"#),
        (pod.at(&["affinity"]), r#"{"nodeAffinity":{}}"#),
        (pod.at(&["priorityClassName"]), r#""high""#),
        (template.at(&["metadata", "annotations"]), r#"{"a/b":"c"}"#),
        (
            of("ServiceAccount ").at(&["metadata", "annotations"]),
            r#"{"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/t"}"#,
        ),
    ] {
        assert_eq!(json(value), expected, "{}", pod.to_json());
    }
}

#[test]
fn a_value_that_cannot_be_one_is_refused_by_name() {
    for (value, named) in [
        ("replica=3", "replica"),
        ("replicas=0", "/replicas"),
        (r#"watchNamespace="Shop""#, "/watchNamespace"),
        (r#"image.digest="abc""#, "/image/digest"),
        (r#"reads=["*"]"#, "/reads/0"),
        (r#"pages.url="tide.example""#, "/pages/url"),
        (r#"webhooks="yes""#, "/webhooks"),
    ] {
        let done = helm_template(&[value]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(named), "{value}: {said}");
    }
}

#[test]
fn helm_finds_nothing_wrong_with_the_chart() {
    let done = program("HELM").args(["lint", "--strict"]).arg(root().join("charts/tidegate")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// Builds a kustomization on one of the bases, in a copy of the folder.
fn kustomize(base: &str, components: &[&str], more: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("kustomize"), &folder.path().join("kustomize"));
    let mut text = format!("resources: [../kustomize/{base}]\n{more}\n");
    if !components.is_empty() {
        let names: Vec<String> = components.iter().map(|name| format!("../kustomize/components/{name}")).collect();
        text.push_str(&format!("components: [{}]\n", names.join(", ")));
    }
    fs::create_dir(folder.path().join("ours")).unwrap();
    fs::write(folder.path().join("ours/kustomization.yaml"), text).unwrap();
    program("KUSTOMIZE").arg("build").arg(folder.path().join("ours")).output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn the_bases_give_what_the_command_prints() {
    let all = ["network-policy", "webhooks", "pages", "service-monitor", "alerts", "dashboard"];
    let all_flags = ["--network-policy", "--webhooks", "--pages", "--service-monitor", "--alerts", "--dashboard"];
    let moved = "namespace: ops\nimages: [{name: ghcr.io/tidegate/tidegate, newName: r.example/t, newTag: x}]\n\
                 replicas: [{name: tidegate, count: 3}]";
    let moved_flags = ["--namespace=ops", "--image=r.example/t:x", "--replicas=3"];
    for base in ["cluster", "namespace"] {
        let mut cases: Vec<(Vec<&str>, &str, Vec<&str>)> = vec![
            (vec![], "", vec![]),
            (all.to_vec(), "", all_flags.to_vec()),
            (all.to_vec(), moved, [&moved_flags[..], &all_flags[..]].concat()),
        ];
        cases.extend(all.into_iter().zip(all_flags).map(|(component, flag)| (vec![component], "", vec![flag])));
        for (components, more, mut flags) in cases {
            let own = if more.is_empty() { "--watch-namespace=tidegate" } else { "--watch-namespace=ops" };
            if base == "namespace" {
                flags.push(own);
            }
            let theirs = objects(&printed(kustomize(base, &components, more)), |_| ());
            same(&theirs, &ours(&flags), &format!("{base} {components:?} {more}"));
        }
    }
}

#[test]
fn prometheus_takes_the_alerts_and_the_expressions_of_the_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    let printed_objects = ours(&["--without-crds", "--alerts", "--dashboard"]);
    let of = |kind: &str| &printed_objects.iter().find(|(name, _)| name.starts_with(kind)).unwrap().1;
    let rules = folder.path().join("rules.yaml");
    fs::write(&rules, of("PrometheusRule ").at(&["spec"]).unwrap().to_json()).unwrap();
    let run = |arguments: &[&str]| {
        let done = program("PROMTOOL").current_dir(folder.path()).args(arguments).output().unwrap();
        assert!(
            done.status.success(),
            "{arguments:?}: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    };
    run(&["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]);
    let stories = fs::read_to_string(root().join("tests/charts/alerts.yaml")).unwrap();
    for alert in tidegate::install::alerts::ALERTS {
        let firing = stories.split(&format!("alertname: {}\n    exp_alerts:\n    - ", alert.name)).count();
        assert_eq!(firing, 2, "{} fires in one story of tests/charts/alerts.yaml", alert.name);
        assert!(stories.contains(&format!("alertname: {}, exp_alerts: []", alert.name)), "{} waits", alert.name);
    }
    fs::write(folder.path().join("alerts.yaml"), stories).unwrap();
    run(&["test", "rules", "alerts.yaml"]);
    // Prometheus parses every expression of a rule.
    let dashboard = of("ConfigMap ").str_at(&["data", "tidegate.json"]).unwrap();
    let dashboard = Value::from_json(dashboard.as_bytes()).unwrap();
    let expressions = dashboard.list_at(&["panels"]).iter().flat_map(|panel| panel.list_at(&["targets"]));
    let rules: Vec<String> = expressions
        .enumerate()
        .map(|(number, target)| {
            let expression = target.str_at(&["expr"]).unwrap().replace("$namespace", ".*");
            format!("- {{record: 'panel:{number}', expr: {}}}", Value::from(expression.as_str()).to_json())
        })
        .collect();
    assert!(rules.len() > 20, "{rules:?}");
    fs::write(
        folder.path().join("panels.yaml"),
        format!("groups:\n- name: panels\n  rules:\n  {}\n", rules.join("\n  ")),
    )
    .unwrap();
    run(&["check", "rules", "panels.yaml"]);
}

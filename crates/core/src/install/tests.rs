use super::{rights::*, *};

fn kinds(install: &Install) -> Vec<String> {
    let text = |object: &Value, path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
    install
        .objects()
        .iter()
        .filter(|object| object.str_at(&["kind"]) != Some("CustomResourceDefinition"))
        .map(|object| {
            let namespace = text(object, &["metadata", "namespace"]);
            format!("{} {namespace}/{}", text(object, &["kind"]), text(object, &["metadata", "name"]))
        })
        .collect()
}

#[test]
fn a_daemon_of_one_namespace_needs_no_right_of_the_cluster() {
    let install = Install { scope: Scope::Namespace("shop".into()), ..Install::new("tidegate", "tidegate:1") };
    let of_cluster: Vec<String> = kinds(&install).into_iter().filter(|kind| kind.contains("Cluster")).collect();
    assert_eq!(of_cluster, [""; 0]);
    assert!(kinds(&install).contains(&"Role shop/tidegate".to_owned()));
    assert!(kinds(&install).contains(&"Role tidegate/tidegate".to_owned()));
    let deployment = install.objects().into_iter().find(|object| object.str_at(&["kind"]) == Some("Deployment"));
    let arguments = deployment.unwrap().to_json();
    assert!(arguments.contains("--namespace=shop"), "{arguments}");
    // In one namespace there is one role.
    let own = Install { scope: Scope::Namespace("tidegate".into()), ..install };
    assert_eq!(kinds(&own).iter().filter(|kind| kind.starts_with("Role ")).count(), 1);
}

#[test]
fn no_rule_has_a_wildcard_and_secrets_are_only_read_by_name() {
    let install = Install::new("tidegate", "tidegate:1");
    for object in install.objects() {
        for rule in object.list_at(&["rules"]) {
            let words = |key| rule.list_at(&[key]).iter().filter_map(Value::as_str).collect::<Vec<_>>();
            for key in ["apiGroups", "resources", "verbs"] {
                assert!(!words(key).contains(&"*"), "{}", rule.to_json());
            }
            if words("resources").contains(&"secrets") {
                assert_eq!(words("verbs"), ["get"]);
            }
        }
    }
}

#[test]
fn sr26_the_daemon_has_no_rights_on_its_machine() {
    let install = Install::new("tidegate", "tidegate:1");
    let deployment =
        install.objects().into_iter().find(|object| object.str_at(&["kind"]) == Some("Deployment")).unwrap();
    let pod = deployment.at(&["spec", "template", "spec"]).unwrap();
    let is = |path: &[&str]| pod.at(path).and_then(Value::as_bool);
    assert_eq!(is(&["securityContext", "runAsNonRoot"]), Some(true));
    assert_eq!(pod.str_at(&["securityContext", "seccompProfile", "type"]), Some("RuntimeDefault"));
    for key in ["hostNetwork", "hostPID", "hostIPC", "hostUsers"] {
        assert_eq!(pod.at(&[key]), None, "{key}");
    }
    let volumes = pod.list_at(&["volumes"]);
    assert!(volumes.iter().all(|volume| volume.at(&["hostPath"]).is_none()), "{volumes:?}");
    for container in pod.list_at(&["containers"]) {
        let context = container.at(&["securityContext"]).unwrap();
        let is = |key: &str| context.at(&[key]).and_then(Value::as_bool);
        assert_eq!((is("allowPrivilegeEscalation"), is("readOnlyRootFilesystem")), (Some(false), Some(true)));
        assert_eq!(context.list_at(&["capabilities", "drop"]).first().and_then(Value::as_str), Some("ALL"));
        assert_eq!(context.at(&["privileged"]), None);
    }
}

#[test]
fn ports_flags_and_services_agree() {
    let plain = Install::new("tidegate", "tidegate:1");
    let all = Install { webhooks: true, pages: Some("https://t.example".into()), ..plain.clone() };
    let services = |install: &Install| {
        let names =
            kinds(install).into_iter().filter_map(|kind| Some(kind.strip_prefix("Service tidegate/")?.to_owned()));
        names.collect::<Vec<_>>()
    };
    assert_eq!(services(&plain), ["tidegate-metrics"]);
    assert_eq!(services(&all), ["tidegate-metrics", "tidegate-webhooks", "tidegate-pages"]);
    let deployment = all.objects().into_iter().find(|object| object.str_at(&["kind"]) == Some("Deployment")).unwrap();
    let container = &deployment.list_at(&["spec", "template", "spec", "containers"])[0];
    let arguments: Vec<&str> = container.list_at(&["args"]).iter().filter_map(Value::as_str).collect();
    assert_eq!(
        arguments,
        [
            "run",
            "--cache=/var/cache/tidegate",
            "--log-format=json",
            "--webhooks=0.0.0.0:9292",
            "--pages=0.0.0.0:8082",
            "--pages-url=https://t.example",
        ]
    );
}

#[test]
fn a_kind_is_named_by_resource_and_group() {
    let kind = |plural: &str, group: &str| Ok(Kind { plural: plural.into(), group: group.into() });
    assert_eq!(Kind::parse("secrets"), kind("secrets", ""));
    assert_eq!(Kind::parse("certificates.cert-manager.io"), kind("certificates", "cert-manager.io"));
    for wrong in ["", "*", "Secrets", "a/b", ".apps", "secrets."] {
        assert!(Kind::parse(wrong).is_err(), "{wrong}");
    }
}

/// The labels that an expression selects or groups by.
fn labels_of(expression: &str) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for part in expression.split('{').skip(1) {
        let inside = part.split('}').next().unwrap();
        labels.extend(inside.split(',').filter_map(|pair| pair.split(['=', '!']).next()));
    }
    for part in expression.split("by (").skip(1) {
        labels.extend(part.split(')').next().unwrap().split(", "));
    }
    labels
}

#[test]
fn alerts_and_panels_only_name_what_is_in_the_metric_table() {
    use crate::engine::metrics::table::Metric;
    let alerts = alerts::ALERTS.iter().map(|alert| alert.expression);
    let panels = dashboard::ROWS.iter().flat_map(|(_, panels)| panels.iter());
    let panels = panels.flat_map(|panel| panel.queries.iter().map(|(expression, _)| *expression));
    for expression in alerts.chain(panels) {
        // What Prometheus itself says of a target.
        if expression.starts_with("absent(up{") {
            continue;
        }
        let series = dashboard::series(expression);
        assert!(!series.is_empty(), "{expression}");
        for name in series {
            let metric = Metric::of(name).unwrap_or_else(|| panic!("{name} is no metric: {expression}"));
            for label in labels_of(expression) {
                assert!(label == "le" || metric.labels.contains(&label), "{} has no label {label}", metric.name);
            }
        }
    }
}

#[test]
fn a_series_is_told_from_functions_labels_and_ranges() {
    let series = dashboard::series("histogram_quantile(0.5, sum by (le) (rate(a_b_bucket{x_y=\"c_d\"}[1h]))) / e_f");
    assert_eq!(series, ["a_b_bucket", "e_f"]);
}

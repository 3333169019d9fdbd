//! The Helm chart: the same objects, chosen by values.

use super::{
    Install, NAME, Part, Scope,
    rights::Kind,
    template::{Blank, Choice, Position, Slot, Template},
};
use crate::{api::crd, kubernetes::value::Value, value};

/// The oldest version of Kubernetes that the chart installs on.
const KUBERNETES: &str = ">=1.28.0-0";

/// A number of pods that nobody chooses: it marks the place.
const REPLICAS: u16 = 60_000;

/// A value of the chart.
struct Setting {
    /// `image.tag`
    path: &'static str,
    default: Value,
    /// What it may be, as JSON Schema.
    schema: Value,
    what: &'static str,
}

/// Everything, with marks where people fill something in.
fn all(scope: Scope) -> Install {
    Install {
        namespace: "@namespace@".to_owned(),
        scope,
        image: "@image@".to_owned(),
        replicas: REPLICAS,
        webhooks: true,
        pages: Some("@pages@".to_owned()),
        instance_id: Some("@instance@".to_owned()),
        reads: vec![Kind { plural: "@plural@".to_owned(), group: "@group@".to_owned() }],
        arguments: vec!["@argument@".to_owned()],
        parts: vec![Part::ServiceMonitor, Part::Alerts, Part::Dashboard, Part::NetworkPolicy],
    }
}

fn template() -> Template {
    let choice = |block, without| Choice { block, without };
    let blank = |mark, expression| Blank { mark, expression };
    let after = |path, text| Slot { path, position: Position::After, text };
    Template {
        choices: vec![
            choice("if .Values.serviceMonitor", |install| install.leave_out(Part::ServiceMonitor)),
            choice("if .Values.alerts", |install| install.leave_out(Part::Alerts)),
            choice("if .Values.dashboard", |install| install.leave_out(Part::Dashboard)),
            choice("if .Values.networkPolicy", |install| install.leave_out(Part::NetworkPolicy)),
            choice("if .Values.webhooks", |install| install.webhooks = false),
            choice("if .Values.pages.enabled", |install| install.pages = None),
            choice("if .Values.pages.url", |install| install.pages = install.pages.as_ref().map(|_| String::new())),
            choice("if .Values.instanceId", |install| install.instance_id = None),
            choice("if .Values.watchNamespace", |install| install.scope = Scope::Cluster),
            choice("if eq .Values.watchNamespace .Release.Namespace", |install| {
                install.scope = Scope::Namespace("@watched@".to_owned());
            }),
            choice("if gt (int .Values.replicas) 1", |install| install.replicas = 1),
            choice("range .Values.extraArgs", |install| install.arguments.clear()),
        ],
        blanks: vec![
            blank("@namespace@", ".Release.Namespace"),
            blank("@watched@", ".Values.watchNamespace"),
            blank("@image@", "include \"tidegate.image\" ."),
            blank("60000", ".Values.replicas | int"),
            blank("@pages@", ".Values.pages.url"),
            blank("@instance@", ".Values.instanceId"),
            blank("@plural@", "index (splitList \".\" .) 0"),
            blank("@group@", "rest (splitList \".\" .) | join \".\""),
            blank("@argument@", "."),
        ],
        slots: vec![
            Slot {
                path: "Deployment.spec.template.spec.containers.resources",
                position: Position::Instead,
                text: "@resources:\n@  {{- toYaml .Values.resources | nindent 10 }}\n",
            },
            after(
                "Deployment.spec.template.spec.containers",
                "{{- with .Values.image.pullPolicy }}\n@imagePullPolicy: {{ . }}\n{{- end }}\n\
                 {{- with .Values.envFrom }}\n@envFrom:\n@  {{- toYaml . | nindent 10 }}\n{{- end }}\n",
            ),
            after(
                "Deployment.spec.template.spec",
                "{{- range $key := list \"imagePullSecrets\" \"nodeSelector\" \"tolerations\" \"affinity\" \"priorityClassName\" }}\n\
                 {{- with index $.Values $key }}\n@{{ $key }}:\n@  {{- toYaml . | nindent 8 }}\n{{- end }}\n{{- end }}\n",
            ),
            after(
                "Deployment.spec.template.metadata",
                "{{- with .Values.podAnnotations }}\n@annotations:\n@  {{- toYaml . | nindent 8 }}\n{{- end }}\n",
            ),
            after(
                "ServiceAccount.metadata",
                "{{- with .Values.serviceAccountAnnotations }}\n@annotations:\n@  {{- toYaml . | nindent 4 }}\n{{- end }}\n",
            ),
        ],
    }
}

/// The values, with what they mean.
fn settings(image: &str, resources: Value) -> Vec<Setting> {
    let setting = |path, default, schema, what| Setting { path, default, schema, what };
    let text = |pattern: &str| value!({"type": "string", "pattern": pattern});
    let switch = || value!({"type": "boolean"});
    let (object, list) = (|| value!({"type": "object"}), || value!({"type": "array"}));
    let repository = image.rsplit_once(':').map_or(image, |(repository, _)| repository);
    vec![
        setting("image.repository", repository.into(), text("^[^\\s:@]+(:[0-9]+/[^\\s:@]+)?$"), "The container image."),
        setting("image.tag", "".into(), text("^[\\w.-]*$"), "Its tag; that of this version if there is none."),
        setting(
            "image.digest",
            "".into(),
            text("^(sha256:[0-9a-f]{64})?$"),
            "Its digest (`sha256:…`), in place of the tag.",
        ),
        setting(
            "image.pullPolicy",
            "".into(),
            value!({"enum": ["", "Always", "IfNotPresent", "Never"]}),
            "When to pull it; Kubernetes' default if empty.",
        ),
        setting("imagePullSecrets", Value::list([]), list(), "Secrets of the registry: `[{name: …}]`."),
        setting(
            "replicas",
            2.into(),
            value!({"type": "integer", "minimum": 1, "maximum": 9}),
            "How many pods; one is the leader, the others stand by.",
        ),
        setting(
            "watchNamespace",
            "".into(),
            text("^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"),
            "Reconcile the Rollouts and GitSources of this namespace only; then no right outside of it is needed.",
        ),
        setting("instanceId", "".into(), text("^\\S*$"), "Reconcile Rollouts with this instance id only."),
        setting("webhooks", false.into(), switch(), "Serve webhooks of git hosts, and plans for workflows."),
        setting("pages.enabled", false.into(), switch(), "Serve the pages of GitSources."),
        setting("pages.url", "".into(), text("^(https?://\\S+)?$"), "The URL at which people reach them."),
        setting(
            "reads",
            Value::list([]),
            value!({"type": "array", "items": text("^[a-z0-9-]+([.][a-z0-9-]+)*$")}),
            "Kinds that GitSources compare as well, such as `secrets` or `certificates.cert-manager.io`.",
        ),
        setting(
            "extraArgs",
            Value::list([]),
            value!({"type": "array", "items": {"type": "string"}}),
            "More arguments of `tidegate run`, such as `--require-secret-hosts`.",
        ),
        setting(
            "crds",
            true.into(),
            switch(),
            "The CustomResourceDefinitions. They stay when the chart is uninstalled; `false` keeps those of Argo Rollouts.",
        ),
        setting("serviceMonitor", false.into(), switch(), "A ServiceMonitor for the Prometheus operator."),
        setting("alerts", false.into(), switch(), "A PrometheusRule with alerts."),
        setting("dashboard", false.into(), switch(), "A ConfigMap with a dashboard, as Grafana's sidecar finds it."),
        setting("networkPolicy", false.into(), switch(), "A NetworkPolicy that admits only what is served."),
        setting("resources", resources, object(), "Requests and limits of the container."),
        setting("envFrom", Value::list([]), list(), "Environment of the container, such as `HTTPS_PROXY`."),
        setting("podAnnotations", Value::object(), object(), "Annotations of the pods."),
        setting("serviceAccountAnnotations", Value::object(), object(), "Annotations of the ServiceAccount."),
        setting("nodeSelector", Value::object(), object(), "Nodes to run on."),
        setting("tolerations", Value::list([]), list(), "Taints to tolerate."),
        setting("affinity", Value::object(), object(), "Affinity of the pods."),
        setting("priorityClassName", "".into(), text("^\\S*$"), "Their PriorityClass."),
    ]
}

const IMAGE: &str = r#"{{- define "tidegate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}
"#;

// Read as files, so that no description in them is taken for a template.
const DEFINITIONS: &str = r#"{{- if .Values.crds }}
{{- range $path, $_ := .Files.Glob "definitions/*.yaml" }}
{{- $definition := $.Files.Get $path | fromYaml }}
{{- $annotations := dict "helm.sh/resource-policy" "keep" | merge ($definition.metadata.annotations | default dict) }}
{{- $_ := set $definition.metadata "annotations" $annotations }}
---
{{ toYaml $definition }}
{{- end }}
{{- end }}
"#;

const NOTES: &str = "Tidegate {{ .Chart.AppVersion }} is installed in {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/tidegate
  tidegate doctor -n {{ .Release.Namespace }} --account {{ .Release.Namespace }}/tidegate

`helm uninstall` leaves Rollouts, their pods and the CustomResourceDefinitions as they are.
";

const EDIT: &str = "# Made by `tidegate manifests --chart`; not to be edited.\n";

/// The files of the chart, by their paths in its folder. `definition` writes a CustomResourceDefinition.
pub fn files(version: &str, image: &str, definition: fn(&Value) -> String) -> Vec<(String, String)> {
    let deployment = Install::new(NAME, image).deployment();
    let containers = deployment.list_at(&["spec", "template", "spec", "containers"]);
    let resources = containers.first().and_then(|container| container.at(&["resources"])).cloned().unwrap_or_default();
    let settings = settings(image, resources);
    let mut files = vec![
        ("Chart.yaml".to_owned(), chart(version)),
        ("README.md".to_owned(), readme(&settings)),
        (".helmignore".to_owned(), ".git/\n".to_owned()),
        ("values.yaml".to_owned(), values(&settings)),
        ("values.schema.json".to_owned(), schema(&settings)),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
        ("templates/_image.tpl".to_owned(), IMAGE.to_owned()),
        ("templates/definitions.yaml".to_owned(), format!("{EDIT}{DEFINITIONS}")),
        ("templates/rights.yaml".to_owned(), rights()),
    ];
    for (kind, text) in template().objects(&all(Scope::Namespace("@namespace@".to_owned())), |install| {
        [vec![install.account()], install.workload()].concat()
    }) {
        let path = format!("templates/{}.yaml", kind.to_lowercase());
        match files.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => known.push_str(&text),
            None => files.push((path, format!("{EDIT}{text}"))),
        }
    }
    let definitions = crd::all();
    files.extend(definitions.iter().map(|object| {
        let name = object.str_at(&["spec", "names", "singular"]).unwrap_or_default();
        (format!("definitions/{name}.yaml"), definition(object))
    }));
    files
}

/// The roles of the three scopes.
fn rights() -> String {
    let template = Template {
        choices: vec![Choice { block: "range .Values.reads", without: |install| install.reads.clear() }],
        ..template()
    };
    let of = |scope| {
        template.objects(&all(scope), Install::rights).into_iter().map(|(_, text)| text).collect::<Vec<_>>().concat()
    };
    [
        EDIT.to_owned(),
        "{{- if not .Values.watchNamespace }}\n".to_owned(),
        of(Scope::Cluster),
        "{{- else if eq .Values.watchNamespace .Release.Namespace }}\n".to_owned(),
        of(Scope::Namespace("@namespace@".to_owned())),
        "{{- else }}\n".to_owned(),
        of(Scope::Namespace("@watched@".to_owned())),
        "{{- end }}\n".to_owned(),
    ]
    .concat()
}

fn chart(version: &str) -> String {
    format!(
        "{EDIT}apiVersion: v2\nname: {NAME}\ntype: application\nversion: {version}\nappVersion: {version}\n\
         description: From a git commit to a fully rolled-out, verified version in Kubernetes\n\
         kubeVersion: \"{KUBERNETES}\"\nhome: https://github.com/tidegate/tidegate\n\
         sources: [https://github.com/tidegate/tidegate]\nkeywords: [gitops, progressive-delivery, canary, blue-green, rollouts]\n"
    )
}

/// `values.yaml`: each value under its comment.
fn values(settings: &[Setting]) -> String {
    let mut out = EDIT.to_owned();
    let mut within = "";
    for setting in settings {
        let (parent, key) = setting.path.split_once('.').map_or(("", setting.path), |(parent, key)| (parent, key));
        let pad = if parent.is_empty() { "" } else { "  " };
        if !parent.is_empty() && parent != within {
            out.push_str(&format!("{parent}:\n"));
        }
        within = parent;
        out.push_str(&format!("{pad}# {}\n{pad}{key}: {}\n", setting.what, setting.default.to_json()));
    }
    out
}

fn schema(settings: &[Setting]) -> String {
    let mut root = value!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
        // Helm gives it to every chart that is a part of another.
        "properties": {"global": {"type": "object"}},
    });
    for setting in settings {
        let mut schema = setting.schema.clone();
        schema.set_at(&["description"], setting.what);
        match setting.path.split_once('.') {
            None => root.set_at(&["properties", setting.path], schema),
            Some((parent, key)) => {
                root.set_at(&["properties", parent, "type"], "object");
                root.set_at(&["properties", parent, "additionalProperties"], false);
                root.set_at(&["properties", parent, "properties", key], schema);
            }
        }
    }
    let pretty = serde_json::to_string_pretty(&root).unwrap_or_default();
    format!("{pretty}\n")
}

fn readme(settings: &[Setting]) -> String {
    let mut out = "\
# Tidegate

Made by `tidegate manifests --chart`; not to be edited. The same objects as `tidegate install` applies
([docs/install.md](../../docs/install.md)).

```sh
kubectl create namespace tidegate
kubectl label namespace tidegate pod-security.kubernetes.io/enforce=restricted
helm install tidegate charts/tidegate --namespace tidegate --wait
```

| value | default | |
|---|---|---|
"
    .to_owned();
    for setting in settings {
        out.push_str(&format!("| `{}` | `{}` | {} |\n", setting.path, setting.default.to_json(), setting.what));
    }
    out
}

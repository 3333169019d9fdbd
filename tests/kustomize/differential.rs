//! Random overlays, rendered by the real kustomize and by us: same bytes, or both refuse.
//!
//! `tests/kustomize/run` builds kustomize and calls this. Arguments: the number of cases and the first seed. A seed gives
//! the same case for ever; `KEEP=DIR` leaves the trees that differ there.

#![allow(clippy::unwrap_used)]

#[path = "../../crates/kustomize/tests/common/mod.rs"]
mod common;

use std::{env, fmt::Write as _, fs, path::Path, process::Command};

use common::Memory;
use tidegate_kustomize::{Options, render};

fn main() {
    let mut arguments = env::args().skip(1);
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let first: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let kustomize = env::var("KUSTOMIZE").expect("KUSTOMIZE names the kustomize binary; see tests/kustomize/run");
    let scratch = env::temp_dir().join(format!("kustomize-differential-{}", std::process::id()));
    let (mut same, mut refused, mut different) = (0, 0, Vec::new());
    for seed in first..first + count {
        let tree = Case::new(seed).tree();
        let _ = fs::remove_dir_all(&scratch);
        for (path, bytes) in &tree.files {
            let path = scratch.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let theirs = Command::new(&kustomize).arg("build").arg(scratch.join("overlay")).output().unwrap();
        let ours = render(&tree, "overlay", &Options::default());
        match (theirs.status.success(), ours) {
            (true, Ok(rendered)) if rendered.to_yaml().as_bytes() == theirs.stdout => same += 1,
            (false, Err(failed)) => {
                refused += 1;
                if env::var("REASONS").is_ok() {
                    println!("seed {seed}: {}", failed.problem);
                    if failed.problem.message.contains("not YAML") {
                        let place = failed.problem.place.unwrap();
                        let text = String::from_utf8_lossy(&tree.files[&*place.file]).into_owned();
                        let from = (place.line as usize).saturating_sub(4);
                        text.lines().skip(from).take(6).for_each(|line| println!("      {line}"));
                    }
                }
            }
            (_, ours) => {
                let ours = match ours {
                    Ok(rendered) => rendered.to_yaml(),
                    Err(failed) => format!("refused: {}\n", failed.problem),
                };
                let theirs = if theirs.status.success() { theirs.stdout } else { theirs.stderr };
                println!("seed {seed} differs:\n{}", first_difference(&String::from_utf8_lossy(&theirs), &ours));
                if let Ok(keep) = env::var("KEEP") {
                    let target = Path::new(&keep).join(seed.to_string());
                    let _ = fs::remove_dir_all(&target);
                    fs::create_dir_all(&keep).unwrap();
                    fs::rename(&scratch, target).unwrap();
                }
                different.push(seed);
            }
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    println!(
        "{count} cases from seed {first}: {same} with the same bytes, {refused} refused by both, {} different",
        different.len()
    );
    if !different.is_empty() {
        println!("seeds: {different:?}");
        std::process::exit(1);
    }
}

fn first_difference(theirs: &str, ours: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), ours.lines().collect());
    let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let show = |lines: &[&str]| {
        lines.iter().skip(at.saturating_sub(4)).take(7).map(|line| format!("    {line}\n")).collect::<String>()
    };
    format!("  line {}, kustomize:\n{}  ours:\n{}", at + 1, show(&a), show(&b))
}

/// SplitMix64: small, and the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True in `percent` of a hundred.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// YAML as people write it, kept as text so that styles survive.
#[derive(Clone)]
enum Yaml {
    Scalar(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
    /// The text of a literal block.
    Block(String),
}

fn s(text: impl Into<String>) -> Yaml {
    Yaml::Scalar(text.into())
}

fn map(pairs: Vec<(&str, Yaml)>) -> Yaml {
    Yaml::Map(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl Yaml {
    fn block(&self, indent: usize, out: &mut String, rng: &mut Rng) {
        let pad = " ".repeat(indent);
        match self {
            Yaml::Map(pairs) if !pairs.is_empty() => {
                for (index, (key, value)) in pairs.iter().enumerate() {
                    if index > 0 || out.ends_with('\n') || out.is_empty() {
                        out.push_str(&pad);
                    }
                    out.push_str(key);
                    out.push(':');
                    value.after_key(indent, out, rng);
                }
            }
            Yaml::List(list) if !list.is_empty() => {
                for element in list {
                    out.push_str(&pad);
                    out.push_str("- ");
                    match element {
                        Yaml::Map(pairs) if !pairs.is_empty() && !rng.chance(15) => {
                            element.block_after_dash(indent + 2, out, rng)
                        }
                        Yaml::Block(_) => element.after_key(indent, out, rng),
                        _ => {
                            element.flow(out);
                            out.push('\n');
                        }
                    }
                }
            }
            other => {
                out.push_str(&pad);
                other.flow(out);
                out.push('\n');
            }
        }
    }

    fn block_after_dash(&self, indent: usize, out: &mut String, rng: &mut Rng) {
        let mut inner = String::new();
        self.block(indent, &mut inner, rng);
        out.push_str(inner.trim_start_matches(' '));
    }

    fn after_key(&self, indent: usize, out: &mut String, rng: &mut Rng) {
        match self {
            Yaml::Map(pairs) if !pairs.is_empty() && !rng.chance(12) => {
                out.push('\n');
                self.block(indent + 2, out, rng);
            }
            Yaml::List(list) if !list.is_empty() && !rng.chance(12) => {
                out.push('\n');
                self.block(if rng.chance(50) { indent } else { indent + 2 }, out, rng);
            }
            Yaml::Block(text) => {
                out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
                for line in text.lines() {
                    if line.is_empty() {
                        out.push('\n');
                    } else {
                        let _ = writeln!(out, "{}{line}", " ".repeat(indent + 2));
                    }
                }
            }
            other => {
                let mut text = String::new();
                other.flow(&mut text);
                if !text.is_empty() {
                    out.push(' ');
                    out.push_str(&text);
                }
                if rng.chance(4) {
                    out.push_str(" # a comment");
                }
                out.push('\n');
            }
        }
    }

    fn flow(&self, out: &mut String) {
        match self {
            Yaml::Scalar(text) => out.push_str(text),
            Yaml::Block(text) => {
                let _ = write!(out, "{text:?}");
            }
            Yaml::List(list) => {
                out.push('[');
                for (index, element) in list.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    element.flow(out);
                }
                out.push(']');
            }
            Yaml::Map(pairs) => {
                out.push('{');
                for (index, (key, value)) in pairs.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(key);
                    out.push_str(": ");
                    value.flow(out);
                }
                out.push('}');
            }
        }
    }
}

const NAMES: [&str; 7] = ["web", "api", "db", "web-conf", "creds", "default", "x1"];
const LABELS: [&str; 5] = ["app", "tier", "env", "app.kubernetes.io/name", "team"];
/// Scalars as they are written; what they mean is for the readers to find out.
const SCALARS: [&str; 30] = [
    "one",
    "\"two\"",
    "'three'",
    "1",
    "\"2\"",
    "'3'",
    "true",
    "\"true\"",
    "yes",
    "on",
    "~",
    "null",
    "0644",
    "1.50",
    "1e3",
    "2024-02-29",
    "\"\"",
    "''",
    "a b",
    "\"a: b\"",
    "-x",
    "12:30",
    "'*.x'",
    "0x1F",
    "1_000",
    "n",
    ".5",
    "+1",
    "tea",
    "'https://h:1/p?q=1'",
];
const NUMBERS: [&str; 8] = ["1", "2", "3", "\"2\"", "0", "8080", "1000000", "'5'"];
const IMAGES: [&str; 7] = [
    "nginx",
    "nginx:1.25",
    "registry.example/web:1.0",
    "registry.example:5000/api@sha256:0123",
    "busybox:1",
    "\"redis\"",
    "registry.example/web",
];

#[derive(Clone)]
struct Object {
    api: &'static str,
    kind: &'static str,
    name: String,
    namespace: Option<String>,
    body: Vec<(&'static str, Yaml)>,
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
}

impl Object {
    fn yaml(&self) -> Yaml {
        let mut metadata = vec![("name", s(self.name.clone()))];
        if let Some(namespace) = &self.namespace {
            metadata.push(("namespace", s(namespace.clone())));
        }
        for (field, texts) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !texts.is_empty() {
                metadata.push((
                    field,
                    Yaml::Map(texts.iter().map(|(key, value)| (key.clone(), s(value.clone()))).collect()),
                ));
            }
        }
        let mut pairs = vec![("apiVersion", s(self.api)), ("kind", s(self.kind)), ("metadata", map(metadata))];
        pairs.extend(self.body.clone());
        map(pairs)
    }
}

struct Case {
    rng: Rng,
    files: Vec<(String, String)>,
    /// What may be patched and named.
    objects: Vec<Object>,
}

impl Case {
    fn new(seed: u64) -> Case {
        Case { rng: Rng(seed.wrapping_mul(0x5851_f42d_4c95_7f2d)), files: Vec::new(), objects: Vec::new() }
    }

    fn tree(mut self) -> Memory {
        let mut fields = self.level("base", true);
        self.kustomization("base", fields);
        let mut bases = vec!["../base"];
        if self.rng.chance(25) {
            fields = self.level("other", true);
            self.kustomization("other", fields);
            bases.push("../other");
        }
        if self.rng.chance(30) {
            let mut fields = self.level("middle", false);
            fields.insert(0, ("resources", Yaml::List(bases.drain(..).map(s).collect())));
            self.kustomization("middle", fields);
            bases.push("../middle");
        }
        let component = self.rng.chance(20);
        if component {
            let mut fields = self.level("component", false);
            fields.insert(0, ("kind", s("Component")));
            fields.insert(0, ("apiVersion", s("kustomize.config.k8s.io/v1alpha1")));
            self.kustomization("component", fields);
        }
        let mut fields = self.level("overlay", false);
        let mut resources: Vec<Yaml> = bases.iter().map(|base| s(*base)).collect();
        if self.rng.chance(30) {
            let object = self.object();
            self.write("overlay/extra.yaml", &object.yaml());
            self.objects.push(object);
            resources.insert(self.rng.below(resources.len() + 1), s("extra.yaml"));
        }
        fields.insert(0, ("resources", Yaml::List(resources)));
        if component {
            fields.push(("components", Yaml::List(vec![s("../component")])));
        }
        if self.rng.chance(15) {
            fields.push(("sortOptions", map(vec![("order", s(self.rng.pick(&["fifo", "legacy"])))])));
        }
        if self.rng.chance(8) {
            let words = ["originAnnotations", "transformerAnnotations"];
            let list = words.iter().filter(|_| self.rng.chance(60)).map(|word| s(*word)).collect();
            fields.push(("buildMetadata", Yaml::List(list)));
        }
        self.kustomization("overlay", fields);
        let mut memory = Memory::default();
        memory.files = self.files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        memory
    }

    fn write(&mut self, path: &str, yaml: &Yaml) {
        let mut text = String::new();
        yaml.block(0, &mut text, &mut self.rng);
        self.files.push((path.to_owned(), text));
    }

    fn kustomization(&mut self, directory: &str, fields: Vec<(&'static str, Yaml)>) {
        self.write(&format!("{directory}/kustomization.yaml"), &map(fields));
    }

    fn scalar(&mut self) -> Yaml {
        s(self.rng.pick(&SCALARS))
    }

    fn texts(&mut self, most: usize) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String)> = Vec::new();
        for _ in 0..self.rng.below(most + 1) {
            let key = self.rng.pick(&LABELS).to_owned();
            if !texts.iter().any(|(other, _)| *other == key) {
                texts.push((key, self.rng.pick(&["a", "\"b\"", "'1'", "c-d", "\"true\"", "prod"]).to_owned()));
            }
        }
        texts
    }

    fn containers(&mut self) -> Yaml {
        let count = 1 + self.rng.below(2);
        let mut list = Vec::new();
        for index in 0..count {
            let mut pairs = vec![("name", s(["main", "side"][index])), ("image", s(self.rng.pick(&IMAGES)))];
            if self.rng.chance(60) {
                let env = self.env();
                pairs.push(("env", env));
            }
            if self.rng.chance(40) {
                pairs.push(("ports", self.ports()));
            }
            if self.rng.chance(30) {
                let arguments = (0..self.rng.below(3))
                    .map(|_| s(self.rng.pick(&["--a", "\"$(VAR)\"", "$(VAR)-x", "'1'", "c"])))
                    .collect();
                pairs.push(("args", Yaml::List(arguments)));
            }
            if self.rng.chance(25) {
                let (map_name, secret) = (self.rng.pick(&NAMES), self.rng.pick(&NAMES));
                let from = vec![
                    map(vec![("configMapRef", map(vec![("name", s(map_name))]))]),
                    map(vec![("secretRef", map(vec![("name", s(secret))]))]),
                ];
                pairs.push(("envFrom", Yaml::List(from)));
            }
            if self.rng.chance(20) {
                pairs.push((
                    "volumeMounts",
                    Yaml::List(vec![map(vec![("name", s("data")), ("mountPath", s("/data"))])]),
                ));
            }
            list.push(map(pairs));
        }
        Yaml::List(list)
    }

    fn env(&mut self) -> Yaml {
        let mut list = Vec::new();
        for name in ["A", "B", "C"].iter().filter(|_| self.rng.chance(60)).collect::<Vec<_>>() {
            let value = match self.rng.below(4) {
                0 => map(vec![
                    ("name", s(*name)),
                    (
                        "valueFrom",
                        map(vec![("configMapKeyRef", map(vec![("name", s(self.rng.pick(&NAMES))), ("key", s("k"))]))]),
                    ),
                ]),
                _ => map(vec![("name", s(*name)), ("value", self.scalar())]),
            };
            list.push(value);
        }
        Yaml::List(list)
    }

    fn ports(&mut self) -> Yaml {
        let mut list = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let mut pairs = vec![("containerPort", s(self.rng.pick(&["80", "8080", "9090", "\"80\""])))];
            if self.rng.chance(40) {
                pairs.push(("protocol", s(self.rng.pick(&["TCP", "UDP"]))));
            }
            if self.rng.chance(40) {
                pairs.push(("name", s(self.rng.pick(&["http", "metrics"]))));
            }
            list.push(map(pairs));
        }
        Yaml::List(list)
    }

    fn pod(&mut self) -> Yaml {
        let mut pairs = vec![("containers", self.containers())];
        if self.rng.chance(25) {
            pairs.push(("initContainers", self.containers()));
        }
        if self.rng.chance(30) {
            pairs.push(("serviceAccountName", s(self.rng.pick(&NAMES))));
        }
        if self.rng.chance(40) {
            let volumes = vec![
                map(vec![("name", s("data")), ("configMap", map(vec![("name", s(self.rng.pick(&NAMES)))]))]),
                map(vec![("name", s("keys")), ("secret", map(vec![("secretName", s(self.rng.pick(&NAMES)))]))]),
            ];
            pairs.push(("volumes", Yaml::List(volumes)));
        }
        if self.rng.chance(15) {
            pairs.push(("tolerations", Yaml::List(vec![map(vec![("key", s("k")), ("operator", s("Exists"))])])));
        }
        if self.rng.chance(15) {
            pairs.push(("imagePullSecrets", Yaml::List(vec![map(vec![("name", s(self.rng.pick(&NAMES)))])])));
        }
        if self.rng.chance(15) {
            let spread = map(vec![
                ("topologyKey", s("zone")),
                ("whenUnsatisfiable", s(self.rng.pick(&["DoNotSchedule", "ScheduleAnyway"]))),
                ("maxSkew", s("1")),
            ]);
            pairs.push(("topologySpreadConstraints", Yaml::List(vec![spread])));
        }
        map(pairs)
    }

    fn template(&mut self) -> Yaml {
        let mut pairs = Vec::new();
        if self.rng.chance(80) {
            let labels = self.texts(2).into_iter().map(|(key, value)| (key, s(value))).collect();
            pairs.push(("metadata", map(vec![("labels", Yaml::Map(labels))])));
        }
        pairs.push(("spec", self.pod()));
        map(pairs)
    }

    fn data(&mut self) -> Yaml {
        let mut pairs = Vec::new();
        for key in ["k", "host", "port", "conf.yaml"] {
            if self.rng.chance(60) {
                let value = match self.rng.below(6) {
                    0 => Yaml::Block("line one\nline two\n".to_owned()),
                    1 => Yaml::Block("a:\n  b: 1\n  c: [x, y]".to_owned()),
                    2 => s("'{\"a\": {\"b\": 1}}'"),
                    _ => self.scalar(),
                };
                pairs.push((key, value));
            }
        }
        map(pairs)
    }

    fn object(&mut self) -> Object {
        let name = self.rng.pick(&NAMES).to_owned();
        let selector = map(vec![("matchLabels", map(vec![("app", s(name.clone()))]))]);
        let (api, kind, body): (&'static str, &'static str, Vec<(&'static str, Yaml)>) = match self.rng.below(20) {
            0..=3 => {
                let kind = self.rng.pick(&["Deployment", "StatefulSet", "DaemonSet", "Deployment"]);
                let mut spec = vec![("selector", selector), ("template", self.template())];
                if self.rng.chance(60) {
                    spec.insert(0, ("replicas", s(self.rng.pick(&NUMBERS))));
                }
                ("apps/v1", kind, vec![("spec", map(spec))])
            }
            4 => (
                "argoproj.io/v1alpha1",
                "Rollout",
                vec![("spec", map(vec![("replicas", s("2")), ("selector", selector), ("template", self.template())]))],
            ),
            5 | 6 => ("v1", "ConfigMap", vec![("data", self.data())]),
            7 => ("v1", "Secret", vec![("type", s("Opaque")), (self.rng.pick(&["data", "stringData"]), self.data())]),
            8 | 9 => {
                let port = map(vec![("port", s("80")), ("targetPort", s(self.rng.pick(&["8080", "http"])))]);
                let mut spec = vec![("ports", Yaml::List(vec![port]))];
                if self.rng.chance(70) {
                    spec.push(("selector", map(vec![("app", s(name.clone()))])));
                }
                ("v1", "Service", vec![("spec", map(spec))])
            }
            10 => ("v1", "ServiceAccount", Vec::new()),
            11 => {
                let job = map(vec![("spec", map(vec![("template", self.template())]))]);
                ("batch/v1", "CronJob", vec![("spec", map(vec![("schedule", s("'* * * * *'")), ("jobTemplate", job)]))])
            }
            12 => {
                let subjects = Yaml::List(vec![map(vec![
                    ("kind", s("ServiceAccount")),
                    ("name", s(self.rng.pick(&NAMES))),
                    ("namespace", s(self.rng.pick(&["default", "old"]))),
                ])]);
                let role = map(vec![
                    ("apiGroup", s("rbac.authorization.k8s.io")),
                    ("kind", s(self.rng.pick(&["Role", "ClusterRole"]))),
                    ("name", s(self.rng.pick(&NAMES))),
                ]);
                let kind = self.rng.pick(&["RoleBinding", "ClusterRoleBinding"]);
                ("rbac.authorization.k8s.io/v1", kind, vec![("roleRef", role), ("subjects", subjects)])
            }
            13 => {
                let rule = map(vec![
                    ("apiGroups", Yaml::List(vec![s("\"\"")])),
                    ("resources", Yaml::List(vec![s("configmaps")])),
                    ("resourceNames", Yaml::List(vec![s(self.rng.pick(&NAMES))])),
                    ("verbs", Yaml::List(vec![s("get")])),
                ]);
                (
                    "rbac.authorization.k8s.io/v1",
                    self.rng.pick(&["Role", "ClusterRole"]),
                    vec![("rules", Yaml::List(vec![rule]))],
                )
            }
            14 => {
                let target = map(vec![
                    ("apiVersion", s("apps/v1")),
                    ("kind", s("Deployment")),
                    ("name", s(self.rng.pick(&NAMES))),
                ]);
                let api = self.rng.pick(&["autoscaling/v2", "autoscaling/v1"]);
                (
                    api,
                    "HorizontalPodAutoscaler",
                    vec![("spec", map(vec![("scaleTargetRef", target), ("maxReplicas", s("3"))]))],
                )
            }
            15 => {
                let backend = map(vec![(
                    "service",
                    map(vec![("name", s(self.rng.pick(&NAMES))), ("port", map(vec![("number", s("80"))]))]),
                )]);
                let path = map(vec![("path", s("/")), ("pathType", s("Prefix")), ("backend", backend)]);
                let rule = map(vec![("host", s("h.example")), ("http", map(vec![("paths", Yaml::List(vec![path]))]))]);
                ("networking.k8s.io/v1", "Ingress", vec![("spec", map(vec![("rules", Yaml::List(vec![rule]))]))])
            }
            16 => ("v1", "Namespace", Vec::new()),
            17 => (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                vec![("spec", map(vec![("group", s("example.org"))]))],
            ),
            18 => {
                let claim = map(vec![
                    ("accessModes", Yaml::List(vec![s("ReadWriteOnce")])),
                    ("storageClassName", s(self.rng.pick(&NAMES))),
                ]);
                ("v1", "PersistentVolumeClaim", vec![("spec", claim)])
            }
            _ => {
                let spec = vec![
                    ("value", self.scalar()),
                    ("list", Yaml::List(vec![self.scalar(), self.scalar()])),
                    ("deep", map(vec![("a", self.scalar()), ("b", self.scalar())])),
                ];
                ("example.org/v1", "Thing", vec![("spec", map(spec))])
            }
        };
        let namespace = self.rng.chance(20).then(|| self.rng.pick(&["default", "old", "team"]).to_owned());
        let labels = if self.rng.chance(50) { self.texts(2) } else { Vec::new() };
        let annotations = if self.rng.chance(25) {
            vec![("note".to_owned(), self.rng.pick(&SCALARS).to_owned())]
        } else {
            Vec::new()
        };
        Object { api, kind, name, namespace, body, labels, annotations }
    }

    /// The fields of one kustomization; a base has resources of its own.
    fn level(&mut self, directory: &'static str, base: bool) -> Vec<(&'static str, Yaml)> {
        let mut fields: Vec<(&'static str, Yaml)> = Vec::new();
        if base {
            let mut text = String::new();
            let mut seen: Vec<(String, String)> = Vec::new();
            for _ in 0..2 + self.rng.below(5) {
                let object = self.object();
                let id = (object.kind.to_owned(), object.name.clone());
                if seen.contains(&id) && !self.rng.chance(3) {
                    continue;
                }
                seen.push(id);
                if !text.is_empty() {
                    text.push_str("---\n");
                }
                let yaml = object.yaml();
                let mut part = String::new();
                yaml.block(0, &mut part, &mut self.rng);
                text.push_str(&part);
                self.objects.push(object);
            }
            self.files.push((format!("{directory}/all.yaml"), text));
            fields.push(("resources", Yaml::List(vec![s("all.yaml")])));
        }
        let often = if base { 12 } else { 28 };
        if self.rng.chance(often) {
            fields.push(("namespace", s(self.rng.pick(&["team", "prod", "default"]))));
        }
        if self.rng.chance(often) {
            fields.push(("namePrefix", s(self.rng.pick(&["dev-", "p-"]))));
        }
        if self.rng.chance(often / 2) {
            fields.push(("nameSuffix", s(self.rng.pick(&["-v2", "-s"]))));
        }
        if self.rng.chance(often / 2) {
            let labels = self.texts(2).into_iter().map(|(key, value)| (key, s(value))).collect();
            fields.push(("commonLabels", Yaml::Map(labels)));
        }
        if self.rng.chance(often) {
            let labels = self.texts(2).into_iter().map(|(key, value)| (key, s(value))).collect();
            let mut entry = vec![("pairs", Yaml::Map(labels))];
            for flag in ["includeSelectors", "includeTemplates", "includeVolumeClaimTemplates"] {
                if self.rng.chance(30) {
                    entry.push((flag, s("true")));
                }
            }
            fields.push(("labels", Yaml::List(vec![map(entry)])));
        }
        if self.rng.chance(often / 2) {
            fields.push(("commonAnnotations", map(vec![("owner", s(self.rng.pick(&["me", "\"1\"", "'true'"])))])));
        }
        if self.rng.chance(often) {
            let images = (0..1 + self.rng.below(2)).map(|_| self.image()).collect();
            fields.push(("images", Yaml::List(images)));
        }
        if self.rng.chance(often / 3) {
            let scaled = self.objects.iter().filter(|object| matches!(object.kind, "Deployment" | "StatefulSet"));
            let names: Vec<String> = scaled.map(|object| object.name.clone()).collect();
            let name = if self.rng.chance(2) { "nobody" } else { names.first().map_or("", String::as_str) };
            if !name.is_empty() {
                let count = s(self.rng.pick(&["1", "5"]));
                fields.push(("replicas", Yaml::List(vec![map(vec![("name", s(name)), ("count", count)])])));
            }
        }
        if self.rng.chance(often) {
            let count = 1 + self.rng.below(2);
            let (field, kind) =
                if self.rng.chance(65) { ("configMapGenerator", "ConfigMap") } else { ("secretGenerator", "Secret") };
            let entries = (0..count).map(|index| self.generator(directory, kind, index)).collect();
            fields.push((field, Yaml::List(entries)));
        }
        if self.rng.chance(often / 4) {
            fields.push((
                "generatorOptions",
                map(vec![("disableNameSuffixHash", s("true")), ("labels", map(vec![("made", s("here"))]))]),
            ));
        }
        if self.rng.chance(often * 2) {
            let entries: Vec<Yaml> = (0..1 + self.rng.below(3)).map(|index| self.patch(directory, index)).collect();
            fields.push(("patches", Yaml::List(entries)));
        }
        if self.rng.chance(often / 3) {
            let text = self.strategic();
            fields.push(("patchesStrategicMerge", Yaml::List(vec![Yaml::Block(text)])));
        }
        if self.rng.chance(often / 3) {
            let object = self.any_object();
            let target = self.target(&object, true);
            let text = self.json_patch(&object);
            fields.push((
                "patchesJson6902",
                Yaml::List(vec![map(vec![("target", target), ("patch", Yaml::Block(text))])]),
            ));
        }
        if self.rng.chance(often / 2) {
            let entries = (0..1 + self.rng.below(2)).map(|_| self.replacement()).collect();
            fields.push(("replacements", Yaml::List(entries)));
        }
        if self.rng.chance(often / 5) && directory == "overlay" {
            let object = self.any_object();
            let reference =
                map(vec![("apiVersion", s(object.api)), ("kind", s(object.kind)), ("name", s(object.name))]);
            fields.push(("vars", Yaml::List(vec![map(vec![("name", s("VAR")), ("objref", reference)])])));
        }
        if self.rng.chance(often / 5) {
            let spec = map(vec![
                ("path", s(self.rng.pick(&["spec/value", "spec/deep/a", "spec/list"]))),
                ("kind", s("Thing")),
            ]);
            let reference = map(vec![
                ("kind", s("ConfigMap")),
                ("version", s("v1")),
                ("fieldSpecs", Yaml::List(vec![spec.clone()])),
            ]);
            let label = map(vec![("path", s("spec/deep/labels")), ("kind", s("Thing")), ("create", s("true"))]);
            let configuration = map(vec![
                ("nameReference", Yaml::List(vec![reference])),
                ("commonLabels", Yaml::List(vec![label])),
                ("images", Yaml::List(vec![spec])),
            ]);
            self.write(&format!("{directory}/conf.yaml"), &configuration);
            fields.push(("configurations", Yaml::List(vec![s("conf.yaml")])));
        }
        if fields.is_empty() {
            fields.push(("resources", Yaml::List(Vec::new())));
        }
        fields
    }

    fn any_object(&mut self) -> Object {
        let index = self.rng.below(self.objects.len());
        self.objects[index].clone()
    }

    fn image(&mut self) -> Yaml {
        let mut pairs = vec![(
            "name",
            s(self.rng.pick(&["nginx", "registry.example/web", "busybox", "redis", "registry.example:5000/api"])),
        )];
        for (field, values) in [
            ("newName", ["mirror.example/x", "other"]),
            ("newTag", ["\"2.0\"", "v3"]),
            ("digest", ["sha256:abcd", "sha256:ef"]),
            ("tagSuffix", ["-debug", "-x"]),
        ] {
            if self.rng.chance(if field == "newTag" { 70 } else { 20 }) {
                pairs.push((field, s(self.rng.pick(&values))));
            }
        }
        map(pairs)
    }

    fn generator(&mut self, directory: &str, kind: &'static str, index: usize) -> Yaml {
        let there: Vec<String> =
            self.objects.iter().filter(|object| object.kind == kind).map(|object| object.name.clone()).collect();
        let joins = !there.is_empty() && self.rng.chance(45);
        let name = if joins {
            there[self.rng.below(there.len())].clone()
        } else {
            let name = self.rng.pick(&NAMES).to_owned();
            if there.contains(&name) && !self.rng.chance(3) { format!("gen-{directory}-{index}") } else { name }
        };
        let mut pairs = vec![("name", s(name.clone()))];
        if joins {
            pairs.push(("behavior", s(self.rng.pick(&["merge", "replace", "merge"]))));
        } else {
            self.objects.push(Object {
                api: "v1",
                kind,
                name,
                namespace: None,
                body: Vec::new(),
                labels: Vec::new(),
                annotations: Vec::new(),
            });
        }
        let literals = ["k=v", "n=1", "q=\"x y\"", "port=8080", "e=", "flag=true"];
        let chosen = literals
            .iter()
            .filter(|_| self.rng.chance(40))
            .map(|literal| s(format!("'{}'", literal.replace('\'', "''"))))
            .collect();
        pairs.push(("literals", Yaml::List(chosen)));
        if self.rng.chance(30) {
            let file = format!("file{index}.txt");
            self.files.push((format!("{directory}/{file}"), "hello\nworld\n".repeat(1 + self.rng.below(4))));
            pairs.push(("files", Yaml::List(vec![s(if self.rng.chance(50) { file } else { format!("key={file}") })])));
        }
        if self.rng.chance(20) {
            let file = format!("e{index}.env");
            self.files.push((format!("{directory}/{file}"), "# c\nEA=1\n EB=x=y \n\nEC\n".to_owned()));
            pairs.push(("envs", Yaml::List(vec![s(file)])));
        }
        if self.rng.chance(20) {
            pairs.push((
                "options",
                map(vec![
                    ("disableNameSuffixHash", s(self.rng.pick(&["true", "false"]))),
                    ("annotations", map(vec![("a", s("b"))])),
                ]),
            ));
        }
        if !joins && self.rng.chance(12) {
            pairs.push(("namespace", s(self.rng.pick(&["team", "old"]))));
        }
        map(pairs)
    }

    fn target(&mut self, object: &Object, exact: bool) -> Yaml {
        let mut pairs = vec![("kind", s(object.kind))];
        if exact || self.rng.chance(80) {
            let name = if !exact && self.rng.chance(20) { "'.*b'".to_owned() } else { object.name.clone() };
            pairs.push(("name", s(name)));
        }
        if self.rng.chance(15) {
            pairs.push(("version", s(object.api.rsplit('/').next().unwrap())));
        }
        if self.rng.chance(8) && !exact {
            pairs.push(("labelSelector", s(self.rng.pick(&["app=a", "\"tier in (a, c-d)\"", "'!env'"]))));
        }
        map(pairs)
    }

    fn patch(&mut self, directory: &str, index: usize) -> Yaml {
        if self.rng.chance(45) {
            let object = self.any_object();
            let target = self.target(&object, false);
            let text = self.json_patch(&object);
            return self.entry(directory, index, text, Some(target));
        }
        let text = self.strategic();
        let object = self.any_object();
        let target = self.rng.chance(40).then(|| self.target(&object, false));
        self.entry(directory, index, text, target)
    }

    fn entry(&mut self, directory: &str, index: usize, text: String, target: Option<Yaml>) -> Yaml {
        let mut pairs = Vec::new();
        if self.rng.chance(25) {
            let file = format!("patch{index}.yaml");
            self.files.retain(|(path, _)| *path != format!("{directory}/{file}"));
            self.files.push((format!("{directory}/{file}"), text));
            pairs.push(("path", s(file)));
        } else {
            pairs.push(("patch", Yaml::Block(text)));
        }
        pairs.extend(target.map(|target| ("target", target)));
        if self.rng.chance(6) {
            pairs.push(("options", map(vec![("allowNameChange", s("true"))])));
        }
        map(pairs)
    }

    fn json_patch(&mut self, object: &Object) -> String {
        let mut list = Vec::new();
        for _ in 0..1 + self.rng.below(2) {
            let (op, path) = if self.rng.chance(4) {
                (
                    self.rng.pick(&["test", "remove", "copy", "replace"]),
                    self.rng.pick(&["/metadata/labels", "/data/k", "/spec/list/7", "/spec/no/where"]),
                )
            } else {
                let paths: &[&str] = match object.kind {
                    "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout" => &[
                        "/spec/replicas",
                        "/spec/template/spec/containers/0/image",
                        "/spec/template/spec/containers/0/env",
                        "/spec/template/spec/containers/-",
                        "/metadata/labels",
                    ],
                    "ConfigMap" => &["/data", "/metadata/labels", "/metadata/name"],
                    "Thing" => &["/spec/value", "/spec/list/0", "/spec/deep/c", "/spec/list/-", "/metadata/name"],
                    _ => &["/metadata/labels", "/metadata/name"],
                };
                (self.rng.pick(&["add", "replace", "add"]), self.rng.pick(paths))
            };
            let op = if path.ends_with('-') { "add" } else { op };
            let mut pairs = vec![("op", s(op)), ("path", s(path))];
            let value = match path {
                "/metadata/labels" | "/data" => map(vec![("app", s(self.rng.pick(&["x", "\"1\"", "'y'"])))]),
                "/metadata/name" => s(self.rng.pick(&["renamed", "web"])),
                "/spec/template/spec/containers/0/env" => self.env(),
                "/spec/template/spec/containers/-" => map(vec![("name", s("new")), ("image", s("nginx"))]),
                _ => self.scalar(),
            };
            match op {
                "remove" => {}
                "copy" => pairs.push(("from", s("/metadata/name"))),
                _ => pairs.push(("value", value)),
            }
            list.push(map(pairs));
        }
        let mut text = String::new();
        Yaml::List(list).block(0, &mut text, &mut self.rng);
        text
    }

    fn strategic(&mut self) -> String {
        let object = self.any_object();
        let mut metadata = vec![("name", s(object.name.clone()))];
        if let Some(namespace) = object.namespace.clone().filter(|_| self.rng.chance(90)) {
            metadata.push(("namespace", s(namespace)));
        }
        if self.rng.chance(40) {
            let mut labels: Vec<(String, Yaml)> =
                self.texts(2).into_iter().map(|(key, value)| (key, s(value))).collect();
            if self.rng.chance(25) && !labels.iter().any(|(key, _)| key == "env") {
                labels.push(("env".to_owned(), s("null")));
            }
            metadata.push(("labels", Yaml::Map(labels)));
        }
        if self.rng.chance(15) {
            metadata.push(("annotations", map(vec![("note", self.scalar())])));
        }
        let mut pairs = vec![("apiVersion", s(object.api)), ("kind", s(object.kind)), ("metadata", map(metadata))];
        if self.rng.chance(5) {
            pairs.push(("$patch", s(self.rng.pick(&["delete", "replace"]))));
        } else {
            match object.kind {
                "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout" => {
                    let mut spec = Vec::new();
                    if self.rng.chance(40) {
                        spec.push(("replicas", s(self.rng.pick(&["5", "\"7\"", "null"]))));
                    }
                    if self.rng.chance(75) {
                        let pod = self.pod_patch();
                        spec.push(("template", map(vec![("spec", pod)])));
                    }
                    pairs.push(("spec", map(spec)));
                }
                "ConfigMap" | "Secret" => {
                    let mut data = vec![("k", self.scalar())];
                    if self.rng.chance(40) {
                        data.push(("new", self.scalar()));
                    }
                    if self.rng.chance(20) {
                        data.push(("host", s("null")));
                    }
                    if self.rng.chance(10) {
                        data.push(("$patch", s("replace")));
                    }
                    pairs.push(("data", map(data)));
                }
                "Service" => {
                    let port = map(vec![("port", s(self.rng.pick(&["80", "443"]))), ("name", s("added"))]);
                    pairs.push(("spec", map(vec![("ports", Yaml::List(vec![port]))])));
                }
                "Thing" => {
                    let spec = vec![
                        ("value", self.scalar()),
                        ("list", Yaml::List(vec![self.scalar()])),
                        ("deep", map(vec![("a", self.scalar()), ("z", self.scalar())])),
                    ];
                    pairs.push(("spec", map(spec)));
                }
                _ => {}
            }
        }
        let mut text = String::new();
        map(pairs).block(0, &mut text, &mut self.rng);
        text
    }

    fn pod_patch(&mut self) -> Yaml {
        let mut pairs = Vec::new();
        let mut containers = Vec::new();
        for name in ["main", "side", "third"] {
            if !self.rng.chance(50) {
                continue;
            }
            let mut container = vec![("name", s(name))];
            match self.rng.below(6) {
                0 => container.push(("$patch", s("delete"))),
                1 => container.push(("image", s(self.rng.pick(&IMAGES)))),
                2 => container.push(("ports", self.ports())),
                3 => {
                    let entry = map(vec![("name", s(self.rng.pick(&["A", "B", "Z"]))), ("value", self.scalar())]);
                    let mut list = vec![entry];
                    if self.rng.chance(25) {
                        list.push(map(vec![("name", s("C")), ("$patch", s("delete"))]));
                    }
                    container.push(("env", Yaml::List(list)));
                }
                4 => container.push(("env", s("null"))),
                _ => container.push(("args", Yaml::List(vec![self.scalar(), s("x")]))),
            }
            containers.push(map(container));
        }
        if self.rng.chance(8) {
            containers.push(map(vec![("$patch", s("replace"))]));
        }
        pairs.push(("containers", Yaml::List(containers)));
        if self.rng.chance(25) {
            let volume = map(vec![("name", s(self.rng.pick(&["data", "keys", "tmp"]))), ("emptyDir", map(Vec::new()))]);
            pairs.push(("volumes", Yaml::List(vec![volume])));
        }
        if self.rng.chance(15) {
            pairs.push(("tolerations", Yaml::List(vec![map(vec![("key", s("other"))])])));
        }
        if self.rng.chance(12) {
            let spread = map(vec![("topologyKey", s(self.rng.pick(&["zone", "host"]))), ("maxSkew", s("2"))]);
            pairs.push(("topologySpreadConstraints", Yaml::List(vec![spread])));
        }
        map(pairs)
    }

    fn replacement(&mut self) -> Yaml {
        let mut pairs = Vec::new();
        if self.rng.chance(20) {
            pairs.push(("sourceValue", s(self.rng.pick(&["plain", "\"12\"", "'a b'"]))));
        } else {
            let object = self.any_object();
            let path = match object.kind {
                "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout" => self.rng.pick(&[
                    "spec.template.spec.containers.[name=main].image",
                    "spec.template.spec.containers.0.name",
                    "metadata.name",
                ]),
                "ConfigMap" => self.rng.pick(&["metadata.name", "data.host", "data.port"]),
                "Thing" => self.rng.pick(&["spec.value", "spec.deep", "spec.list", "spec.list.1", "spec.deep.b"]),
                "Service" => self.rng.pick(&["spec.ports.0.port", "metadata.name"]),
                _ => "metadata.name",
            };
            let path = format!("\"{path}\"");
            let mut source = vec![("kind", s(object.kind)), ("name", s(object.name)), ("fieldPath", s(path))];
            if self.rng.chance(6) {
                source.push(("options", map(vec![("delimiter", s("':'")), ("index", s(self.rng.pick(&["0", "1"])))])));
            }
            pairs.push(("source", map(source)));
        }
        let object = self.any_object();
        let mut select = vec![("kind", s(object.kind))];
        if self.rng.chance(60) {
            select.push(("name", s(object.name)));
        }
        let path = match object.kind {
            "Deployment" | "StatefulSet" | "DaemonSet" | "Rollout" => self.rng.pick(&[
                "spec.replicas",
                "spec.template.spec.containers.*.image",
                "spec.template.spec.containers.[name=main].env.[name=A].value",
                "spec.template.spec.containers.0.image",
                "metadata.annotations.copied",
            ]),
            "ConfigMap" => {
                self.rng.pick(&["data.host", "data.[conf.yaml].a.b", "data.k", "metadata.annotations.copied"])
            }
            "Thing" => self.rng.pick(&[
                "spec.value",
                "spec.list.0",
                "spec.deep.a",
                "spec.list.2",
                "spec.deep",
                "metadata.name",
            ]),
            _ => self.rng.pick(&["metadata.annotations.copied", "metadata.labels.copied"]),
        };
        let mut target = vec![("select", map(select)), ("fieldPaths", Yaml::List(vec![s(format!("\"{path}\""))]))];
        let mut options = Vec::new();
        if self.rng.chance(88) {
            options.push(("create", s("true")));
        }
        if self.rng.chance(20) {
            options.push(("delimiter", s("':'")));
            options.push(("index", s(self.rng.pick(&["0", "1", "-1", "9"]))));
        }
        if !options.is_empty() {
            target.push(("options", map(options)));
        }
        if self.rng.chance(15) {
            target.push(("reject", Yaml::List(vec![map(vec![("name", s(self.rng.pick(&["web", "'x.*'"])))])])));
        }
        pairs.push(("targets", Yaml::List(vec![map(target)])));
        map(pairs)
    }
}

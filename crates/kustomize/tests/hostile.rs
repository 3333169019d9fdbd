//! Trees that mean harm: each gives one message, in bounded time and memory.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::Memory;
use tidegate_kustomize::{Budgets, Options, Restrict, render};

/// Far more than any of these takes, and far less than one that runs away.
const LONG: Duration = Duration::from_secs(120);

#[track_caller]
fn refused(files: &[(&str, &str)], expected: &str) {
    refused_tree(&Memory::of(files), &Options::default(), expected);
}

#[track_caller]
fn refused_tree(tree: &Memory, options: &Options, expected: &str) {
    let start = Instant::now();
    let message = match render(tree, "o", options) {
        Ok(rendered) => format!("rendered {} objects", rendered.objects.len()),
        Err(failed) => failed.problem.to_string(),
    };
    assert!(start.elapsed() < LONG, "took {:?}", start.elapsed());
    assert!(message.contains(expected), "{message}");
    assert!(message.len() < 1000, "the message has {} bytes", message.len());
}

#[track_caller]
fn rendered(tree: &Memory, expected: usize) {
    let start = Instant::now();
    let objects = render(tree, "o", &Options::default()).map_err(|failed| failed.problem.to_string()).unwrap().objects;
    assert!(start.elapsed() < LONG, "took {:?}", start.elapsed());
    assert_eq!(objects.len(), expected);
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n";

fn maps(count: usize) -> String {
    (0..count)
        .map(|n| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\ndata: {{k: v}}\n---\n"))
        .collect()
}

#[test]
fn paths_do_not_leave_the_tree() {
    refused(
        &[("o/kustomization.yaml", "resources: [../../x.yaml]")],
        "o/kustomization.yaml:1:13: \"../../x.yaml\" leads out of the repository",
    );
    refused(&[("o/kustomization.yaml", "resources: [../..]")], "leads out of the repository");
    refused(&[("o/kustomization.yaml", "resources: [/etc/passwd]")], "is an absolute path");
    refused(
        &[("o/kustomization.yaml", "configMapGenerator: [{name: c, files: [/etc/passwd]}]")],
        "is an absolute path",
    );
    refused(
        &[("o/kustomization.yaml", "configMapGenerator: [{name: c, files: [../../../etc/passwd]}]")],
        "leads out of the repository",
    );
    refused(
        &[("o/kustomization.yaml", "configMapGenerator: [{name: c, files: [../x]}]"), ("x", "secret")],
        "x is not in or below o",
    );
}

#[test]
fn links_stay_inside() {
    let links = |pairs: &[(&str, &str)], resource: &str| {
        let mut tree = Memory::of(&[("o/kustomization.yaml", &format!("resources: [{resource}]")), ("a.yaml", MAP)]);
        tree.links = pairs.iter().map(|(path, target)| ((*path).to_owned(), (*target).to_owned())).collect();
        tree
    };
    let refused =
        |pairs: &[(&str, &str)], expected: &str| refused_tree(&links(pairs, "l"), &Options::default(), expected);
    refused(&[("o/l", "../a.yaml")], "a.yaml is not in or below o");
    refused(&[("o/l", "../../etc/passwd")], "leads out of the repository");
    refused(&[("o/l", "/etc/passwd")], "o/l is a symbolic link to an absolute path");
    refused(&[("o/l", "m"), ("o/m", "l")], "go in a circle");
    let mut anywhere = Options { restrict: Restrict::Repository, ..Options::default() };
    assert_eq!(render(&links(&[("o/l", "../a.yaml")], "l"), "o", &anywhere).unwrap().objects.len(), 1);
    anywhere.restrict = Restrict::Root;
    refused_tree(
        &links(&[("o/kustomization.yml", "/etc/passwd")], "missing.yaml"),
        &anywhere,
        "is neither a file nor a directory",
    );
}

#[test]
fn circles_end() {
    refused(&[("o/kustomization.yaml", "resources: [.]")], "o is being built already");
    refused(
        &[("o/kustomization.yaml", "resources: [../a]"), ("a/kustomization.yaml", "resources: [../o]")],
        "a/kustomization.yaml:1:13: o is being built already",
    );
    refused(&[("o/kustomization.yaml", "resources: [..]"), ("kustomization.yaml", "resources: [o]")], "lies above o");
    refused(
        &[
            ("o/kustomization.yaml", "components: [../a]"),
            ("a/kustomization.yaml", "kind: Component\ncomponents: [../b]"),
            ("b/kustomization.yaml", "kind: Component\ncomponents: [../a]"),
        ],
        "a is being built already",
    );
    let mut tree = Memory::default();
    for n in 0..200 {
        let name = if n == 0 { "o".to_owned() } else { format!("d{n}") };
        tree.files.insert(format!("{name}/kustomization.yaml"), format!("resources: [../d{}]", n + 1).into_bytes());
    }
    refused_tree(&tree, &Options::default(), "more than 64 kustomizations lie in each other");
}

#[test]
fn a_tree_of_bases_that_doubles_at_every_level_ends() {
    // Twenty levels, each of which builds the next one twice.
    let mut tree = Memory::default();
    for n in 0..20 {
        let name = if n == 0 { "o".to_owned() } else { format!("d{n}") };
        tree.files.insert(format!("{name}/kustomization.yaml"), b"resources: [left, right]".to_vec());
        for (half, prefix) in [("left", "l-"), ("right", "r-")] {
            let text = format!("resources: [../../d{}]\nnamePrefix: {prefix}", n + 1);
            tree.files.insert(format!("{name}/{half}/kustomization.yaml"), text.into_bytes());
        }
    }
    tree.files.insert("d20/kustomization.yaml".to_owned(), b"resources: [a.yaml]".to_vec());
    tree.files.insert("d20/a.yaml".to_owned(), MAP.as_bytes().to_vec());
    refused_tree(&tree, &Options::default(), "the build reads more than 10000 files");
}

#[test]
fn bombs_of_aliases_do_not_go_off() {
    let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        yaml.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    refused(
        &[("o/kustomization.yaml", "resources: [a.yaml]"), ("o/a.yaml", &format!("{MAP}{yaml}"))],
        "the build needs more than",
    );
    refused(&[("o/kustomization.yaml", &yaml)], "aliases repeat more than a million values");
    refused(
        &[("o/kustomization.yaml", "resources: [a.yaml]"), ("o/a.yaml", &format!("{MAP}data: &d {{x: *d}}\n"))],
        "inside the value that it names",
    );
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("{}x{}", "[".repeat(5000), "]".repeat(5000));
    refused(
        &[("o/kustomization.yaml", "resources: [a.yaml]"), ("o/a.yaml", &format!("{MAP}data: {deep}\n"))],
        "levels deep",
    );
    refused(&[("o/kustomization.yaml", &format!("resources: {deep}\n"))], "levels deep");
    // Every replacement puts the object into itself.
    let replacement = "- source: {kind: Thing, fieldPath: spec}\n  targets: [{select: {kind: Thing}, fieldPaths: [spec.a], options: {create: true}}]\n";
    let kustomization = format!("resources: [a.yaml]\nreplacements:\n{}", replacement.repeat(300));
    let thing = "apiVersion: x/v1\nkind: Thing\nmetadata: {name: t}\nspec: {b: 1, c: {d: 2}}\n";
    refused(&[("o/kustomization.yaml", &kustomization), ("o/a.yaml", thing)], "levels deep");
    // And now twice, so that its size doubles.
    let doubling = "- source: {kind: Thing, fieldPath: spec}\n  targets: [{select: {kind: Thing}, fieldPaths: [spec.a, spec.x], options: {create: true}}]\n";
    let kustomization = format!("resources: [a.yaml]\nreplacements:\n{}", doubling.repeat(90));
    refused(&[("o/kustomization.yaml", &kustomization), ("o/a.yaml", thing)], "the build needs more than");
}

#[test]
fn generators_stay_within_the_budget() {
    let mut tree = Memory::of(&[("o/kustomization.yaml", "configMapGenerator: [{name: c, files: [big]}]")]);
    tree.files.insert("o/big".to_owned(), vec![b'x'; 17 << 20]);
    refused_tree(&tree, &Options::default(), "o/big has 17825792 bytes");
    let entries: String = (0..20).map(|n| format!("- {{name: c{n}, files: [big]}}\n")).collect();
    let mut tree = Memory::of(&[("o/kustomization.yaml", &format!("configMapGenerator:\n{entries}"))]);
    tree.files.insert("o/big".to_owned(), vec![b'x'; 8 << 20]);
    refused_tree(&tree, &Options::default(), "reads more than 67108864 bytes");
    let entries: String = (0..10_001).map(|n| format!("- {{name: c{n}}}\n")).collect();
    refused(&[("o/kustomization.yaml", &format!("configMapGenerator:\n{entries}"))], "more than 10000 objects");
}

#[test]
fn expressions_cannot_explode() {
    let target = |pattern: &str| {
        format!(
            "resources: [a.yaml]\npatches:\n- target: {{name: '{pattern}'}}\n  patch: |\n    - {{op: add, path: /data, value: {{}}}}\n"
        )
    };
    let refused = |pattern: &str, expected: &str| {
        refused(&[("o/kustomization.yaml", &target(pattern)), ("o/a.yaml", MAP)], expected)
    };
    refused("((((a{1000}){1000}){1000}){1000})", "is no regular expression");
    refused("(?=x)", "is no regular expression");
    refused(&"(".repeat(500), "is no regular expression");
    refused(&"a".repeat(5000), "longer than 4096 bytes");
    // Linear, however it is written.
    let name = "a".repeat(20_000);
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    rendered(&Memory::of(&[("o/kustomization.yaml", &target("(a*)*b")), ("o/a.yaml", &map)]), 1);
}

#[test]
fn ten_thousand_objects_are_rendered_and_one_more_is_refused() {
    let kustomization = "resources: [a.yaml]\nnamespace: team\nnamePrefix: p-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\ncommonAnnotations: {x: z}\n";
    rendered(&Memory::of(&[("o/kustomization.yaml", kustomization), ("o/a.yaml", &maps(10_000))]), 10_000);
    refused(&[("o/kustomization.yaml", kustomization), ("o/a.yaml", &maps(10_001))], "more than 10000 objects");
}

#[test]
fn work_that_grows_with_the_square_ends() {
    let options = Options { budgets: Budgets { steps: 2_000_000, ..Budgets::default() }, ..Options::default() };
    // Every patch looks at every object.
    let patch = "- target: {labelSelector: a=b}\n  patch: |\n    - {op: add, path: /data/x, value: z}\n";
    let kustomization = format!("resources: [a.yaml]\npatches:\n{}", patch.repeat(500));
    let tree = Memory::of(&[("o/kustomization.yaml", &kustomization), ("o/a.yaml", &maps(500))]);
    refused_tree(&tree, &options, "more steps than it may");
    // Every element of a list looks for its like in another.
    let env: String = (0..2000).map(|n| format!("        - {{name: e{n}, value: v}}\n")).collect();
    let head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n";
    let pod = format!("{head}      containers:\n      - name: c\n        env:\n{env}");
    let kustomization = "resources: [a.yaml]\npatches: [{path: p.yaml}]\n";
    let tree = Memory::of(&[("o/kustomization.yaml", kustomization), ("o/a.yaml", &pod), ("o/p.yaml", &pod)]);
    refused_tree(&tree, &options, "more steps than it may");
}

#[test]
fn texts_that_multiply_end() {
    let long = "x".repeat(1 << 18);
    let options = Options { budgets: Budgets { text: 16 << 20, ..Budgets::default() }, ..Options::default() };
    let refused = |files: &[(&str, &str)], expected: &str| refused_tree(&Memory::of(files), &options, expected);
    let label = format!("resources: [a.yaml]\nlabels: [{{pairs: {{a: {long}}}}}]\n");
    refused(&[("o/kustomization.yaml", &label), ("o/a.yaml", &maps(500))], "bytes of text");
    let prefix = format!("resources: [a.yaml]\nnamePrefix: {long}\n");
    refused(&[("o/kustomization.yaml", &prefix), ("o/a.yaml", &maps(500))], "renamed too often");
    let copies = format!(
        "resources: [a.yaml]\nreplacements:\n- sourceValue: {long}\n  targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [data.k]}}]\n"
    );
    refused(&[("o/kustomization.yaml", &copies), ("o/a.yaml", &maps(500))], "bytes of text");
    let vars = "resources: [a.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: ConfigMap, name: c}, fieldref: {fieldPath: data.long}}]\nconfigurations: [c.yaml]\n";
    let map = format!("{MAP}data:\n  long: {long}\n  k: {}\n", "$(A)".repeat(1000));
    refused(
        &[
            ("o/kustomization.yaml", vars),
            ("o/a.yaml", &map),
            ("o/c.yaml", "varReference: [{path: data, kind: ConfigMap}]"),
        ],
        "bytes of text",
    );
}

#[test]
fn limits_can_be_set() {
    let options = Options { budgets: Budgets { objects: 1, ..Budgets::default() }, ..Options::default() };
    refused_tree(
        &Memory::of(&[("o/kustomization.yaml", "resources: [a.yaml]"), ("o/a.yaml", &maps(2))]),
        &options,
        "more than 1 objects",
    );
    let options = Options { budgets: Budgets { steps: 10, ..Budgets::default() }, ..Options::default() };
    refused_tree(
        &Memory::of(&[("o/kustomization.yaml", "resources: [a.yaml]\nnamespace: x"), ("o/a.yaml", &maps(2))]),
        &options,
        "more steps than it may",
    );
}

#[test]
fn what_would_fetch_or_run_is_refused_by_name() {
    for (kustomization, expected) in [
        ("resources: [https://example.org/a.yaml]", "is an address on the network: nothing is fetched"),
        ("resources: ['git@example.org:a/b']", "is a git repository: nothing is fetched"),
        ("resources: ['github.com/a/b//c?ref=x']", "is a git repository"),
        ("resources: ['git::https://x/y']", "is a git repository"),
        ("components: [https://example.org/a//b]", "is an address on the network"),
        ("resources: []\nopenapi: {path: https://example.org/s.json}", "is an address on the network"),
        ("configurations: [https://example.org/c.yaml]", "is an address on the network"),
        ("configMapGenerator: [{name: c, files: [https://example.org/x]}]", "is an address on the network"),
        ("helmCharts: [{name: x}]", "helmCharts needs helm, which is not run"),
        ("helmGlobals: {chartHome: x}", "helmGlobals needs helm"),
        (
            "generators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: x}\n",
            "needs helm",
        ),
        (
            "transformers:\n- |\n  apiVersion: x/v1\n  kind: Run\n  metadata: {name: x}\n",
            "the plugin Run is not built into kustomize: no program is run",
        ),
        ("validators:\n- |\n  apiVersion: x/v1\n  kind: Run\n  metadata: {name: x}\n", "no program is run"),
    ] {
        refused(&[("o/kustomization.yaml", kustomization)], expected);
    }
}

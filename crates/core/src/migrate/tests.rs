//! What maps and what does not: one row for each case.

use super::*;
use crate::manifest;

fn choices() -> Choices {
    Choices { service_account: "deployer".into(), ..Choices::default() }
}

fn with(text: &str, migrate: impl Fn(&[(&Object, Origin)], &Choices) -> Migration) -> Migration {
    let file = manifest::read("apps.yaml", text.as_bytes());
    assert!(file.mistakes.is_empty(), "{:?}", file.mistakes);
    let objects: Vec<(&Object, Origin)> = file.objects.iter().map(|object| (object, Origin::File)).collect();
    migrate(&objects, &choices())
}

/// What is written for an object, beside what each row has: the spec as YAML, and each note as `weight line field`.
#[track_caller]
fn check(migration: &Migration, spec: &[&str], notes: &[&str]) {
    let specs: Vec<Value> = migration.sources.iter().map(|source| source.at(&["spec"]).unwrap().clone()).collect();
    let expected: Vec<Value> = spec
        .iter()
        .map(|spec| {
            let text = format!("kind: x\napiVersion: v1\nspec: {spec}\n");
            manifest::read("expected", text.as_bytes()).objects[0].value.at(&["spec"]).unwrap().clone()
        })
        .collect();
    assert_eq!(specs, expected);
    let said = migration.notes.iter().map(|note| {
        let line = note.at.as_ref().map_or(0, |(_, position)| position.line);
        format!("{} {line} {}", report::word(note.weight), note.field).trim_end().to_owned()
    });
    assert_eq!(said.collect::<Vec<_>>(), notes, "{:#?}", migration.notes);
}

fn app(spec: &str) -> Migration {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  project: default\n{spec}"
    );
    with(&text, argocd::migrate)
}

const HERE: &str = "destination: {server: https://kubernetes.default.svc, namespace: shop}";
const AUTO: &str = "syncPolicy: {automated: {prune: true, selfHeal: true}}";

#[test]
fn a_plain_application_is_a_git_source_of_its_namespace() {
    let migration = app(&format!(
        "source: {{repoURL: https://git.example/shop/deploy.git, path: ./deploy/, targetRevision: main, directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"
    ));
    let spec = "{url: https://git.example/shop/deploy.git, path: deploy, ref: {branch: main}, serviceAccountName: deployer, prune: true, selfHeal: true}";
    check(&migration, &[spec], &[]);
    let source = &migration.sources[0];
    assert_eq!(source.str_at(&["metadata", "namespace"]), Some("shop"));
    assert_eq!(migration.taken[0].sources, [("shop".to_owned(), "web".to_owned())]);
    assert!(report::notes(&migration).ends_with("1 GitSource from 1 object: everything has an equivalent\n"));
}

#[test]
fn what_argo_cd_asks_the_repository_is_said() {
    #[track_caller]
    fn revision(text: &str, expected: &str, notes: &[&str]) {
        let migration = app(&format!(
            "source: {{repoURL: 'git@git.example:shop', targetRevision: '{text}', directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"
        ));
        let spec = format!(
            "{{url: 'git@git.example:shop', {expected}serviceAccountName: deployer, prune: true, selfHeal: true, secretRef: {{name: web-git}}}}"
        );
        // It cannot be fetched by ssh without a key.
        let notes: Vec<&str> = notes.iter().copied().chain(["to do 6 spec.source.repoURL"]).collect();
        check(&migration, &[&spec], &notes);
    }
    revision("HEAD", "", &[]);
    revision("", "", &[]);
    revision("main", "ref: {branch: main}, ", &[]);
    revision("refs/heads/x", "ref: {branch: x}, ", &[]);
    revision("refs/tags/x", "ref: {tag: x}, ", &[]);
    revision("release", "ref: {branch: release}, ", &["differs 6 spec.source.targetRevision"]);
    revision("v1.2.3", "ref: {tag: v1.2.3}, ", &["differs 6 spec.source.targetRevision"]);
    revision("1.2.*", "ref: {semver: 1.2.*}, ", &[]);
    revision("0123abc", "ref: {branch: 0123abc}, ", &["to do 6 spec.source.targetRevision"]);
    let hash = "0123456789abcdef0123456789abcdef01234567";
    revision(hash, &format!("ref: {{commit: {hash}}}, "), &[]);
}

#[test]
fn what_has_no_equivalent_is_named_with_its_line() {
    let common =
        "url: https://git.example/shop, path: deploy, serviceAccountName: deployer, prune: true, selfHeal: true";
    let source = "source: {repoURL: https://git.example/shop, path: deploy";
    for (more, policy, spec, notes) in [
        (", helm: {values: 'a: b'}}", "", None, &["no equivalent 6 spec.source.helm"][..]),
        (", plugin: {name: x}}", "", None, &["no equivalent 6 spec.source.plugin"]),
        (
            ", kustomize: {namePrefix: a-, images: ['web=x:1']}}",
            "",
            Some(""),
            &["no equivalent 6 spec.source.kustomize.images", "no equivalent 6 spec.source.kustomize.namePrefix"],
        ),
        (", directory: {recurse: true, exclude: '{a.yaml, b/*}'}}", "", Some(", exclude: [a.yaml, b/*]"), &[]),
        (
            ", directory: {include: 'a*'}}",
            "",
            Some(", exclude: ['*/**']"),
            &["no equivalent 6 spec.source.directory.include"],
        ),
        ("}", "", Some(", exclude: ['*/**']"), &["differs 6 spec.source.path"]),
        (
            ", directory: {recurse: true}, fromTheFuture: 1}",
            "",
            Some(""),
            &["no equivalent 6 spec.source.fromTheFuture"],
        ),
        (
            ", directory: {recurse: true}}",
            "\nignoreDifferences: [{kind: Deployment, group: apps, jsonPointers: [/spec/replicas]}]",
            Some(""),
            &["differs 9 spec.ignoreDifferences[0]"],
        ),
        (
            ", directory: {recurse: true}}",
            "\nignoreDifferences: [{kind: Secret, jsonPointers: [/data]}]",
            Some(""),
            &["no equivalent 9 spec.ignoreDifferences[0]"],
        ),
        (", directory: {recurse: true}}", "\ninfo: [{name: a, value: b}]\nrevisionHistoryLimit: 3", Some(""), &[]),
    ] {
        let migration = app(&format!("{source}{more}\n{HERE}\n{AUTO}{policy}"));
        let spec = spec.map(|more| format!("{{{common}{more}}}"));
        check(&migration, &spec.iter().map(String::as_str).collect::<Vec<_>>(), notes);
    }
}

#[test]
fn policies_are_carried_over_and_never_widened() {
    let source = "source: {repoURL: https://git.example/shop, directory: {recurse: true}}";
    for (policy, spec, notes) in [
        ("", "suspend: true, prune: false, selfHeal: false", &["differs 4 spec.syncPolicy"][..]),
        ("syncPolicy: {automated: {}}", "prune: false, selfHeal: false", &[]),
        (
            "syncPolicy: {automated: {enabled: false, prune: true}}",
            "suspend: true, prune: true, selfHeal: false",
            &["differs 8 spec.syncPolicy"],
        ),
        (
            "syncPolicy:\n  automated: {prune: true}\n  retry: {limit: 3}\n  syncOptions:\n  - CreateNamespace=true\n  - ServerSideApply=true\n  - Replace=true\n  - Sing=true",
            "prune: true, selfHeal: false, onImmutable: Replace",
            &[
                "no equivalent 12 spec.syncPolicy.syncOptions[0]",
                "differs 14 spec.syncPolicy.syncOptions[2]",
                "no equivalent 15 spec.syncPolicy.syncOptions[3]",
            ],
        ),
    ] {
        let migration = app(&format!("{source}\n{HERE}\n{policy}"));
        let spec = format!("{{url: https://git.example/shop, serviceAccountName: deployer, {spec}}}");
        check(&migration, &[&spec], notes);
    }
}

#[test]
fn what_cannot_be_a_git_source_is_not_written() {
    let good = "source: {repoURL: https://git.example/shop, directory: {recurse: true}}";
    for (spec, notes) in [
        (
            format!("{good}\ndestination: {{server: https://other.example, namespace: shop}}\n{AUTO}"),
            &["no equivalent 7 spec.destination"][..],
        ),
        (
            format!("source: {{repoURL: https://charts.example, chart: web, targetRevision: 1.0.0}}\n{HERE}\n{AUTO}"),
            &["no equivalent 6 spec.source.chart"],
        ),
        (
            format!("source: {{repoURL: http://git.example/shop, directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"),
            &["no equivalent 6 spec.source.repoURL"],
        ),
        (
            format!(
                "source: {{repoURL: https://git.example/shop, path: ../up, directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"
            ),
            &["no equivalent 3"],
        ),
    ] {
        let migration = app(&spec);
        check(&migration, &[], notes);
        assert!(migration.taken.is_empty());
    }
}

#[test]
fn a_password_in_a_url_goes_nowhere() {
    let migration = app(&format!(
        "source: {{repoURL: 'https://me:s3cret@git.example/shop', directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"
    ));
    check(
        &migration,
        &["{url: https://git.example/shop, serviceAccountName: deployer, prune: true, selfHeal: true}"],
        &["to do 6 spec.source.repoURL"],
    );
    let all = format!("{migration:?}{}{}", report::notes(&migration), report::steps(Tool::ArgoCd, &migration.taken));
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn several_sources_are_several_git_sources() {
    let migration = app(&format!(
        "sources:\n- {{repoURL: https://git.example/a, directory: {{recurse: true}}}}\n- {{repoURL: https://git.example/b, ref: values}}\n- {{repoURL: https://git.example/c, path: x, directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"
    ));
    let rest = "serviceAccountName: deployer, prune: true, selfHeal: true";
    check(
        &migration,
        &[
            &format!("{{url: https://git.example/a, {rest}}}"),
            &format!("{{url: https://git.example/c, path: x, {rest}}}"),
        ],
        &["no equivalent 8 spec.sources[1].ref", "differs 6 spec.sources"],
    );
    assert_eq!(migration.sources[1].str_at(&["metadata", "name"]), Some("web-2"));
}

#[test]
fn what_argo_cd_has_written_says_what_must_be_allowed() {
    let migration =
        app(&format!("source: {{repoURL: https://git.example/shop, directory: {{recurse: true}}}}\n{HERE}\n{AUTO}"));
    assert_eq!(migration.sources[0].at(&["spec", "allow"]), None);
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  source: {{repoURL: https://git.example/shop, directory: {{recurse: true}}}}\n  {HERE}\n  {AUTO}\n\
         status:\n  resources:\n  - {{kind: Namespace, name: shop, version: v1}}\n  - {{kind: Deployment, group: apps, name: web, namespace: shop, version: v1}}\n  - {{kind: ConfigMap, name: b, namespace: bank, version: v1}}\n"
    );
    let migration = with(&text, argocd::migrate);
    let allow = migration.sources[0].at(&["spec", "allow"]).unwrap();
    assert_eq!(
        allow.list_at(&["kinds"]),
        [Value::from("ConfigMap"), Value::from("Deployment.apps"), Value::from("Namespace")]
    );
    assert_eq!(allow.list_at(&["namespaces"]), [Value::from("bank"), Value::from("shop")]);
}

#[test]
fn credentials_are_named_by_the_keys_of_the_secret_and_never_read() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: repo-1, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repo-creds}}\nstringData: {url: 'https://git.example/', username: me, password: s3cret, type: git}\n---\n";
    let text = format!(
        "{secret}apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web, namespace: argocd}}\nspec:\n  source: {{repoURL: https://git.example/shop, directory: {{recurse: true}}}}\n  {HERE}\n  {AUTO}\n"
    );
    let migration = with(&text, argocd::migrate);
    check(
        &migration,
        &[
            "{url: https://git.example/shop, serviceAccountName: deployer, prune: true, selfHeal: true, secretRef: {name: web-git}}",
        ],
        &["to do 10 spec.source.repoURL"],
    );
    let said = report::notes(&migration);
    assert!(said.contains("with password, username of Argo CD's Secret repo-1") && !said.contains("s3cret"), "{said}");
}

#[test]
fn application_sets_are_unfolded_as_far_as_they_are_lists() {
    let set = |generators: &str, template: &str, more: &str| {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: all, namespace: argocd}}\nspec:\n  {more}\n  generators:\n  - {generators}\n  template:\n    metadata: {{name: '{template}'}}\n    spec:\n      source: {{repoURL: https://git.example/shop, path: '{template}', directory: {{recurse: true}}}}\n      {HERE}\n      {AUTO}\n"
        );
        with(&text, argocd::migrate)
    };
    let spec = |path: &str| {
        format!(
            "{{url: https://git.example/shop, path: {path}, serviceAccountName: deployer, prune: true, selfHeal: true}}"
        )
    };
    check(
        &set("list: {elements: [{env: a}, {env: b}]}", "{{env}}-x", "goTemplate: false"),
        &[&spec("a-x"), &spec("b-x")],
        &[],
    );
    check(&set("list: {elements: [{env: a}]}", "{{ .env }}", "goTemplate: true"), &[&spec("a")], &[]);
    check(
        &set("list: {elements: [{env: a}]}", "{{ .env | upper }}", "goTemplate: true"),
        &[],
        &["no equivalent 7 spec.generators[0].list.elements[0]"],
    );
    check(&set("git: {repoURL: x}", "{{path}}", "goTemplate: false"), &[], &["no equivalent 7 spec.generators[0]"]);
    check(
        &set("list: {elements: [{env: a}]}", "{{env}}", "templatePatch: x"),
        &[],
        &["no equivalent 5 spec.templatePatch"],
    );
}

#[test]
fn projects_are_named_field_by_field() {
    let text = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: shop, namespace: argocd}\nspec:\n  description: x\n  syncWindows: [{kind: deny}]\n  signatureKeys: [{keyID: A}]\n";
    check(
        &with(text, argocd::migrate),
        &[],
        &["no equivalent 7 spec.signatureKeys", "no equivalent 6 spec.syncWindows"],
    );
}

fn flux(repository: &str, kustomization: &str) -> Migration {
    let text = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: shop, namespace: flux-system}}\nspec:\n  interval: 2m\n  url: https://git.example/shop\n  {repository}\n---\n\
         apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\nspec:\n  interval: 10m\n  sourceRef: {{kind: GitRepository, name: shop}}\n  path: ./deploy\n  serviceAccountName: web\n  {kustomization}\n"
    );
    with(&text, flux::migrate)
}

#[test]
fn a_kustomization_is_a_git_source_with_what_its_repository_says() {
    let common = "url: https://git.example/shop, path: deploy, interval: 2m";
    for (repository, kustomization, spec, notes) in [
        ("ref: {branch: main}", "prune: true", "ref: {branch: main}, serviceAccountName: web, prune: true", &[][..]),
        // Flux follows master where nothing is said.
        ("timeout: 60s", "prune: false", "ref: {branch: master}, serviceAccountName: web, prune: false", &[]),
        (
            "ref: {branch: main, tag: v1, semver: '>=1.0.0'}",
            "prune: true",
            "ref: {semver: '>=1.0.0'}, serviceAccountName: web, prune: true",
            &[],
        ),
        ("ref: {name: refs/tags/v1}", "wait: true", "ref: {tag: v1}, serviceAccountName: web, prune: false", &[]),
        (
            "ref: {name: refs/pull/1/head}",
            "prune: true",
            "serviceAccountName: web, prune: true",
            &["no equivalent 7 spec.ref"],
        ),
        (
            "ref: {branch: main}",
            "targetNamespace: shop; suspend: true; force: true; prune: true; dependsOn: [{name: db}]",
            "ref: {branch: main}, serviceAccountName: web, targetNamespace: shop, suspend: true, onImmutable: Replace, prune: true, dependsOn: [{name: db}]",
            &[],
        ),
        (
            "ref: {branch: main}",
            "postBuild: {substitute: {a: b}}",
            "ref: {branch: main}, serviceAccountName: web, prune: false",
            &["no equivalent 17 spec.postBuild"],
        ),
        (
            "ref: {branch: main}",
            "decryption: {provider: sops}",
            "ref: {branch: main}, serviceAccountName: web, prune: false",
            &["no equivalent 17 spec.decryption"],
        ),
        (
            "ref: {branch: main}",
            "dependsOn: [{name: db, namespace: data}]",
            "ref: {branch: main}, serviceAccountName: web, prune: false",
            &["no equivalent 17 spec.dependsOn[0]"],
        ),
        (
            "ref: {branch: main}",
            "deletionPolicy: Delete",
            "ref: {branch: main}, serviceAccountName: web, prune: false",
            &["differs 17 spec.deletionPolicy"],
        ),
        (
            "secretRef: {name: git}; ref: {branch: main}",
            "prune: true",
            "ref: {branch: main}, serviceAccountName: web, prune: true, secretRef: {name: git}",
            &["to do 7 spec.secretRef"],
        ),
        (
            "verify: {secretRef: {name: keys}}",
            "prune: true",
            "ref: {branch: master}, serviceAccountName: web, prune: true",
            &["no equivalent 7 spec.verify"],
        ),
    ] {
        // Some rows give several fields.
        let flat = |text: &str| text.replace("; ", "\n  ");
        check(&flux(&flat(repository), &flat(kustomization)), &[&format!("{{{common}, {spec}}}")], notes);
    }
}

#[test]
fn ignored_files_are_left_out_relative_to_the_path() {
    #[track_caller]
    fn check(ignore: &str, expected: &[&str], left: bool) {
        let ignore = ignore.replace('\n', "\\n");
        let migration = flux(&format!("ignore: \"{ignore}\""), "prune: true");
        let exclude = migration.sources[0].list_at(&["spec", "exclude"]).iter().map(|one| one.as_str().unwrap());
        assert_eq!(exclude.collect::<Vec<_>>(), expected);
        assert_eq!(migration.notes.len(), usize::from(left), "{:?}", migration.notes);
    }
    check("# all but deploy\n/*\n!/deploy", &[], false);
    check("*.md\n/deploy/test/\n/other/", &["*.md", "/test/"], false);
    check("!/deploy/keep.yaml\n*.yaml", &["*.yaml"], true);
    check("**/test/**", &["**/test/**"], false);
}

#[test]
fn kinds_of_flux_without_an_equivalent_are_named() {
    let text = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: db, namespace: shop}\nspec: {}\n---\n\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: shop}\nspec: {sourceRef: {kind: OCIRepository, name: x}}\n---\n\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: b, namespace: shop}\nspec: {sourceRef: {kind: GitRepository, name: missing}}\n---\n\
        apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: c, namespace: shop}\nspec: {kubeConfig: {secretRef: {name: x}}}\n";
    check(
        &with(text, flux::migrate),
        &[],
        &[
            "no equivalent 3",
            "no equivalent 9 spec.sourceRef",
            "no equivalent 14 spec.sourceRef",
            "no equivalent 19 spec.kubeConfig",
        ],
    );
}

#[test]
fn fluxs_inventory_says_what_must_be_allowed() {
    let object = value!({"status": {"inventory": {"entries": [
        {"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "_shop__reader_rbac.authorization.k8s.io_ClusterRole", "v": "v1"},
    ]}}});
    let entry = |group: &str, kind: &str, namespace: &str, name: &str| Entry {
        group: group.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    assert_eq!(
        flux::inventory(&object),
        [
            entry("apps", "Deployment", "shop", "web"),
            entry("rbac.authorization.k8s.io", "ClusterRole", "", "shop:reader")
        ]
    );
}

#[test]
fn commands_hold_only_what_can_be_a_name() {
    let taken =
        |name: &str| Taken { kind: "Application", namespace: "argocd".into(), name: name.into(), sources: Vec::new() };
    let steps = report::steps(Tool::ArgoCd, &[taken("web"), taken("x; rm -rf ~")]);
    assert!(steps.contains("for a in argocd/web; do") && !steps.contains("rm -rf"), "{steps}");
    assert_eq!(report::steps(Tool::Flux, &[taken("$(x)")]), "");
}

/// What the pages say maps is what maps.
#[test]
fn the_pages_name_every_field() {
    for (page, tables) in [
        (include_str!("../../../../docs/migrate-argocd.md"), &[argocd::FIELDS, argocd::PROJECT_FIELDS][..]),
        (include_str!("../../../../docs/migrate-flux.md"), &[flux::FIELDS, flux::REPOSITORY_FIELDS]),
    ] {
        for (path, fate) in tables.iter().flat_map(|table| table.iter()) {
            let name = path.rsplit('.').next().unwrap_or(path);
            assert!(
                *fate == fields::Fate::Within
                    || page.contains(&format!("`{name}`"))
                    || page.contains(&format!(".{name}`")),
                "{path}"
            );
        }
    }
}

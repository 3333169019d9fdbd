//! Syncing from git on a whole cluster: objects are read and written with the rights of the source's account, and no more.

use std::path::Path;

use git2::{Repository, Signature, build::TreeUpdateBuilder};
use jiff::SignedDuration;
use tidegate::{
    engine::{key::Resource, resource},
    io::source::{self, Given, Hint, Told},
    kubernetes::value::Value,
    model::git_source::Reference,
    sync::State,
    value,
};
use tokio::sync::{mpsc, oneshot};

use crate::scene::{PATIENCE, Scene};

/// Commits these files on the branch, and nothing else; answers with the commit.
fn commit(repository: &Repository, files: &[(&str, String)]) -> String {
    let mut tree = TreeUpdateBuilder::new();
    for (path, text) in files {
        tree.upsert(*path, repository.blob(text.as_bytes()).unwrap(), git2::FileMode::Blob);
    }
    let empty = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let tree = repository.find_tree(tree.create_updated(repository, &empty).unwrap()).unwrap();
    let who = Signature::now("Ada", "ada@example.org").unwrap();
    let head = repository.find_reference("refs/heads/main").ok().and_then(|head| head.target());
    let parent = head.map(|head| repository.find_commit(head).unwrap());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(Some("refs/heads/main"), &who, &who, "change", &tree, &parents).unwrap().to_string()
}

fn bare(folder: &Path) -> Repository {
    let mut options = git2::RepositoryInitOptions::new();
    options.bare(true).initial_head("main");
    Repository::init_opts(folder, &options).unwrap()
}

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: v}}\n")
}

/// What a commit is told in the end.
async fn ended(heard: &mut mpsc::Receiver<Told>, commit: &str, state: State) -> String {
    let reached = async {
        while let Some(Told { report, .. }) = heard.recv().await {
            if report.commit == commit && report.state == state {
                return report.words;
            }
        }
        panic!("nobody tells anything any more");
    };
    let waited = tokio::time::timeout(PATIENCE, reached).await;
    waited.unwrap_or_else(|_| panic!("{commit} was never told {}", state.name()))
}

/// Gives the account a role with these verbs.
async fn grant(scene: &Scene, name: &str, verbs: &[&str], resources: &[&str]) {
    let words = |words: &[&str]| Value::list(words.iter().map(|word| Value::from(*word)));
    let mut rule = value!({"apiGroups": ["", "apps", "argoproj.io"]});
    rule.set_at(&["verbs"], words(verbs));
    rule.set_at(&["resources"], words(resources));
    let mut role = value!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}});
    role.set_at(&["rules"], Value::list([rule]));
    let rbac = |plural: &str| Resource::new("rbac.authorization.k8s.io", "v1", plural);
    scene.create(&rbac("roles"), role).await;
    let binding = value!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "rights"}]});
    scene.create(&rbac("rolebindings"), binding).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_reads_and_writes_with_the_rights_of_its_account_and_no_more() {
    let scene = Scene::open("rights").await;
    let folder = tempfile::tempdir().unwrap();
    let repository = bare(folder.path());
    let rollout = crate::rollout("web", value!({"canary": {"steps": [{"setWeight": 50}]}})).to_json();
    let files = [("deploy/a.yaml", map("a")), ("deploy/b.yaml", map("b")), ("deploy/web.json", rollout.clone())];
    let first = commit(&repository, &files);
    let interval = SignedDuration::from_secs(1);
    let url = folder.path().to_str().unwrap();
    let mut given = Given::new("rights", "shop", url, "deploy", Reference::Default, interval);
    given.spec.service_account = "deployer".to_owned();
    given.spec.namespaces = vec!["rights".to_owned()];
    let settings = source::Settings { given: vec![given], objects: source::Objects::Ignored, ..Default::default() };
    let ((hints, hinted), (told, mut heard)) = (mpsc::channel::<Hint>(4), mpsc::channel(256));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let sources = tokio::spawn(source::run(scene.api(), settings, hinted, Some(told), stopped));
    if scene.has_rights() {
        // What it may not read is not written either, and the words are the rule that lets it.
        let words = ended(&mut heard, &first, State::Failure).await;
        let may = "the ServiceAccount rights/deployer may not get configmaps in rights, get rollouts.argoproj.io in rights; \
                   bind it to a Role there with {apiGroups: [\"\"], resources: [configmaps], verbs: [get]} and so on";
        assert_eq!(words, may);
        grant(&scene, "reader", &["get", "list"], &["configmaps", "rollouts", "replicasets", "pods"]).await;
        let words = ended(&mut heard, &first, State::Failure).await;
        assert!(words.contains("is forbidden: User \"system:serviceaccount:rights:deployer\" cannot "), "{words}");
        assert!(words.contains("give the source's ServiceAccount the right to do that"), "{words}");
        grant(&scene, "deployer", &["create", "patch"], &["configmaps", "rollouts"]).await;
    }
    assert_eq!(ended(&mut heard, &first, State::Success).await, "rolled out: 3 objects");
    let web = scene.phase("web", "Healthy").await;
    assert_eq!(web.str_at(&["metadata", "annotations", "tidegate.dev/commit"]), Some(first.as_str()));
    let owners = web.list_at(&["metadata", "managedFields"]);
    assert!(owners.iter().any(|owner| owner.str_at(&["manager"]) == Some("tidegate")), "{}", web.to_json());
    // It may write, and may not delete.
    let second = commit(&repository, &[("deploy/a.yaml", map("a")), ("deploy/web.json", rollout)]);
    let maps = Resource::new("", "v1", "configmaps");
    if scene.has_rights() {
        let words = ended(&mut heard, &second, State::Failure).await;
        assert!(words.starts_with("ConfigMap rights/b: ") && words.contains(" cannot delete resource "), "{words}");
        let all = value!({"rules": [{"apiGroups": ["", "argoproj.io"], "resources": ["configmaps", "rollouts"],
            "verbs": ["create", "patch", "delete"]}]});
        scene.change(&Resource::new("rbac.authorization.k8s.io", "v1", "roles"), "deployer", all).await;
    }
    ended(&mut heard, &second, State::Success).await;
    scene.gone(&maps, "b").await;
    drop((stop, hints));
    tokio::time::timeout(PATIENCE, sources).await.unwrap().unwrap();
    // At rest the engine still has its Rollout.
    assert_eq!(scene.selected(&resource::rollouts(), "web").await.str_at(&["status", "phase"]), Some("Healthy"));
    scene.close().await;
}

//! A bare repository of many small applications, ten objects each.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use git2::{Index, IndexEntry, IndexTime, Oid, RepositoryInitOptions, Signature};

/// How many applications there are.
pub const APPS: usize = 500;
/// How many objects they are made of.
pub const OBJECTS: usize = APPS * 10;

/// A bare repository.
pub struct Repository {
    git: git2::Repository,
    path: PathBuf,
    files: BTreeMap<String, (Oid, String)>,
}

impl Repository {
    /// One commit with every application.
    pub fn new(path: &Path) -> Repository {
        let mut options = RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false);
        let git = git2::Repository::init_opts(path, &options).expect("a repository");
        let mut repository = Repository { git, path: path.to_owned(), files: BTreeMap::new() };
        for number in 0..APPS {
            for (file, text) in application(&name(number)) {
                repository.put(&format!("apps/{}/{file}", name(number)), text);
            }
        }
        repository.commit("everything");
        repository
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A commit that changes the image of one application; the name of its Rollout.
    pub fn change(&mut self, number: usize) -> String {
        let name = name(number * 7 % APPS);
        self.put(&format!("apps/{name}/rollout.yaml"), rollout(&name, &format!("2.{number}")));
        self.commit(&format!("{name} 2.{number}"));
        name
    }

    /// Every file, by its path.
    pub fn texts(&self) -> impl Iterator<Item = (&String, &String)> {
        self.files.iter().map(|(path, (_, text))| (path, text))
    }

    /// Every file, in a folder.
    pub fn write(&self, folder: &Path) {
        for (path, (_, text)) in &self.files {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
    }

    /// How long it takes to read every manifest.
    pub fn parse(&self) -> Duration {
        let begin = Instant::now();
        for (path, (_, text)) in &self.files {
            let read = tidegate::manifest::read(path.clone(), text.as_bytes());
            assert_eq!(read.objects.len(), 1, "{path}");
        }
        begin.elapsed()
    }

    fn put(&mut self, path: &str, text: String) {
        let id = self.git.blob(text.as_bytes()).expect("a blob");
        self.files.insert(path.to_owned(), (id, text));
    }

    fn commit(&mut self, message: &str) {
        let mut index = Index::new().expect("an index");
        for (path, (id, text)) in &self.files {
            let zero = IndexTime::new(0, 0);
            let (file_size, path) = (u32::try_from(text.len()).unwrap_or_default(), path.clone().into_bytes());
            let entry = IndexEntry {
                ctime: zero,
                mtime: zero,
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size,
                id: *id,
                flags: 0,
                flags_extended: 0,
                path,
            };
            index.add(&entry).expect("an entry");
        }
        let git = &self.git;
        let tree = git.find_tree(index.write_tree_to(git).expect("a tree")).expect("a tree");
        let who = Signature::now("dev", "dev@example.org").expect("a name");
        let head = git.find_reference("refs/heads/main").ok().and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<_> = head.iter().collect();
        // The branch moves last: what is measured begins there.
        git.commit(Some("refs/heads/main"), &who, &who, message, &tree, &parents).expect("a commit");
    }
}

fn name(number: usize) -> String {
    format!("app-{number:03}")
}

fn rollout(name: &str, tag: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: 1
  revisionHistoryLimit: 2
  selector:
    matchLabels: {{app: {name}}}
  strategy:
    canary: {{}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      serviceAccountName: {name}
      containers:
      - name: web
        image: registry.example/{name}:{tag}
        ports:
        - name: http
          containerPort: 8080
        envFrom:
        - configMapRef: {{name: {name}-0}}
        resources:
          requests: {{cpu: 100m, memory: 128Mi}}
          limits: {{memory: 256Mi}}
"
    )
}

/// The files of an application.
fn application(name: &str) -> Vec<(String, String)> {
    let mut files = vec![
        ("rollout.yaml".to_owned(), rollout(name, "1.0")),
        (
            "service.yaml".to_owned(),
            format!(
                "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  selector: {{app: {name}}}\n  \
                 ports:\n  - name: http\n    port: 80\n    targetPort: http\n"
            ),
        ),
        (
            "account.yaml".to_owned(),
            format!(
                "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\nautomountServiceAccountToken: false\n"
            ),
        ),
    ];
    for number in 0..7 {
        let mut text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-{number}\ndata:\n");
        for key in 0..12 {
            text.push_str(&format!("  SETTING_{number}_{key}: \"value {key} of {name}\"\n"));
        }
        files.push((format!("config-{number}.yaml"), text));
    }
    files
}

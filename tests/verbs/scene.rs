//! A cluster, the daemon, and a person who types.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use regex::Regex;
use tempfile::TempDir;

/// A cluster with the daemon at work, and the transcript of what was typed.
pub struct Scene {
    story: String,
    folder: TempDir,
    cluster: Child,
    daemon: Child,
    said: Receiver<String>,
    transcript: String,
}

/// A command that goes on, and the lines it prints.
pub struct Watch {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program(name: &str, folder: &Path) -> Command {
    let file = if name == "tidegate" {
        PathBuf::from(env!("CARGO_BIN_EXE_tidegate"))
    } else {
        let link = folder.join(name);
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tidegate"), &link);
        link
    };
    let mut command = Command::new(file);
    command.current_dir(root()).env("KUBECONFIG", folder.join("kubeconfig"));
    command.env_remove("TIDEGATE_LOG").env("XDG_RUNTIME_DIR", folder);
    command
}

impl Scene {
    pub fn open(story: &str) -> Scene {
        Scene::with(story, &["--crds"], &[])
    }

    /// With arguments for the cluster, and others for the daemon.
    pub fn with(story: &str, cluster: &[&str], run: &[&str]) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut cluster = program("tidegate", folder.path())
            .arg("cluster")
            .args(cluster)
            .args(["--seed", "1", "-o", "json", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(cluster.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("kubeconfig"), "{line}");
        let mut daemon = program("tidegate", folder.path());
        daemon.args(["run", "--metrics-port", "0", "--healthz-port", "0"]).args(run).stderr(Stdio::piped());
        let mut daemon = daemon.spawn().unwrap();
        let (says, said) = mpsc::channel();
        let stderr = BufReader::new(daemon.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(says.send(line))));
        Scene { story: story.to_owned(), folder, cluster, daemon, said, transcript: String::new() }
    }

    /// The next line that the daemon prints, if one comes within this time.
    pub fn says(&self, within: Duration) -> Option<String> {
        self.said.recv_timeout(within).ok()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command in it, to be started.
    pub fn command(&self, name: &str, line: &str) -> Command {
        let mut command = program(name, self.folder.path());
        command.args(line.split(' '));
        command
    }

    /// What a command prints on both streams, and its exit code.
    pub fn output(&self, name: &str, line: &str) -> (String, Option<i32>) {
        let output = program(name, self.folder.path()).args(line.split(' ')).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (text, output.status.code())
    }

    /// Types a command, and notes what came of it.
    pub fn types(&mut self, line: &str) {
        self.types_as("tidegate", line);
    }

    pub fn types_as(&mut self, name: &str, line: &str) {
        let (text, code) = self.output(name, line);
        let ended = match code {
            Some(0) => String::new(),
            code => format!("(exit code {})\n", code.unwrap()),
        };
        self.transcript.push_str(&format!("$ {name} {line}\n{}{ended}\n", normal(&text)));
    }

    /// Asks the cluster something, as a program would.
    pub fn asks<T>(&self, question: impl AsyncFnOnce(tidegate::io::api::Api) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let file = self.folder.path().join("kubeconfig");
            let config = kube::config::Kubeconfig::read_from(file).unwrap();
            let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
            question(tidegate::io::api::Api::new(kube::Client::try_from(config).unwrap())).await
        })
    }

    /// Creates the objects of a file that are not all ours.
    pub fn applies(&self, file: &str) {
        self.creates(file, &fs::read_to_string(root().join(file)).unwrap());
    }

    /// Creates the objects of a text.
    pub fn creates(&self, name: &str, text: &str) {
        let read = tidegate::manifest::read(name, text.as_bytes());
        self.asks(async |api| {
            for object in read.objects {
                use tidegate::engine::key::Resource;
                let resource = match object.kind() {
                    "Rollout" => Resource::new("argoproj.io", "v1alpha1", "rollouts"),
                    "Application" => Resource::new("argoproj.io", "v1alpha1", "applications"),
                    "GitSource" => Resource::new("tidegate.dev", "v1alpha1", "gitsources"),
                    "Service" => Resource::new("", "v1", "services"),
                    "ConfigMap" => Resource::new("", "v1", "configmaps"),
                    "Namespace" => Resource::new("", "v1", "namespaces"),
                    "Deployment" => Resource::new("apps", "v1", "deployments"),
                    "HorizontalPodAutoscaler" => Resource::new("autoscaling", "v2", "horizontalpodautoscalers"),
                    "CustomResourceDefinition" => {
                        Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
                    }
                    other => panic!("no resource for {other}"),
                };
                let namespace = if object.namespace().is_empty() { "default" } else { object.namespace() };
                if ["Namespace", "CustomResourceDefinition"].contains(&object.kind()) {
                    use tidegate::io::api::{Force, Run};
                    let place = tidegate::engine::key::Place::new("", object.name());
                    api.apply(&resource, &place, &object.value, Force::Taken, Run::Wet).await.unwrap();
                    continue;
                }
                api.create(&resource, namespace, &object.value).await.unwrap();
            }
        });
    }

    /// Begins a command that goes on.
    pub fn watches(&self, line: &str) -> Watch {
        let mut command = program("tidegate", self.folder.path());
        let mut process = command.args(line.split(' ')).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Watch { process, lines }
    }

    /// Waits until the tree shows this text and nothing moves.
    pub fn settles(&self, name: &str, text: &str) -> String {
        let moving = ["Terminating", "Progressing", "ready:0/1", "NotReady"];
        self.sees(name, |tree| tree.contains(text) && !moving.iter().any(|word| tree.contains(word)))
    }

    /// Waits until nothing moves and so many pods are counted, current and available, and notes the tree with this text.
    pub fn shows(&mut self, name: &str, text: &str, pods: [u8; 2]) {
        let [current, available] = pods;
        let counts =
            ["Current:       ", "Ready:         ", "Available:     "].into_iter().zip([current, available, available]);
        let counts: Vec<String> = counts.map(|(label, count)| format!("{label}{count}\n")).collect();
        let moving = ["Terminating", "Progressing", "ready:0/1", "NotReady"];
        let tree = self.sees(name, |tree| {
            let is_counted = counts.iter().all(|count| tree.contains(count));
            tree.contains(text) && is_counted && !moving.iter().any(|word| tree.contains(word))
        });
        self.notes(name, &tree);
    }

    /// Notes a tree that a person has asked for.
    pub fn notes(&mut self, name: &str, tree: &str) {
        self.transcript.push_str(&format!("$ tidegate get rollout {name}\n{}\n", normal(tree)));
    }

    /// Waits until the tree is as wanted: looks anew with every change that is told.
    pub fn sees(&self, name: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut watch = self.watches(&format!("get rollout {name} -w --timeout-seconds 60"));
        let mut tree = String::new();
        while watch.lines.next().is_some() {
            tree = self.output("tidegate", &format!("get rollout {name}")).0;
            if wanted(&tree) {
                return tree;
            }
        }
        panic!("it never came to that: {tree}");
    }

    /// The end: the transcript is as stored.
    pub fn ends(self) {
        let stored = root().join("tests/verbs/stories").join(format!("{}.txt", self.story));
        if env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&stored, &self.transcript).unwrap();
            return;
        }
        let expected = fs::read_to_string(&stored).unwrap_or_default();
        assert!(
            expected == self.transcript,
            "{}\n--- stored\n{expected}\n--- now\n{}",
            stored.display(),
            self.transcript
        );
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for process in [&mut self.daemon, &mut self.cluster] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Watch {
    /// Reads until all these texts have been read, in whatever order: watches of different kinds do not wait for each other.
    pub fn until(&mut self, texts: &[&str]) {
        let mut read = String::new();
        for line in self.lines.by_ref() {
            read.push_str(&line.unwrap());
            read.push('\n');
            if texts.iter().all(|text| read.contains(text)) {
                return;
            }
        }
        panic!("it ended without {texts:?}:\n{read}");
    }

    /// Presses Ctrl-C; the exit code.
    pub fn interrupted(mut self) -> Option<i32> {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), rustix::process::Signal::INT)
            .unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same whenever and wherever it was printed: no ages, no random letters, no lines of a way that is never the same.
fn normal(text: &str) -> String {
    let rules = [
        // The last letters of a pod's name.
        (r"(-[a-z0-9]{8,10})-[a-z0-9]{5}\b", "$1-xxxxx"),
        // An age, and the blanks behind it.
        (r"(?m)^(.*(?:Rollout|ReplicaSet|Pod)  .*?)  \d+m?\d*s( *)", "$1  AGE  "),
        (r"(?m)^(\d+ +web-\S+ +)\d+m?\d*s +", "${1}AGE  "),
        (r"\b\d+m?\d*s\b", "SOME"),
        // The way to the end is told as it happens.
        (r"(?m)^(?:(?:Progressing|Paused) - .*\n)+(Healthy|Degraded)", "$1"),
    ];
    let folded = rules
        .iter()
        .fold(text.to_owned(), |text, (from, to)| Regex::new(from).unwrap().replace_all(&text, *to).into_owned());
    folded.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

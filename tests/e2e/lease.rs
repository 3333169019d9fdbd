//! Two daemons and one Lease on a whole cluster: one works, and when it no longer can in the middle of an update, the
//! other one finishes it, and nothing is done twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
};

use tidegate::{
    engine::{cache::News, key::Resource, resource},
    kubernetes::value::Value,
    value,
};
use tokio::sync::mpsc;

use crate::{
    rollout,
    scene::{PATIENCE, Scene},
    versions,
};

/// The binary, apart from what the machine's user has set up.
fn binary(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).env_remove("KUBECONFIG").env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::null());
    command
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn signal(&self, name: &str) {
        // The shell's own: a small machine has no program of that name.
        let sent = Command::new("sh").args(["-c", &format!("kill {name} {}", self.0.id())]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cluster that processes can reach: the one that is given, or one of its own.
struct Cluster {
    kubeconfig: String,
    _own: Option<(Process, tempfile::TempDir)>,
}

impl Cluster {
    fn open() -> Cluster {
        if let Ok(kubeconfig) = std::env::var("TIDEGATE_E2E_KUBECONFIG") {
            return Cluster { kubeconfig, _own: None };
        }
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig").to_str().unwrap().to_owned();
        let mut command = binary(&["cluster", "--crds", "--kubeconfig", &kubeconfig, "-o", "json"]);
        let mut process = Process(command.stdout(Stdio::piped()).spawn().unwrap());
        BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        Cluster { kubeconfig, _own: Some((process, folder)) }
    }
}

/// A daemon that stands for the Lease, and what it says.
struct Daemon {
    process: Process,
    says: mpsc::UnboundedReceiver<String>,
}

impl Daemon {
    /// Starts one that looks after the Rollouts of a namespace, with a Lease that runs out soon.
    fn start(cluster: &Cluster, namespace: &str) -> Daemon {
        let mut command = binary(&["run", "--kubeconfig", &cluster.kubeconfig, "--namespace", namespace]);
        command.args(["--instance-id", namespace, "--metrics-port", "0", "--healthz-port", "0", "--log", "info"]);
        command.args(["--leader-elect", "--leader-election-namespace", namespace]);
        command.args(["--leader-election-lease-duration", "3s", "--leader-election-renew-deadline", "2s"]);
        command.args(["--leader-election-retry-period", "500ms"]);
        let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(process.0.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (sender, says) = mpsc::unbounded_channel();
        thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
        Daemon { process, says }
    }

    /// Waits until it is the leader; answers with what it said before.
    async fn leads(&mut self) -> Vec<String> {
        let mut before = Vec::new();
        let leads = async {
            while let Some(line) = self.says.recv().await {
                if line.contains("became leader lease=") {
                    return true;
                }
                before.push(line);
            }
            false
        };
        let leads = tokio::time::timeout(PATIENCE, leads).await.unwrap_or(false);
        assert!(leads, "it never becomes leader, and says {before:#?}");
        before
    }

    /// Waits until it has ended; answers with its exit code and its last words.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut last = String::new();
        let ended = async {
            while let Some(line) = self.says.recv().await {
                last.push_str(&line);
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap();
        (self.process.0.wait().unwrap().code(), last)
    }
}

/// Everything that happened to ReplicaSets and pods of a namespace, in the order in which it is told.
#[derive(Default)]
struct Seen {
    /// The revision of each ReplicaSet that ever was.
    sets: BTreeMap<String, String>,
    pods: BTreeMap<String, Value>,
    /// The names of all pods that ever were.
    made: BTreeSet<String>,
    /// The fewest pods that were ready at any time.
    fewest: Option<usize>,
}

impl Seen {
    fn see(&mut self, of: &Resource, news: News) {
        let name = |object: &Value| object.str_at(&["metadata", "name"]).unwrap().to_owned();
        let objects = match news {
            News::List(objects, _) => objects,
            News::Object(object) => vec![object],
            News::Unserved => Vec::new(),
            News::Gone(object) => {
                self.pods.remove(&name(&object));
                Vec::new()
            }
        };
        for object in objects {
            if *of == resource::sets() {
                let revision = object.str_at(&["metadata", "annotations", "rollout.argoproj.io/revision"]);
                self.sets.insert(name(&object), revision.unwrap().to_owned());
            } else {
                self.made.insert(name(&object));
                self.pods.insert(name(&object), object);
            }
        }
        if *of == resource::pods() {
            let ready = self.pods.values().filter(|pod| is_ready(pod)).count();
            self.fewest = Some(self.fewest.map_or(ready, |fewest| fewest.min(ready)));
        }
    }

    /// Whether only pods of this version are left.
    fn is_only(&self, hash: &str) -> bool {
        let of = |pod: &Value| pod.str_at(&["metadata", "labels", "rollouts-pod-template-hash"]) == Some(hash);
        !self.pods.is_empty() && self.pods.values().all(of)
    }
}

fn is_ready(pod: &Value) -> bool {
    let is_true = |condition: &Value| {
        condition.str_at(&["type"]) == Some("Ready") && condition.str_at(&["status"]) == Some("True")
    };
    pod.at(&["metadata", "deletionTimestamp"]).is_none() && pod.list_at(&["status", "conditions"]).iter().any(is_true)
}

/// What becomes of the one that leads.
enum Blow {
    Killed,
    /// It sleeps until the other one has finished, and then wakes up in the middle of what it was doing.
    Frozen,
}

async fn the_other_one_finishes(namespace: &str, blow: Blow) {
    let cluster = Cluster::open();
    let scene = Scene::at(&cluster.kubeconfig, namespace).await;
    let mut one = Daemon::start(&cluster, namespace);
    one.leads().await;
    let mut two = Daemon::start(&cluster, namespace);
    let mut web = rollout("web", value!({"canary": {"maxSurge": 1, "maxUnavailable": 0}}));
    web.set_at(&["metadata", "labels"], value!({"argo-rollouts.argoproj.io/controller-instance-id": namespace}));
    // One pod after the other, each in no less than a second: what happens to the leader happens in between.
    web.set_at(&["spec", "minReadySeconds"], 1);
    scene.create(&resource::rollouts(), web).await;
    let (first, ..) = versions(&scene.phase("web", "Healthy").await);

    let mut follower = scene.follow(&[resource::sets(), resource::pods()]);
    scene.set_version("web", "2.0").await;
    let has_begun = |rollout: &Value| versions(rollout).2 == 1 && versions(rollout).1 != first;
    let begun = scene.until(&resource::rollouts(), "web", "has begun", has_begun).await;
    assert_eq!(versions(&begun).0, first);
    one.process.signal(match blow {
        Blow::Killed => "-KILL",
        Blow::Frozen => "-STOP",
    });
    let before = two.leads().await;
    assert!(!before.iter().any(|line| line.contains("decided")), "it was not its turn: {before:#?}");

    let done = scene.phase("web", "Healthy").await;
    let (stable, second, updated) = versions(&done);
    assert_eq!((&stable, updated), (&second, 4));
    assert_eq!(scene.sizes("web").await, [(first.clone(), 0), (second.clone(), 4)]);
    let mut seen = Seen::default();
    let all = async {
        while !seen.is_only(&second) {
            let (of, news) = follower.next().await.unwrap();
            seen.see(&of, news);
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    let sets = [(format!("web-{first}"), "1".to_owned()), (format!("web-{second}"), "2".to_owned())];
    assert_eq!(seen.sets, BTreeMap::from(sets), "each version was made once");
    assert_eq!(seen.made.len(), 8, "so was each pod: {:?}", seen.made);
    assert_eq!(seen.fewest, Some(4), "no pod was missing at any time");

    match blow {
        Blow::Killed => assert_eq!(one.end().await.0, None),
        Blow::Frozen => {
            one.process.signal("-CONT");
            let (code, last) = one.end().await;
            assert!(code == Some(2) && last.contains("another daemon leads"), "{code:?}: {last}");
            assert_eq!(scene.selected(&resource::rollouts(), "web").await, done, "it wrote nothing any more");
        }
    }
    two.process.signal("-TERM");
    assert_eq!(two.end().await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_leader_is_killed_in_an_update_the_other_one_finishes_it() {
    the_other_one_finishes("killed", Blow::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_sleeps_past_its_lease_does_nothing_when_it_wakes_up() {
    the_other_one_finishes("frozen", Blow::Frozen).await;
}

//! `kubectl diff` of the same manifests on a real control plane, which `benches/run` starts and names in
//! `TIDEGATE_REAL_KUBECONFIG` and `TIDEGATE_REAL_KUBECTL`; without them this part is left out.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    repository::Repository,
    table::{Row, tidegate},
};

/// How many applications of ten manifests are compared.
const APPS: usize = 50;

/// A plan of one changed image in 500 manifests, as a share of what `kubectl diff` takes.
pub fn rows(repository: &Repository) -> Vec<Row> {
    let (Ok(kubeconfig), Ok(kubectl)) = (env::var("TIDEGATE_REAL_KUBECONFIG"), env::var("TIDEGATE_REAL_KUBECTL"))
    else {
        return Vec::new();
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new, crds) = (folder.path().join("old"), folder.path().join("new"), folder.path().join("crds"));
    write(repository, &old, "1.0");
    write(repository, &new, "9.9");
    let status = tidegate().arg("crds").arg("--dir").arg(&crds).status().expect("it runs");
    assert!(status.success());
    let kubectl = |arguments: &[&str], of: &Path| {
        let mut command = Command::new(&kubectl);
        command.args(["--kubeconfig", &kubeconfig]).args(arguments).arg(of);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let apply = |arguments: &[&str], of: &Path| {
        assert!(kubectl(arguments, of).status().expect("it runs").success(), "{}", of.display());
    };
    apply(&["apply", "-f"], &crds);
    apply(&["wait", "--for=condition=Established", "--timeout=60s", "-f"], &crds);
    apply(&["apply", "-R", "-f"], &old);
    let diff = best(|| kubectl(&["diff", "-R", "-f"], &new));
    let plan = |live: bool| {
        let mut command = tidegate();
        command.arg("plan").arg(&new).arg("--from-dir").arg(&old).current_dir(folder.path());
        if live {
            command.args(["--live", "--kubeconfig", &kubeconfig]);
        }
        command
    };
    let (alone, live) = (best(|| plan(false)), best(|| plan(true)));
    let row = |name: &str, took: Duration, wanted| Row {
        name: format!("{name} of one changed Rollout in {} manifests", APPS * 10),
        measured: format!("{:.3} of kubectl diff", took.as_secs_f64() / diff.as_secs_f64()),
        wanted,
        peer: format!("{:.2} s; kubectl diff {:.2} s", took.as_secs_f64(), diff.as_secs_f64()),
    };
    let rows = vec![row("plan", alone, "≤ 0.1"), row("plan --live", live, "")];
    apply(&["delete", "-R", "--wait=false", "-f"], &old);
    rows
}

/// The manifests of some applications; the first has this image.
fn write(repository: &Repository, folder: &Path, tag: &str) {
    let mut apps: Vec<&str> = repository.texts().filter_map(|(path, _)| path.split('/').nth(1)).collect();
    apps.dedup();
    apps.truncate(APPS);
    for (path, text) in
        repository.texts().filter(|(path, _)| path.split('/').nth(1).is_some_and(|app| apps.contains(&app)))
    {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let is_first = path.contains(&format!("/{}/", apps[0]));
        let text = if is_first { text.replace(":1.0\n", &format!(":{tag}\n")) } else { text.clone() };
        fs::write(file, text).expect("a file");
    }
}

/// The shortest of three runs, each of which finds that something changes.
fn best(command: impl Fn() -> Command) -> Duration {
    let run = |_| {
        let begin = Instant::now();
        let status = command().status().expect("it runs");
        let took = begin.elapsed();
        assert_eq!(status.code(), Some(1), "one object changes");
        took
    };
    (0..3).map(run).min().unwrap_or(Duration::MAX)
}

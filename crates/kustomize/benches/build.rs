//! Time of a build beside `kustomize build`, in the same run: one overlay of 20 objects, process start included for both,
//! and 500 overlays of one base.
//!
//! `KUSTOMIZE` names the real binary; without it only our times are shown.

#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tidegate_kustomize::{Entry, Options, Tree, render};

/// A directory of the file system.
struct Disk(PathBuf);

impl Tree for Disk {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        match fs::symlink_metadata(self.0.join(path)) {
            Ok(found) if found.is_dir() => Ok(Some(Entry::Directory)),
            Ok(found) => Ok(Some(Entry::File { size: found.len() })),
            Err(_) => Ok(None),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.0.join(path)).map_err(|error| error.to_string())
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let [_, word, root, overlays @ ..] = arguments.as_slice()
        && word == "--render"
    {
        let tree = Disk(root.into());
        for overlay in overlays {
            print!("{}", render(&tree, overlay, &Options::default()).unwrap().to_yaml());
        }
        return;
    }
    let scratch = env::temp_dir().join(format!("kustomize-bench-{}", std::process::id()));
    let overlays = write(&scratch);
    let kustomize = env::var("KUSTOMIZE").ok();
    let us = env::current_exe().unwrap();
    let ours = |overlays: &[String]| {
        let mut command = Command::new(&us);
        command.arg("--render").arg(&scratch).args(overlays);
        command
    };
    let theirs = |overlay: &String| {
        let mut command = Command::new(kustomize.as_deref().unwrap_or_default());
        command.arg("build").arg(scratch.join(overlay));
        command
    };
    if kustomize.is_some() {
        let (a, b) = (ours(&overlays[..1]).output().unwrap().stdout, theirs(&overlays[0]).output().unwrap().stdout);
        assert!(a == b && !a.is_empty(), "both must print the same");
    }
    let one_ours = best(20, || run(&mut ours(&overlays[..1])));
    let one_theirs = kustomize.as_ref().map(|_| best(20, || run(&mut theirs(&overlays[0]))));
    show("one overlay of 20 objects, one process each", one_ours, one_theirs);
    let all_ours = best(3, || run(&mut ours(&overlays)));
    let all_theirs =
        kustomize.as_ref().map(|_| best(1, || overlays.iter().for_each(|overlay| run(&mut theirs(overlay)))));
    show("500 overlays of one base: one process, 500 processes", all_ours, all_theirs);
    let _ = fs::remove_dir_all(&scratch);
}

fn run(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

fn best(times: usize, mut work: impl FnMut()) -> Duration {
    let timed = (0..times).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn show(what: &str, ours: Duration, theirs: Option<Duration>) {
    match theirs {
        None => println!("{what}: {ours:.1?}"),
        Some(theirs) => println!(
            "{what}: ours {ours:.1?}, kustomize {theirs:.1?}, {:.3} of it",
            ours.as_secs_f64() / theirs.as_secs_f64()
        ),
    }
}

fn write(scratch: &Path) -> Vec<String> {
    let put = |path: String, text: String| {
        let path = scratch.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let mut objects = String::new();
    for n in 0..9 {
        objects.push_str(&format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web{n}\nspec:\n  replicas: 1\n  selector:\n    matchLabels:\n      app: web{n}\n  template:\n    metadata:\n      labels:\n        app: web{n}\n    spec:\n      containers:\n      - name: main\n        image: registry.example/web:1.0\n        ports:\n        - containerPort: 8080\n        env:\n        - name: A\n          value: one\n        envFrom:\n        - configMapRef:\n            name: conf\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web{n}\nspec:\n  selector:\n    app: web{n}\n  ports:\n  - port: 80\n    targetPort: 8080\n---\n"
        ));
    }
    objects.push_str("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: web\n");
    put("base/all.yaml".to_owned(), objects);
    put(
        "base/kustomization.yaml".to_owned(),
        "resources: [all.yaml]\nconfigMapGenerator:\n- name: conf\n  literals: [a=1]\n".to_owned(),
    );
    (0..500)
        .map(|n| {
            let overlay = format!("overlays/o{n}");
            put(
                format!("{overlay}/kustomization.yaml"),
                format!("resources: [../../base]\nnamespace: team{n}\nlabels:\n- pairs: {{team: t{n}}}\n  includeSelectors: true\nimages:\n- name: registry.example/web\n  newTag: v{n}\npatches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: web0\n    spec:\n      replicas: {n}\n      template:\n        spec:\n          containers:\n          - name: main\n            env:\n            - name: A\n              value: \"{n}\"\n"),
            );
            overlay
        })
        .collect()
}

//! SR6: what hosts that mean harm cost the process itself, all of them at once: its peak of resident memory as Linux counts it.

use tidegate::value;

use super::{
    harm::{WAYS, git_hosts, metric_host},
    scene::Scene,
};

/// What the process may need, with all of them at work.
const LIMIT_KIB: u64 = 256 << 10;
/// How many hosts of each kind there are.
const EACH: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn sr6_all_that_hosts_can_do_costs_the_process_at_most_256_mib() {
    let mut scene = Scene::open().await;
    let (git, authority) = git_hosts().await;
    let metrics = metric_host().await;
    let secret = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "authority"},
        "stringData": {"ca.crt": authority.as_str()}});
    scene.create("", "v1", "secrets", secret).await;
    scene.run(&["--metrics-port", "0", "--metrics-allow", "127.0.0.1"], &[("TIDEGATE_LOG", "info")]);
    for kind in WAYS {
        for number in 0..EACH {
            let url = format!("https://127.0.0.1:{git}/{kind}/{number}.git");
            let source = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource",
                "metadata": {"name": format!("{kind}-{number}")},
                "spec": {"url": url, "serviceAccountName": "deployer", "interval": "5s", "secretRef": {"name": "authority"}}});
            scene.create("tidegate.dev", "v1alpha1", "gitsources", source).await;
        }
    }
    for number in 0..10 {
        let run = value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": {"name": format!("run-{number}")},
            "spec": {"metrics": [{"name": "large", "count": 10, "interval": "1s", "successCondition": "len(result) > 0",
                "provider": {"web": {"url": format!("http://127.0.0.1:{metrics}/"), "jsonPath": "{$}"}}}]}});
        scene.create("argoproj.io", "v1alpha1", "analysisruns", run).await;
    }
    let said = async |scene: &Scene, name: &str, words: &str| {
        scene
            .until(&format!("{words:?} of {name}"), async || {
                let source = scene.get("tidegate.dev", "v1alpha1", "gitsources", name).await?;
                let conditions = source.at(&["status", "conditions"])?.to_json();
                conditions.contains(words).then_some(())
            })
            .await
    };
    for number in 0..EACH {
        said(&scene, &format!("greeting-{number}"), "bytes of references").await;
        said(&scene, &format!("list-{number}"), "the size of the list of references").await;
        said(&scene, &format!("bomb-{number}"), "large.yaml").await;
    }
    for number in 0..10 {
        let name = format!("run-{number}");
        scene
            .until(&format!("the end of {name}"), async || {
                let run = scene.get("argoproj.io", "v1alpha1", "analysisruns", &name).await?;
                run.str_at(&["status", "phase"]).filter(|phase| *phase == "Successful").map(drop)
            })
            .await;
    }
    let peak = scene.peak_kib();
    println!("peak of resident memory: {} MiB", peak >> 10);
    assert!(peak <= LIMIT_KIB, "{} MiB, more than {} MiB", peak >> 10, LIMIT_KIB >> 10);
}

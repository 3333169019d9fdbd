//! Reports of `tidegate plan` in a real browser: they render, their curve is there, and nothing overflows on a desktop or a phone.
//!
//! `tests/browser/run` finds or installs Chromium and names it by `TIDEGATE_CHROMIUM`. `TIDEGATE_PICTURES=DIR` keeps a screenshot of
//! each report at each width.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../plan/cases.rs"]
#[allow(dead_code)]
mod cases;

use std::{env, fs, path::Path, process::Command};

use pulldown_cmark::{Options, Parser};
use serde_json::Value;
use tidegate::{
    manifest,
    plan::{Plan, RolloutPlan, Side, output},
    sim::plan::{Reading, Sides, make},
};

/// A desktop and a phone.
const WIDTHS: [u32; 2] = [1280, 400];

/// What hosts do to rendered Markdown: wide tables and code scroll by themselves.
const HOST_STYLE: &str = "body{font:14px/1.5 sans-serif;margin:16px;overflow-wrap:break-word}\
    table{display:block;width:max-content;max-width:100%;overflow:auto}pre{overflow:auto}\
    code{white-space:break-spaces}pre code{white-space:pre}";

/// Measures every frame once it has loaded, and writes what it found into the page.
const MEASURE: &str = r#"
addEventListener('load', () => {
  const scrolls = (element, body) => {
    for (let at = element; at && at !== body; at = at.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(at.ownerDocument.defaultView.getComputedStyle(at).overflowX)) return true;
    return false;
  };
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument, width = page.documentElement.clientWidth;
    page.querySelectorAll('details').forEach(fold => fold.open = true);
    const wide = [...page.body.querySelectorAll('*')]
      .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element.parentElement, page.body))
      .map(element => element.outerHTML.slice(0, 120));
    const curves = [...page.querySelectorAll('svg')].map(curve => {
      const box = curve.getBoundingClientRect();
      const lines = [...curve.querySelectorAll('path, polyline, polygon')].map(line => line.getBBox().width);
      return {left: box.left, right: box.right, height: box.height, longest: Math.max(0, ...lines)};
    });
    return {name: frame.name, width, height: page.documentElement.scrollHeight, scroll: page.documentElement.scrollWidth, wide, curves,
      text: page.body.innerText, tables: page.querySelectorAll('table').length, images: page.querySelectorAll('img').length,
      scripts: page.querySelectorAll('script').length};
  });
  document.getElementById('found').textContent = JSON.stringify(found);
});
"#;

struct Report {
    name: String,
    page: String,
    plan: Plan,
    is_markdown: bool,
}

fn reports() -> Vec<Report> {
    let mut plans: Vec<(String, Plan)> = cases::all()
        .into_iter()
        .filter(|case| case.past.is_empty())
        .map(|case| (case.name.clone(), make(&case.sides(), &cases::rules())))
        .collect();
    plans.push(("long-names".to_owned(), long_names()));
    let mut reports = Vec::new();
    for (name, plan) in plans {
        let curve =
            |rollout: &RolloutPlan| rollout.forecast.as_ref().map(|_| format!("{name}-{}.svg", rollout.id.name));
        let markdown = output::markdown(&plan, 65_000, &curve);
        let mut page = String::new();
        pulldown_cmark::html::push_html(&mut page, Parser::new_ext(&markdown, Options::ENABLE_TABLES));
        let page = format!("<!doctype html><meta charset=utf-8><style>{HOST_STYLE}</style><body>{page}");
        reports.push(Report {
            name: format!("{name}.html"),
            page: output::html(&plan),
            plan: plan.clone(),
            is_markdown: false,
        });
        reports.push(Report { name: format!("{name}.md"), page, plan, is_markdown: true });
    }
    reports
}

/// A change of a Rollout whose name, image and paths are as long as the API server allows.
fn long_names() -> Plan {
    let name = "a-name-without-any-place-to-break-it-in-".repeat(1).replace('-', "x") + &"n".repeat(20);
    let web = |tag: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}}}\nspec:\n  replicas: 3\n  selector: {{matchLabels: \
             {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: \
             'registry.example/{}/web:{tag}'}}]}}\n  strategy: {{canary: {{steps: [{{setWeight: 50}}, {{pause: {{}}}}]}}}}\n",
            "path/".repeat(30)
        )
    };
    let side = |tag: &str| {
        let file = format!("deploy/{}/web.yaml", "folder".repeat(20));
        Reading::of(
            Side { name: "b".repeat(200), commit: String::new() },
            vec![manifest::read(file, web(tag).as_bytes())],
        )
    };
    make(&Sides { old: side("1"), new: side("2") }, &cases::rules())
}

/// The browser without a window, without traffic of its own, and with nothing kept from an earlier run.
fn headless(browser: &str, profile: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]);
    command.args(["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"]);
    command.args(["--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
}

/// Lets the browser load a page, and answers what the page says then.
fn dump(browser: &str, page: &Path) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = headless(browser, profile.path())
        .args(["--virtual-time-budget=10000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn measure(browser: &str, folder: &Path, reports: &[Report]) -> Vec<Value> {
    let frames: String = reports
        .iter()
        .flat_map(|report| WIDTHS.map(|width| (report, width)))
        .map(|(report, width)| {
            let name = &report.name;
            format!("<iframe name='{name} {width}' src='{name}.page.html' style='border:0;width:{width}px;height:900px'></iframe>\n")
        })
        .collect();
    for report in reports {
        fs::write(folder.join(format!("{}.page.html", report.name)), &report.page).unwrap();
    }
    let page = folder.join("all.html");
    fs::write(&page, format!("<!doctype html><pre id=found></pre>{frames}<script>{MEASURE}</script>")).unwrap();
    let dom = dump(browser, &page);
    let found = dom.split_once("<pre id=\"found\">").unwrap().1.split_once("</pre>").unwrap().0;
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {}", &dom[..dom.len().min(2000)]))
}

#[test]
fn every_report_renders_with_its_curve_and_nothing_overflows() {
    let browser = env::var("TIDEGATE_CHROMIUM").expect("TIDEGATE_CHROMIUM names a browser: tests/browser/run");
    let folder = tempfile::tempdir().unwrap();
    let reports = reports();
    let found = measure(&browser, folder.path(), &reports);
    assert_eq!(found.len(), reports.len() * WIDTHS.len());
    let mut wrong = Vec::new();
    for (index, seen) in found.iter().enumerate() {
        let report = &reports[index / WIDTHS.len()];
        let name = seen["name"].as_str().unwrap();
        let mut say = |what: String| wrong.push(format!("{name}: {what}"));
        if !seen["text"].as_str().unwrap().contains("Tidegate plan") {
            say(format!("it does not render: {:?}", seen["text"]));
        }
        if seen["scroll"].as_i64() > seen["width"].as_i64() || !seen["wide"].as_array().unwrap().is_empty() {
            say(format!("{} of {} pixels: {}", seen["scroll"], seen["width"], seen["wide"]));
        }
        let curved = report.plan.rollouts.iter().filter_map(|rollout| rollout.forecast.as_ref());
        let curves = curved.clone().filter(|forecast| forecast.curve.len() > 1).count();
        let tables = curved.filter(|forecast| !forecast.steps.is_empty()).count();
        if (seen["tables"].as_u64().unwrap() as usize) < tables {
            say(format!("{} of {tables} tables of steps", seen["tables"]));
        }
        if report.is_markdown {
            if (seen["images"].as_u64().unwrap() as usize) < curves {
                say(format!("{} of {curves} pictures", seen["images"]));
            }
            continue;
        }
        let drawn = seen["curves"].as_array().unwrap();
        if drawn.len() != curves {
            say(format!("{} of {curves} curves", drawn.len()));
        }
        for curve in drawn {
            let number = |field: &str| curve[field].as_f64().unwrap();
            if number("longest") < 100.0 || number("height") < 50.0 || number("left") < 0.0 {
                say(format!("a curve that shows nothing: {curve}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if let Ok(pictures) = env::var("TIDEGATE_PICTURES") {
        keep_pictures(&browser, folder.path(), Path::new(&pictures), &reports);
    }
}

/// A screenshot of each report at each width, for people to look at.
fn keep_pictures(browser: &str, folder: &Path, pictures: &Path, reports: &[Report]) {
    fs::create_dir_all(pictures).unwrap();
    for (report, width) in reports.iter().flat_map(|report| WIDTHS.map(|width| (report, width))) {
        let page = folder.join("one.html");
        let frame =
            format!("<iframe src='{}.page.html' style='border:0;width:{width}px;height:1000px'></iframe>", report.name);
        fs::write(&page, format!("<!doctype html><body style='margin:0'>{frame}")).unwrap();
        let profile = tempfile::tempdir().unwrap();
        let status = headless(browser, profile.path())
            .arg(format!("--window-size={},1000", width.max(500)))
            .arg(format!("--screenshot={}", pictures.join(format!("{}-{width}.png", report.name)).display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(status.status.success());
    }
}

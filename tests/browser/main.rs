//! What people read in a browser, in a real one: reports of `tidegate plan` render, their curve is there, and nothing overflows on a
//! desktop or a phone.
//!
//! `tests/browser/run` finds or installs Chromium and names it by `TIDEGATE_CHROMIUM`. `TIDEGATE_PICTURES=DIR` keeps screenshots.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../plan/cases.rs"]
#[allow(dead_code)]
mod cases;
mod chromium;

use std::{env, fs, path::Path};

use pulldown_cmark::{Options, Parser};
use tidegate::{
    manifest,
    plan::{Plan, RolloutPlan, Side, output},
    sim::plan::{Reading, Sides, make},
};

use self::chromium::Chromium;

/// A desktop and a phone.
const WIDTHS: [u32; 2] = [1280, 400];

/// What hosts do to rendered Markdown: wide tables and code scroll by themselves.
const HOST_STYLE: &str = "body{font:14px/1.5 sans-serif;margin:16px;overflow-wrap:break-word}\
    table{display:block;width:max-content;max-width:100%;overflow:auto}pre{overflow:auto}\
    code{white-space:break-spaces}pre code{white-space:pre}";

/// Measures a page.
const MEASURE: &str = r#"(() => {
  const scrolls = element => {
    for (let at = element; at && at !== document.body; at = at.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return true;
    return false;
  };
  document.querySelectorAll('details').forEach(fold => fold.open = true);
  const width = document.documentElement.clientWidth;
  const wide = [...document.body.querySelectorAll('*')]
    .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element.parentElement))
    .map(element => element.outerHTML.slice(0, 120));
  const curves = [...document.querySelectorAll('svg')].filter(curve => {
    const box = curve.getBoundingClientRect();
    const lines = [...curve.querySelectorAll('path')].map(line => line.getBBox().width);
    return box.left >= 0 && box.right <= width && box.height > 50 && Math.max(0, ...lines) > 100;
  }).length;
  const pictures = [...document.querySelectorAll('img')].filter(picture => picture.naturalWidth > 100 && picture.naturalHeight > 50);
  const broken = [...document.querySelectorAll('th')].some(head => head.getBoundingClientRect().height > 60);
  return {width, scroll: document.documentElement.scrollWidth, wide, curves, pictures: pictures.length, broken,
    text: document.body.innerText, tables: document.querySelectorAll('table').length};
})()"#;

struct Report {
    name: String,
    page: String,
    plan: Plan,
    is_markdown: bool,
    /// The files that Markdown shows as pictures.
    curves: Vec<(String, String)>,
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
        // As `tidegate plan --assets` writes them.
        let file = |rollout: &RolloutPlan| format!("{name}-{}.svg", rollout.id.name);
        let forecasts = plan.rollouts.iter().filter_map(|rollout| Some((rollout, rollout.forecast.as_ref()?)));
        let forecasts = forecasts.filter(|(_, forecast)| forecast.curve.len() > 1);
        let curves: Vec<(String, String)> =
            forecasts.map(|(rollout, forecast)| (file(rollout), output::svg(forecast))).collect();
        let curve =
            |rollout: &RolloutPlan| Some(file(rollout)).filter(|file| curves.iter().any(|(name, _)| name == file));
        let markdown = output::markdown(&plan, 65_000, &curve);
        let mut page = String::new();
        pulldown_cmark::html::push_html(&mut page, Parser::new_ext(&markdown, Options::ENABLE_TABLES));
        let page = format!("<!doctype html><meta charset=utf-8><style>{HOST_STYLE}</style><body>{page}");
        reports.push(Report {
            name: format!("{name}.html"),
            page: output::html(&plan),
            plan: plan.clone(),
            is_markdown: false,
            curves: curves.clone(),
        });
        reports.push(Report { name: format!("{name}.md"), page, plan, is_markdown: true, curves });
    }
    reports
}

/// A change of a Rollout whose name, image and paths are as long as the API server allows.
fn long_names() -> Plan {
    let name = "n".repeat(60);
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

#[test]
fn every_report_renders_with_its_curve_and_nothing_overflows() {
    let program = env::var("TIDEGATE_CHROMIUM").expect("TIDEGATE_CHROMIUM names a browser: tests/browser/run");
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Chromium::start(&program);
    let mut wrong = Vec::new();
    for report in reports() {
        let page = folder.path().join(format!("{}.page.html", report.name));
        fs::write(&page, &report.page).unwrap();
        for (name, curve) in &report.curves {
            fs::write(folder.path().join(name), curve).unwrap();
        }
        for width in WIDTHS {
            browser.width(width);
            browser.open(&format!("file://{}", page.display()));
            wrong.extend(
                problems(&mut browser, &report).iter().map(|problem| format!("{} {width}: {problem}", report.name)),
            );
            if let Ok(pictures) = env::var("TIDEGATE_PICTURES") {
                browser.picture(&Path::new(&pictures).join(format!("{}-{width}.png", report.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

/// What is wrong with the report that is open.
fn problems(browser: &mut Chromium, report: &Report) -> Vec<String> {
    let seen = browser.evaluate(MEASURE);
    let mut wrong = Vec::new();
    if !seen["text"].as_str().unwrap().contains("Tidegate plan") {
        wrong.push(format!("it does not render: {:?}", seen["text"]));
    }
    if seen["scroll"].as_i64() > seen["width"].as_i64() || !seen["wide"].as_array().unwrap().is_empty() {
        wrong.push(format!("{} of {} pixels: {}", seen["scroll"], seen["width"], seen["wide"]));
    }
    if seen["broken"] == true {
        wrong.push("the words of a table are broken".to_owned());
    }
    let forecasts = report.plan.rollouts.iter().filter_map(|rollout| rollout.forecast.as_ref());
    let tables = forecasts.filter(|forecast| !forecast.steps.is_empty()).count();
    if (seen["tables"].as_u64().unwrap() as usize) < tables {
        wrong.push(format!("{} of {tables} tables of steps", seen["tables"]));
    }
    let drawn = if report.is_markdown { &seen["pictures"] } else { &seen["curves"] };
    if drawn.as_u64().unwrap() as usize != report.curves.len() {
        wrong.push(format!("{drawn} of {} curves", report.curves.len()));
    }
    wrong
}

//! Manifests to every problem they have, each with its place, its rule and what to do about it.
//!
//! Three looks: at the text of each file, at each object alone (its schema, and what `model` says it means), and at the
//! objects together (names that lead nowhere, Services that two Rollouts fight for, arguments nobody gives). Only the given
//! files are known: what is not among them is not called wrong. Never opens a file, never talks to a cluster.

mod advice;
mod analysis;
mod condition;
mod index;
pub mod kustomize;
mod objects;
pub mod output;
mod references;
mod routers;
pub mod rule;
mod schema;
pub mod similar;
mod sources;
mod workloads;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use self::{
    index::Index,
    rule::{Own, Rule, Severity},
};
use crate::{
    kubernetes::value::Value,
    manifest::{
        File, Mistake, MistakeKind, Object,
        place::{Source, Span, Step},
    },
    model::path::{Path, Segment},
};

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Everything there is to say, in file order.
    pub findings: Vec<Finding>,
    /// How many files were read.
    pub files: usize,
    /// How many objects they hold.
    pub objects: usize,
}

/// One thing to say.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which rule is broken.
    pub rule: Rule,
    /// Where.
    pub at: Spot,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// Other places that have to do with it, and how.
    pub also: Vec<(Spot, String)>,
    /// The object, as people call it: `Rollout web`. Empty if the text itself is wrong.
    pub object: String,
    /// The field, as Kubernetes writes paths. Empty if the whole object is meant.
    pub field: String,
}

/// A place in a file.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The file.
    pub source: Arc<Source>,
    /// The stretch of its text.
    pub span: Span,
}

impl Report {
    /// How many findings are of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.rule.severity() == severity).count()
    }

    /// The same with what there is to say about kustomizations. What cannot be rendered because of a mistake in a text that is
    /// named already is not said again.
    pub fn with(mut self, more: Vec<Finding>) -> Report {
        let is_known = |finding: &Finding| {
            let is_it = |known: &Finding| {
                known.rule.severity() == Severity::Error
                    && known.object.is_empty()
                    && known.at.source.name == finding.at.source.name
            };
            finding.rule == Own::KustomizationInvalid.into() && self.findings.iter().any(is_it)
        };
        let mut said = HashSet::new();
        let key =
            |finding: &Finding| (finding.at.source.name.clone(), finding.at.span, finding.rule, finding.what.clone());
        // Several overlays share a base.
        let mut is_new = |finding: &Finding| !is_known(finding) && said.insert(key(finding));
        let more: Vec<Finding> = more.into_iter().filter(|finding| is_new(finding)).collect();
        self.findings.splice(0..0, more);
        self
    }

    /// The same without the findings of some rules.
    pub fn without(mut self, ignored: &[Rule]) -> Report {
        self.findings.retain(|finding| !ignored.contains(&finding.rule));
        self
    }
}

/// Files that are applied together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    /// Those that hold objects, by their positions among all files.
    pub files: Vec<usize>,
    /// Those that hold patches of such objects: parts, which are not judged as a whole.
    pub patches: Vec<usize>,
    /// Those of which only the text is judged: a kustomization is made of them, and its objects are judged as rendered.
    pub texts: Vec<usize>,
}

/// Looks at files together.
pub fn lint(files: &[File]) -> Report {
    lint_sets(files, &[FileSet { files: (0..files.len()).collect(), ..FileSet::default() }])
}

/// Looks at the files of each set together. What is wrong with a file is said once, however many sets it is in.
pub fn lint_sets(files: &[File], sets: &[FileSet]) -> Report {
    let mut findings = Vec::new();
    for set in sets {
        let chosen = |positions: &[usize]| positions.iter().filter_map(|at| files.get(*at)).collect::<Vec<_>>();
        findings.extend(findings_of(&chosen(&set.files), &chosen(&set.patches), &chosen(&set.texts)));
    }
    let looked_at = |positions: fn(&FileSet) -> &[usize]| -> BTreeSet<usize> {
        let all = sets.iter().flat_map(positions).copied();
        all.filter(|at| *at < files.len()).collect()
    };
    let mut whole = looked_at(|set| &set.files);
    whole.extend(looked_at(|set| &set.patches));
    let objects = whole.iter().map(|at| files[*at].objects.len()).sum();
    whole.extend(looked_at(|set| &set.texts));
    let order: HashMap<&str, usize> =
        files.iter().enumerate().map(|(at, file)| (file.source.name.as_str(), at)).collect();
    let place = |finding: &Finding| order.get(finding.at.source.name.as_str()).copied().unwrap_or(usize::MAX);
    findings.sort_by(|one, other| {
        let key = |finding: &Finding| (place(finding), finding.at.span, finding.rule);
        let name = |finding: &Finding| finding.at.source.name.clone();
        (place(one), name(one)).cmp(&(place(other), name(other))).then_with(|| key(one).cmp(&key(other)))
    });
    drop_echoes(&mut findings);
    let mut said = HashSet::new();
    // One file may have been read for several sets, and for each overlay of it.
    findings.retain(|finding| {
        said.insert((finding.at.source.name.clone(), finding.at.span, finding.rule, finding.what.clone()))
    });
    Report { findings, files: whole.len(), objects }
}

/// What there is to say about one set.
fn findings_of(files: &[&File], patches: &[&File], texts: &[&File]) -> Vec<Finding> {
    let mut notes = Notes::default();
    for file in files.iter().chain(patches).chain(texts) {
        file.mistakes.iter().for_each(|mistake| notes.mistake(&file.source, mistake));
    }
    for patch in patches.iter().flat_map(|file| &file.objects) {
        objects::check_patch(patch, &mut notes);
    }
    let objects = || files.iter().flat_map(|file| &file.objects);
    let index = Index::new(objects());
    for (again, first) in &index.twice {
        let what = format!("{} is given twice", name_of(again));
        let finding = notes.say(again, &[Step::Key("metadata"), Step::Key("name")], Own::DuplicateObject, what);
        finding.remedy = "remove one of them, or give them different names or namespaces".into();
        finding.also.push((spot(first, &[Step::Key("metadata"), Step::Key("name")]), "it is given here first".into()));
    }
    for object in objects() {
        objects::check(object, &mut notes);
    }
    references::check(&index, &mut notes);
    analysis::check(&index, &mut notes);
    workloads::check(&index, &mut notes);
    sources::check(&index, &mut notes);
    notes.findings
}

/// Drops what the schema says about a value of which `model` says the same in better words.
fn drop_echoes(findings: &mut Vec<Finding>) {
    let echo = |rule: Rule| rule == Own::FieldValue.into() || rule == Own::MissingField.into();
    let said: HashSet<(String, Span)> = findings
        .iter()
        .filter(|finding| matches!(finding.rule, Rule::Model(code) if code.severity() == Severity::Error))
        .map(|finding| (finding.at.source.name.clone(), finding.at.span))
        .collect();
    let is_said = |finding: &Finding| said.contains(&(finding.at.source.name.clone(), finding.at.span));
    findings.retain(|finding| !(echo(finding.rule) && is_said(finding)));
}

/// An object as people call it.
fn name_of(object: &Object) -> String {
    match (object.name(), object.namespace()) {
        ("", _) => object.kind().to_owned(),
        (name, "") => format!("{} {name}", object.kind()),
        (name, namespace) => format!("{} {namespace}/{name}", object.kind()),
    }
}

/// A value in the middle of a sentence: texts without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn spot(object: &Object, steps: &[Step<'_>]) -> Spot {
    Spot { source: object.source_of(steps.iter().copied()).clone(), span: object.span(steps.iter().copied()) }
}

/// Where findings are noted.
#[derive(Debug, Default)]
struct Notes {
    findings: Vec<Finding>,
    /// Names of one kind in one object that could not be looked up, with the finding that says so.
    absent: Vec<Absent>,
}

#[derive(Debug)]
struct Absent {
    object: *const Object,
    kind: String,
    names: Vec<String>,
    finding: usize,
}

impl Notes {
    /// Notes something about a node of an object; the rest can be filled in.
    fn say(
        &mut self,
        object: &Object,
        steps: &[Step<'_>],
        rule: impl Into<Rule>,
        what: impl Into<String>,
    ) -> &mut Finding {
        let at = spot(object, steps);
        self.add(object, steps, rule.into(), at, what.into())
    }

    /// The same, pointing at the node's key.
    fn say_key(
        &mut self,
        object: &Object,
        steps: &[Step<'_>],
        rule: impl Into<Rule>,
        what: impl Into<String>,
    ) -> &mut Finding {
        let span = object.key_span(steps.iter().copied());
        let at = Spot { source: object.source_of(steps.iter().copied()).clone(), span };
        self.add(object, steps, rule.into(), at, what.into())
    }

    fn add(&mut self, object: &Object, steps: &[Step<'_>], rule: Rule, at: Spot, what: String) -> &mut Finding {
        let field = path_of(steps).to_string();
        let object = name_of(object);
        let last = self.findings.len();
        self.findings.push(Finding { rule, at, what, remedy: String::new(), also: Vec::new(), object, field });
        &mut self.findings[last]
    }

    /// Notes that a name could not be looked up; all of a kind in one object make one finding.
    fn absent(&mut self, object: &Object, steps: &[Step<'_>], kind: &str, name: &str) {
        let same = |absent: &&mut Absent| std::ptr::eq(absent.object, object) && absent.kind == kind;
        if let Some(absent) = self.absent.iter_mut().rev().find(same) {
            if !absent.names.iter().any(|known| known == name) {
                absent.names.push(name.to_owned());
                let names = absent.names.join(", ");
                self.findings[absent.finding].what =
                    format!("no {kind} was given, so these could not be checked: {names}");
            }
            return;
        }
        let what = format!("no {kind} was given, so {name} could not be checked");
        self.say(object, steps, Own::ReferenceNotGiven, what).remedy = "give the file that holds it as well".into();
        let finding = self.findings.len() - 1;
        self.absent.push(Absent { object, kind: kind.to_owned(), names: vec![name.to_owned()], finding });
    }

    fn mistake(&mut self, source: &Arc<Source>, mistake: &Mistake) {
        let spot = |span| Spot { source: source.clone(), span };
        let rule = match mistake.kind {
            MistakeKind::Encoding => Own::Encoding,
            MistakeKind::Syntax => Own::YamlSyntax,
            MistakeKind::Repeated => Own::RepeatedKey,
            MistakeKind::Scalar => Own::YamlValue,
            MistakeKind::Key => Own::YamlKey,
            MistakeKind::Merge => Own::YamlMerge,
            MistakeKind::Budget => Own::YamlBudget,
            MistakeKind::Shape => Own::NotAnObject,
            MistakeKind::KeyReadOtherwise => Own::KeyReadOtherwise,
            MistakeKind::MergeReplaces => Own::MergeReplaces,
            MistakeKind::Ignored => Own::IgnoredText,
        };
        self.findings.push(Finding {
            rule: rule.into(),
            at: spot(source.first_line(mistake.span)),
            what: mistake.what.clone(),
            remedy: mistake.remedy.clone(),
            also: mistake.also.iter().map(|also| (spot(also.0), also.1.clone())).collect(),
            object: String::new(),
            field: String::new(),
        });
    }
}

/// Steps of a manifest as a path of the model.
pub(crate) fn path_of(steps: &[Step<'_>]) -> Path {
    Path(
        steps
            .iter()
            .map(|step| match step {
                Step::Key(key) => Segment::Key((*key).into()),
                Step::Index(index) => Segment::Index(*index),
            })
            .collect(),
    )
}

/// A path of the model as steps of a manifest.
fn steps_of(path: &Path) -> Vec<Step<'_>> {
    path.segments()
        .iter()
        .map(|segment| match segment {
            Segment::Key(key) => Step::Key(key),
            Segment::Index(index) => Step::Index(*index),
        })
        .collect()
}

#[cfg(test)]
mod tests;

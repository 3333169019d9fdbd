//! What is counted about GitSources: how far each is behind its repository, and what its host takes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::text::{Family, Histogram, Kind, Labels, Page};
use crate::{
    api::{GitRevision, GitSourceStatus},
    engine::key::Place,
    forge::Outcome,
};

const LAG: &[f64] =
    &[1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0];

/// How far a commit can get.
const STAGES: [&str; 2] = ["applied", "rolled_out"];

/// What is known of a source.
#[derive(Debug, Default)]
pub(super) struct Source {
    lags: [Histogram; 2],
    reports: BTreeMap<&'static str, u64>,
    /// When the newest commit was seen.
    seen: Option<Timestamp>,
    /// Which stages the newest commit has still to reach.
    waits: [bool; 2],
    conditions: Vec<(String, bool)>,
    held: usize,
    objects: usize,
}

fn stages(status: &GitSourceStatus) -> [&Option<GitRevision>; 2] {
    [&status.applied, &status.rolled_out]
}

fn commit(revision: &Option<GitRevision>) -> Option<&str> {
    revision.as_ref().map(|revision| revision.commit.as_str())
}

fn moment(revision: &Option<GitRevision>) -> Option<Timestamp> {
    revision.as_ref().and_then(|revision| revision.at).map(Timestamp::from)
}

impl Source {
    /// Its status, and the one before.
    pub fn recorded(&mut self, old: &GitSourceStatus, new: &GitSourceStatus) {
        for (number, (before, after)) in stages(old).into_iter().zip(stages(new)).enumerate() {
            if after.is_some() && commit(before) != commit(after) {
                // A newer commit may have been seen since.
                let seen = [&new.seen, &old.seen].into_iter().find(|seen| commit(seen) == commit(after));
                if let (Some(seen), Some(reached)) = (seen.and_then(moment), moment(after)) {
                    self.lags[number].observe(LAG, reached.duration_since(seen).as_secs_f64().max(0.0));
                }
            }
            self.waits[number] = new.seen.is_some() && commit(after) != commit(&new.seen);
        }
        self.seen = moment(&new.seen);
        let conditions = new.conditions.iter();
        self.conditions = conditions.map(|condition| (condition.r#type.clone(), condition.status == "True")).collect();
        self.held = new.held.len();
        self.objects = new.inventory.len();
    }

    /// What its host answered to a commit status.
    pub fn reported(&mut self, outcome: &Outcome) {
        let word = match outcome {
            Outcome::Posted(_) => "posted",
            Outcome::Retry(..) => "retried",
            Outcome::GiveUp(_) => "given_up",
            Outcome::Forbidden(_) => "refused",
        };
        *self.reports.entry(word).or_default() += 1;
    }
}

/// The numbers of all sources, as of now.
pub(super) fn families(sources: &BTreeMap<Place, Source>, now: Timestamp, page: &mut Page) {
    let of = |place: &Place| vec![("namespace", place.namespace.to_string()), ("name", place.name.to_string())];
    let with = |place: &Place, key: &'static str, word: &str| {
        let mut labels = of(place);
        labels.push((key, word.to_owned()));
        labels
    };
    let stages =
        || sources.iter().flat_map(|(place, source)| (0..STAGES.len()).map(move |stage| (place, source, stage)));
    let help = "From when a commit was seen to when all of it was applied, or rolled out.";
    let lags: Vec<(Labels, &Histogram)> = stages()
        .filter(|(_, source, stage)| source.lags[*stage] != Histogram::default())
        .map(|(place, source, stage)| (with(place, "stage", STAGES[stage]), &source.lags[stage]))
        .collect();
    page.histograms(Family::new("tidegate_source_lag_seconds", help, Kind::Histogram), LAG, lags);
    let help = "How long ago the newest commit was seen, if it is not applied, or not rolled out; else 0.";
    let behind = stages().map(|(place, source, stage)| {
        let waited = source.seen.filter(|_| source.waits[stage]).map(|seen| now.duration_since(seen).as_secs_f64());
        (with(place, "stage", STAGES[stage]), waited.unwrap_or_default().max(0.0))
    });
    page.samples(Family::new("tidegate_source_behind_seconds", help, Kind::Gauge), behind);
    let help = "The conditions of GitSources: 1 if true.";
    let conditions = sources.iter().flat_map(|(place, source)| {
        source.conditions.iter().map(|(name, is)| (with(place, "type", name), f64::from(u8::from(*is))))
    });
    page.samples(Family::new("tidegate_source_condition", help, Kind::Gauge), conditions);
    let count =
        |count: fn(&Source) -> usize| sources.iter().map(move |(place, source)| (of(place), count(source) as f64));
    let help = "Objects that a GitSource applied and would prune.";
    page.samples(Family::new("tidegate_source_objects", help, Kind::Gauge), count(|source| source.objects));
    let help = "Objects that are held back because their version was aborted.";
    page.samples(Family::new("tidegate_source_held", help, Kind::Gauge), count(|source| source.held));
    let help = "Commit statuses that were sent to the git host, by what it answered.";
    let reports = sources.iter().flat_map(|(place, source)| {
        source.reports.iter().map(|(word, count)| (with(place, "outcome", word), *count as f64))
    });
    page.samples(Family::new("tidegate_source_reports_total", help, Kind::Counter), reports);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, kubernetes::value::Value, value};

    fn at(minute: i64) -> String {
        Timestamp::from_second(minute * 60).unwrap().to_string()
    }

    fn revision(commit: &str, minute: i64) -> Value {
        value!({"commit": commit, "at": at(minute)})
    }

    fn status(seen: Value, applied: Value, rolled_out: Value) -> GitSourceStatus {
        api::read(&value!({"seen": seen, "applied": applied, "rolledOut": rolled_out})).object
    }

    fn page(sources: &BTreeMap<Place, Source>, minute: i64) -> Vec<String> {
        let mut page = Page::default();
        families(sources, Timestamp::from_second(minute * 60).unwrap(), &mut page);
        let text = page.text().replace(r#"namespace="shop",name="web","#, "");
        let is_shown = |line: &&str| !line.starts_with('#') && !line.contains("_bucket") && !line.contains("namespace");
        text.lines().filter(is_shown).map(str::to_owned).collect()
    }

    #[test]
    fn a_commit_is_measured_once_at_each_stage_from_when_it_was_seen() {
        let mut sources = BTreeMap::new();
        let source: &mut Source = sources.entry(Place::new("shop", "web")).or_default();
        let null = || Value::Null;
        let one = status(revision("1", 0), null(), null());
        let two = status(revision("1", 0), revision("1", 1), null());
        // Another commit was seen while the first was rolled out.
        let three = status(revision("2", 5), revision("1", 1), revision("1", 5));
        for (old, new) in [(&one, &one), (&one, &two), (&two, &two), (&two, &three), (&three, &three)] {
            source.recorded(old, new);
        }
        assert_eq!(
            page(&sources, 7),
            [
                "tidegate_source_behind_seconds{stage=\"applied\"} 120",
                "tidegate_source_behind_seconds{stage=\"rolled_out\"} 120",
                "tidegate_source_lag_seconds_sum{stage=\"applied\"} 60",
                "tidegate_source_lag_seconds_count{stage=\"applied\"} 1",
                "tidegate_source_lag_seconds_sum{stage=\"rolled_out\"} 300",
                "tidegate_source_lag_seconds_count{stage=\"rolled_out\"} 1",
            ]
        );
        let done = status(revision("2", 5), revision("2", 6), revision("2", 8));
        sources.entry(Place::new("shop", "web")).or_default().recorded(&three, &done);
        assert_eq!(
            page(&sources, 100)[..2],
            [
                "tidegate_source_behind_seconds{stage=\"applied\"} 0",
                "tidegate_source_behind_seconds{stage=\"rolled_out\"} 0",
            ]
        );
    }
}

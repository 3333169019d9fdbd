//! Jobs and CronJobs.

use super::{Context, cron, field::Field, gostruct, keep, meta, net, pod};
use crate::{names, value::Value};

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// A new Job chooses its pods by its own uid, unless it says that it brings its selector.
pub(super) fn prepare_create(job: &mut Value, context: &Context<'_>) {
    job.set_at(&["status"], Value::object());
    // Labels that the defaults took over from the template are one map with the template's, upstream and here.
    let template_labels = ["spec", "template", "metadata", "labels"];
    let shared = match (job.at(&["metadata", "labels"]), job.at(&template_labels)) {
        (Some(own), Some(template)) => own.is(template),
        (own, _) => own.is_none(),
    };
    if job.at(&["spec", "manualSelector"]) != Some(&Value::Bool(true)) {
        generate_selector(job, context);
    }
    if let Some(labels) = job.at(&template_labels).cloned().filter(|_| shared) {
        job.set_at(&["metadata", "labels"], labels);
    }
}

fn generate_selector(job: &mut Value, context: &Context<'_>) {
    let name = job.at(&["metadata", "name"]).cloned().unwrap_or_default();
    let uid = Value::Str(context.uid.clone());
    let labels = NAME_LABELS.map(|label| (label, &name)).into_iter().chain(UID_LABELS.map(|label| (label, &uid)));
    for (label, value) in labels {
        let path = ["spec", "template", "metadata", "labels", label];
        if job.at(&path).is_none() {
            job.set_at(&path, value);
        }
    }
    let path = ["spec", "selector", "matchLabels", UID_LABELS[1]];
    if job.at(&path).is_none() {
        job.set_at(&path, uid);
    }
}

/// A new Job.
pub(super) fn validate_create(job: &Field) {
    whole(job, None);
}

/// What holds for any Job, new or changed; `old` is the spec before.
fn whole(job: &Field, old: Option<&Value>) {
    generated_selector(job);
    let spec = job.child("spec");
    job_spec(&spec, old);
    selected(&spec);
    let metadata = job.child("metadata");
    let name = metadata.child("name");
    let completions = spec.child("completions").int();
    if spec.child("completionMode").text() == "Indexed" && completions > 0 {
        let last = format!("{}-{}", name.text(), completions - 1);
        if !names::dns_label(&last).is_empty() {
            name.invalid(format!("will not able to create pod with invalid DNS label: {last}"));
        }
    }
}

fn generated_selector(job: &Field) {
    let spec = job.child("spec");
    let selector = spec.child("selector");
    if spec.child("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let (uid, name) = (job.value.str_at(&["metadata", "uid"]), job.value.str_at(&["metadata", "name"]));
    let (uid, name) = (uid.unwrap_or_default(), name.unwrap_or_default());
    let template = spec.child("template");
    let metadata = template.child("metadata");
    let labels = metadata.child("labels");
    let expected = [(UID_LABELS[0], uid), (NAME_LABELS[0], name), (UID_LABELS[1], uid), (NAME_LABELS[1], name)];
    for (label, value) in expected {
        let at = labels.key(label);
        if !at.is_set() {
            at.required(format!("must be '{value}'"));
        } else if at.text() != value {
            at.refuse(labels.value, format!("must be '{value}'"));
        }
    }
    let expected = Value::Map(expected.into_iter().collect());
    if meta::selects(selector.value, &expected) == Some(false) {
        selector.refuse_printed(gostruct::print("LabelSelector", selector.value), "`selector` not auto-generated");
    }
}

fn selected(spec: &Field) {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    if selector.is_set() {
        meta::selector(&selector)
    } else {
        selector.required("")
    }
    let metadata = template.child("metadata");
    let labels = metadata.child("labels");
    if meta::selects(selector.value, labels.value) == Some(false) {
        labels.invalid("`selector` does not match template `labels`");
    }
}

/// `spec` of a Job or of the Jobs a CronJob makes; `old` is the spec before.
fn job_spec(spec: &Field, old: Option<&Value>) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    counts.iter().for_each(|name| spec.child(name).non_negative());
    let (per_index, failed) = (spec.child("backoffLimitPerIndex"), spec.child("maxFailedIndexes"));
    if failed.is_set() && !per_index.is_set() {
        per_index.required("when maxFailedIndexes is specified");
    }
    let manager = spec.child("managedBy");
    if manager.is_set() {
        net::domain_prefixed_path(&manager);
        if manager.text().len() > 63 {
            manager.too_long(63);
        }
    }
    completion_mode(spec);
    let (failure, success) = (spec.child("podFailurePolicy"), spec.child("successPolicy"));
    if failure.is_set() {
        failure_policy(spec, &failure);
    }
    if success.is_set() {
        if spec.child("completionMode").text() == "Indexed" {
            success_policy(spec, &success);
        } else {
            success.refuse_printed(gostruct::print("SuccessPolicy", success.value), "requires indexed completion mode");
        }
    }
    let replacement = spec.child("podReplacementPolicy");
    replacement.one_of_given(if failure.is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] });
    let template = spec.child("template");
    if !old.and_then(|old| old.get("template")).is_some_and(|old| old.is(template.value)) {
        pod::template(&template);
    }
    let inner = template.child("spec");
    let restart = inner.child("restartPolicy");
    match restart.text() {
        "Always" | "" => restart.required("valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if failure.is_set() => {
            restart.invalid("only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        _ => restart.not_supported(&["OnFailure", "Never"]),
    }
}

fn completion_mode(spec: &Field) {
    let mode = spec.child("completionMode");
    mode.one_of_given(&["NonIndexed", "Indexed"]);
    let [completions, parallelism, per_index, failed] =
        ["completions", "parallelism", "backoffLimitPerIndex", "maxFailedIndexes"].map(|name| spec.child(name));
    if mode.text() == "Indexed" {
        if !completions.is_set() {
            completions.required("when completion mode is Indexed");
        }
        if parallelism.int() > 100_000 {
            parallelism.invalid("must be less than or equal to 100000 when completion mode is Indexed");
        }
        if completions.is_set() && failed.int() > completions.int() {
            failed.invalid("must be less than or equal to completions");
        }
        if failed.int() > 100_000 {
            failed.invalid("must be less than or equal to 100000");
        }
        if completions.int() > 100_000 && per_index.is_set() {
            let when = "when completions are above 100000 and used with backoff limit per index";
            if !failed.is_set() {
                failed.required("must be specified when completions is above 100000");
            }
            for limited in [parallelism, failed] {
                if limited.int() > 10_000 {
                    limited.invalid(format!("must be less than or equal to 10000 {when}"));
                }
            }
        }
    } else if !mode.is_set() || mode.text() == "NonIndexed" {
        for field in [per_index, failed] {
            if field.is_set() {
                field.invalid("requires indexed completion mode");
            }
        }
    }
}

fn failure_policy(spec: &Field, at: &Field) {
    let rules = at.child("rules");
    if rules.len() > 20 {
        rules.too_many(20);
    }
    let containers = ["containers", "initContainers"].map(|list| spec.value.list_at(&["template", "spec", list]));
    let names: Vec<&str> = containers.into_iter().flatten().filter_map(|c| c.str_at(&["name"])).collect();
    for rule in rules.items() {
        let action = rule.child("action");
        match action.text() {
            "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
            "FailIndex" if !spec.child("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set");
            }
            _ => action.one_of(&["Count", "FailIndex", "FailJob", "Ignore"]),
        }
        let (codes, conditions) = (rule.child("onExitCodes"), rule.child("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &names);
        }
        pod_conditions(&conditions);
        match (codes.is_set(), conditions.len() > 0) {
            (true, true) => rule.refuse_whole("specifying both OnExitCodes and OnPodConditions is not supported"),
            (false, false) => rule.refuse_whole("specifying one of OnExitCodes and OnPodConditions is required"),
            (true, false) | (false, true) => {}
        }
    }
}

fn pod_conditions(at: &Field) {
    if at.len() > 20 {
        at.too_many(20);
    }
    for pattern in at.items() {
        pattern.child("type").check(names::label_key);
        let status = pattern.child("status");
        match status.text() {
            "" => status.required("valid values: [\"False\" \"True\" \"Unknown\"]"),
            _ => status.one_of(&["False", "True", "Unknown"]),
        }
    }
}

fn exit_codes(at: &Field, containers: &[&str]) {
    let (operator, container, values) = (at.child("operator"), at.child("containerName"), at.child("values"));
    match operator.text() {
        "" => operator.required("valid values: [\"In\" \"NotIn\"]"),
        _ => operator.one_of(&["In", "NotIn"]),
    }
    if container.is_set() && !containers.contains(&container.text()) {
        container.invalid("must be one of the container or initContainer names in the pod template");
    }
    if values.len() == 0 {
        values.invalid("at least one value is required");
    } else if values.len() > 255 {
        values.too_many(255);
    }
    for (i, code) in values.items().enumerate() {
        if operator.text() == "In" && code.int() == 0 {
            code.invalid("must not be 0 for the In operator");
        }
        if values.list()[..i].contains(code.value) {
            code.duplicate();
        }
    }
    if !values.list().iter().map(|code| code.as_int().unwrap_or(0)).is_sorted() {
        values.invalid("must be ordered");
    }
}

fn success_policy(spec: &Field, at: &Field) {
    let (rules, completions) = (at.child("rules"), spec.child("completions").int());
    if rules.len() == 0 {
        rules.required("at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > 20 {
        rules.too_many(20);
    }
    for rule in rules.items() {
        let (count, indexes) = (rule.child("succeededCount"), rule.child("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            rule.required("at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if indexes.is_set() {
            match index_count(indexes.text(), completions) {
                Ok(count) => total = count,
                Err(why) => indexes.invalid(format!("error parsing succeededIndexes: {why}")),
            }
        }
        if count.is_set() {
            count.non_negative();
            let at_most = |limit: i64, of: &str| {
                if count.int() > limit {
                    count.invalid(format!("must be less than or equal to {limit} (the number of {of})"));
                }
            };
            at_most(completions, "specified completions");
            if indexes.is_set() {
                at_most(total, "indexes in the specified succeededIndexes field");
            }
        }
    }
}

/// How many indexes a text such as `1,3-5` names.
fn index_count(text: &str, completions: i64) -> Result<i64, String> {
    let number = |text: &str| {
        let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions { Err(format!("too large index: {text:?}")) } else { Ok(number) }
    };
    let (mut total, mut last) = (0, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let mut ends = interval.split('-');
        let (first, second) = (ends.next().unwrap_or_default(), ends.next());
        if ends.next().is_some() {
            let why = "violates the requirement that an index interval can have at most two parts separated by '-'";
            return Err(format!("the fragment {interval:?} {why}"));
        }
        let low = number(first)?;
        let high = second.map(number).transpose()?;
        let order = |previous: i64, current: i64| {
            Err(format!("non-increasing order, previous: {previous}, current: {current}"))
        };
        if high.is_some_and(|high| low >= high) {
            return order(low, high.unwrap_or(low));
        }
        if let Some(previous) = last.filter(|previous| *previous >= low) {
            return order(previous, low);
        }
        let high = high.unwrap_or(low);
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

/// A changed Job.
pub(super) fn validate_update(job: &Field, old: &Value) {
    let spec = job.child("spec");
    let before = old.get("spec").unwrap_or(&Value::Null);
    if spec.value.is(before) {
        return;
    }
    whole(job, Some(before));
    job_spec(&spec, Some(before)); // upstream judges a changed spec twice
    selected(&spec);
    let completions = spec.child("completions");
    if spec.child("completionMode").text() != "Indexed" {
        completions.immutable(before.get("completions"));
    } else if completions.is_set()
        && completions.value != before.get("completions").unwrap_or(&Value::Null)
        && completions.int() != spec.child("parallelism").int()
    {
        completions.invalid("can only be modified in tandem with spec.parallelism");
    }
    let printed = |name: &str, go: &str| {
        let (field, old) = (spec.child(name), before.get(name).unwrap_or(&Value::Null));
        if field.value != old {
            let printed = if field.is_set() { gostruct::print(go, field.value) } else { "null".into() };
            field.refuse_printed(printed, "field is immutable");
        }
    };
    printed("selector", "LabelSelector");
    immutable_template(&spec, old);
    spec.child("completionMode").immutable(before.get("completionMode"));
    printed("podFailurePolicy", "PodFailurePolicy");
    spec.child("backoffLimitPerIndex").immutable(before.get("backoffLimitPerIndex"));
    spec.child("managedBy").immutable(before.get("managedBy"));
    printed("successPolicy", "SuccessPolicy");
}

/// The template never changes, but for where pods of a Job that has not started may run.
fn immutable_template(spec: &Field, old: &Value) {
    let template = spec.child("template");
    let mut before = old.at(&["spec", "template"]).cloned().unwrap_or_default();
    if template.value.is(&before) {
        return;
    }
    let suspended = old.at(&["spec", "suspend"]) == Some(&Value::Bool(true));
    if suspended && old.at(&["status", "startTime"]).is_none() {
        let free: [&[&str]; 6] = [
            &["spec", "affinity", "nodeAffinity"],
            &["spec", "nodeSelector"],
            &["spec", "tolerations"],
            &["metadata", "annotations"],
            &["metadata", "labels"],
            &["spec", "schedulingGates"],
        ];
        free.iter().for_each(|path| keep(&mut before, template.value, path));
        if before.at(&["spec", "affinity"]).and_then(Value::as_map).is_some_and(|affinity| affinity.is_empty()) {
            keep(&mut before, template.value, &["spec", "affinity"]);
        }
    }
    if *template.value != before {
        template.refuse_printed(gostruct::print("PodTemplateSpec", template.value), "field is immutable");
    }
}

/// Whether a condition of a Job holds.
fn is_true(job: &Value, condition: &str) -> bool {
    job.list_at(&["status", "conditions"])
        .iter()
        .any(|c| c.str_at(&["type"]) == Some(condition) && c.str_at(&["status"]) == Some("True"))
}

/// A write to `jobs/status`: a finished Job stays finished and adds up.
pub(super) fn validate_status(job: &Field, old: &Value) {
    let status = job.child("status");
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.child(name).non_negative();
    }
    let holds = |condition: &str| is_true(job.value, condition);
    let held = |condition: &str| is_true(old, condition);
    let changed = |condition: &str| holds(condition) != held(condition);
    let differs = |field: &str| status.value.get(field) != old.at(&["status", field]);
    let (complete, failed) = (holds("Complete"), holds("Failed"));
    let finished = complete || failed;
    let finished_changed = finished != (held("Complete") || held("Failed"));
    let conditions = status.child("conditions");
    let (start, end) = (status.child("startTime"), status.child("completionTime"));
    if (changed("Complete") || changed("Failed")) && complete && failed {
        conditions.refuse_whole("cannot set Complete=True and Failed=true conditions");
    }
    if (changed("Complete") || changed("FailureTarget")) && complete && holds("FailureTarget") {
        conditions.refuse_whole("cannot set Complete=True and FailureTarget=true conditions");
    }
    if changed("Complete") || differs("completionTime") {
        if end.is_set() && !complete {
            end.invalid("cannot set completionTime when there is no Complete=True condition");
        }
        if !end.is_set() && complete {
            end.required("completionTime is required for Complete jobs");
        }
    }
    if (differs("startTime") || differs("completionTime"))
        && start.is_set()
        && end.is_set()
        && end.text() < start.text()
    {
        end.invalid("must be equal to or after `startTime`");
    }
    if (changed("Failed") || differs("failedIndexes")) && failed && !holds("FailureTarget") {
        conditions.refuse_whole("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if (changed("Complete") || changed("SuccessCriteriaMet")) && complete && !holds("SuccessCriteriaMet") {
        conditions.refuse_whole("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
    let active = status.child("active");
    if (finished_changed || differs("active")) && finished && active.int() > 0 {
        active.invalid("active>0 is invalid for finished job");
    }
    let idle = job.value.at(&["spec", "suspend"]) == Some(&Value::Bool(true))
        && job.value.int_at(&["spec", "completions"]) == Some(0);
    if (finished_changed || differs("startTime")) && !idle && finished && !start.is_set() {
        start.required("startTime is required for finished job");
    }
    uncounted_and_indexes(job, &status, old, finished, finished_changed);
    for (this, that, why) in [
        ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ] {
        if holds(this) && holds(that) {
            conditions.refuse_whole(why);
        }
    }
    if job.value.at(&["spec", "successPolicy"]).is_some() && complete && !holds("SuccessCriteriaMet") {
        conditions.refuse_whole("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
    no_way_back(job, &status, old);
}

fn uncounted_and_indexes(job: &Field, status: &Field, old: &Value, finished: bool, finished_changed: bool) {
    let differs = |field: &str| status.value.get(field) != old.at(&["status", field]);
    let uncounted = status.child("uncountedTerminatedPods");
    let pods = uncounted.child("failed").len() + uncounted.child("succeeded").len();
    if (finished_changed || differs("uncountedTerminatedPods")) && finished && pods > 0 {
        let printed = gostruct::print("UncountedTerminatedPods", uncounted.value);
        uncounted.refuse_printed(printed, "must be empty for finished job");
    }
    let indexed = job.value.str_at(&["spec", "completionMode"]) == Some("Indexed");
    let completed = status.child("completedIndexes");
    if differs("completedIndexes") {
        let completions = job.value.int_at(&["spec", "completions"]);
        if let Some(Err(why)) = completions.map(|completions| index_count(completed.text(), completions)) {
            completed.invalid(format!("error parsing completedIndexes: {why}"));
        }
        if !completed.text().is_empty() && !indexed {
            completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode");
        }
    }
    let failed = status.child("failedIndexes");
    if differs("failedIndexes") && failed.is_set() && job.value.at(&["spec", "backoffLimitPerIndex"]).is_none() {
        failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    let terminating = status.child("terminating");
    if (finished_changed || differs("terminating")) && finished && terminating.int() > 0 {
        terminating.invalid("terminating>0 is invalid for finished job");
    }
    let ready = status.child("ready");
    if (differs("ready") || differs("active")) && ready.is_set() && ready.int() > status.child("active").int() {
        ready.invalid("cannot set more ready pods than active");
    }
}

fn no_way_back(job: &Field, status: &Field, old: &Value) {
    let conditions = status.child("conditions");
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, condition) && !is_true(job.value, condition) {
            conditions.refuse_whole(format!("cannot disable the terminal {condition}=True condition"));
        }
    }
    let indexed = job.value.str_at(&["spec", "completionMode"]) == Some("Indexed");
    let elastic = indexed && job.value.at(&["spec", "completions"]) == job.value.at(&["spec", "parallelism"]);
    for (name, free) in [("failed", false), ("succeeded", elastic)] {
        let counter = status.child(name);
        if !free && counter.int() < old.int_at(&["status", name]).unwrap_or(0) {
            counter.refuse(counter.int(), format!("cannot decrease the {name} counter"));
        }
    }
    let end = status.child("completionTime");
    if end.is_set() && old.at(&["status", "completionTime"]).is_some_and(|old| old != end.value) {
        end.invalid("field is immutable");
    }
    let suspended = job.value.at(&["spec", "suspend"]) == Some(&Value::Bool(true));
    let resumed = |condition: &Value| {
        condition.str_at(&["type"]) == Some("Suspended") && condition.str_at(&["status"]) == Some("False")
    };
    let resuming = is_true(old, "Suspended") && conditions.list().iter().any(resumed);
    let start = status.child("startTime");
    if !resuming && !suspended && old.at(&["status", "startTime"]).is_some_and(|old| old != start.value) {
        start.required("startTime cannot be removed for unsuspended job");
    }
    if is_true(old, "SuccessCriteriaMet") && !is_true(job.value, "SuccessCriteriaMet") {
        conditions.refuse_whole("cannot disable the SuccessCriteriaMet=True condition");
    }
}

/// A CronJob, new or changed.
pub(super) fn validate_cron(cron_job: &Field, old: Option<&Value>) {
    let spec = cron_job.child("spec");
    let before = old.and_then(|old| old.get("spec"));
    if before.is_none_or(|before| !spec.value.is(before)) {
        cron_spec(&spec, before);
    }
    let metadata = cron_job.child("metadata");
    let name = metadata.child("name");
    if old.is_none() && name.text().len() > 52 {
        name.invalid("must be no more than 52 characters");
    }
}

fn cron_spec(spec: &Field, before: Option<&Value>) {
    let (schedule, zone) = (spec.child("schedule"), spec.child("timeZone"));
    if schedule.text().is_empty() {
        schedule.required("");
    } else {
        if let Some(problem) = cron::problem(schedule.text()) {
            schedule.invalid(problem);
        }
        let had_zone = before.and_then(|before| before.str_at(&["schedule"])).is_some_and(|old| old.contains("TZ"));
        match (schedule.text().contains("TZ"), had_zone) {
            (true, false) => {
                schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
            }
            (true, true) if zone.is_set() => {
                schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule");
            }
            _ => {}
        }
    }
    spec.child("startingDeadlineSeconds").non_negative();
    if before.is_none_or(|before| before.get("timeZone") != spec.value.get("timeZone")) {
        time_zone(&zone);
    }
    spec.child("concurrencyPolicy").one_of_required(&["Allow", "Forbid", "Replace"]);
    let template = spec.child("jobTemplate");
    let job = template.child("spec");
    job_spec(&job, before.and_then(|before| before.at(&["jobTemplate", "spec"])));
    let selector = job.child("selector");
    if selector.is_set() {
        selector.refuse_printed(gostruct::print("LabelSelector", selector.value), "`selector` will be auto-generated");
    }
    if job.child("manualSelector").is_true() {
        job.child("manualSelector").not_supported(&["nil", "false"]);
    }
    spec.child("successfulJobsHistoryLimit").non_negative();
    spec.child("failedJobsHistoryLimit").non_negative();
}

fn time_zone(at: &Field) {
    if !at.is_set() {
        return;
    }
    if at.text().is_empty() {
        return at.invalid("timeZone must be nil or non-empty string");
    }
    let strange = |part: &str| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
        part == "."
            || part == ".."
            || part.starts_with('-')
            || !(1..=14).contains(&part.len())
            || !part.bytes().all(fits)
    };
    if at.text().split('/').any(strange) {
        return at.invalid(format!("unknown time zone {}", at.text()));
    }
    if at.text().eq_ignore_ascii_case("Local") {
        at.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
    if at.text() != "Local" && !ZONES.lines().any(|zone| zone == at.text()) {
        at.invalid(format!("unknown time zone {}", at.text()));
    }
}

/// The names of the IANA time zone database, as Go carries it.
const ZONES: &str = include_str!("zones.txt");

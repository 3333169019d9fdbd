//! What providers are asked, and what their answers mean.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    api::{self, AnalysisRun, Measurement, Metric},
    kubernetes::value::Value,
    metric::job::{self, Created},
};

use crate::check;

fn read<T: serde::de::DeserializeOwned + Default>(json: &Json) -> T {
    api::read(&Value::from(json.clone())).object
}

fn time(json: &Json) -> Timestamp {
    json.as_str().unwrap().parse().unwrap()
}

/// A measurement as the files spell it: what is empty is there, too.
fn measurement(measurement: &Measurement) -> Json {
    let time = |time: Option<api::Time>| time.map(|time| time.to_string());
    let metadata = if measurement.metadata.is_empty() { Json::Null } else { json!(measurement.metadata) };
    json!({
        "phase": measurement.phase,
        "value": measurement.value,
        "message": measurement.message,
        "metadata": metadata,
        "startedAt": time(measurement.started_at),
        "finishedAt": time(measurement.finished_at),
        "resumeAt": time(measurement.resume_at),
    })
}

fn objects(json: &Json) -> Vec<Value> {
    json.as_array().into_iter().flatten().map(|object| Value::from(object.clone())).collect()
}

fn find<'o>(objects: &'o [Value], namespace: &str, name: &str) -> Option<&'o Value> {
    let text = |object: &Value, key: &str| object.str_at(&["metadata", key]).unwrap_or_default().to_owned();
    objects.iter().find(|object| text(object, "name") == name && text(object, "namespace") == namespace)
}

#[test]
fn vectors_provider_job() {
    check("provider-job", |input, expect| {
        let (run, metric): (AnalysisRun, Metric) = (read(&input["run"]), read(&input["metric"]));
        let (jobs, pods, now) = (objects(&input["jobs"]), objects(&input["pods"]), time(&input["clock"]));
        let before: Measurement = read(&input["measurement"]);
        let mut answer =
            json!({"createdJobs": [], "deletedJobs": [], "providerType": tidegate::metric::provider(&metric)});
        if expect.get("messageClass").is_some() {
            answer["messageClass"] = expect["messageClass"].clone();
        }
        let refused = input["deleteError"].as_str();
        match input["op"].as_str().unwrap_or("run") {
            "run" => {
                let place = job::Place {
                    namespace: input["jobNamespace"].as_str().map(str::to_owned),
                    elsewhere: input["customKubeconfig"] == true,
                };
                let built = job::build(&run, &metric, metric.provider.job.as_ref().unwrap(), &place);
                let text = |key: &str| built.str_at(&["metadata", key]).unwrap_or_default();
                let created = match (input["createError"].as_str(), find(&jobs, text("namespace"), text("name"))) {
                    (Some(words), _) => Created::No(words.to_owned()),
                    (None, Some(existing)) => Created::Already(Box::new(existing.clone())),
                    (None, None) => {
                        answer["createdJobs"] = json!([Json::from(&built)]);
                        Created::Yes
                    }
                };
                answer["measurement"] = measurement(&job::begun(&run, &built, &created, now));
            }
            "resume" => {
                answer["measurement"] = measurement(&match job::of(&run, &before) {
                    Err(problem) => tidegate::metric::failed(before, problem, now),
                    Ok((namespace, name)) => job::resumed(&name, &before, find(&jobs, &namespace, &name), &pods, now),
                });
            }
            "terminate" => {
                answer["measurement"] = measurement(&match job::of(&run, &before) {
                    Err(problem) => tidegate::metric::failed(before, problem, now),
                    Ok((namespace, name)) => {
                        answer["deletePropagation"] = "Foreground".into();
                        let is_there = find(&jobs, &namespace, &name).is_some();
                        if is_there && refused.is_none() {
                            answer["deletedJobs"] = json!([format!("Job/{namespace}/{name}")]);
                        }
                        job::terminated(&before, refused.map_or(Ok(()), |words| Err(words.to_owned())), now)
                    }
                });
            }
            "garbageCollect" => {
                let kept = input["limit"].as_u64().unwrap() as usize;
                let gone = job::outdated(&run, jobs.iter(), kept);
                let text = |job: &Value, key: &str| job.str_at(&["metadata", key]).unwrap_or_default().to_owned();
                if !gone.is_empty() {
                    answer["deletePropagation"] = "Foreground".into();
                }
                answer["error"] = refused.filter(|_| !gone.is_empty()).map_or(Json::Null, Json::from);
                if refused.is_none() {
                    let names = gone.iter().map(|job| format!("Job/{}/{}", text(job, "namespace"), text(job, "name")));
                    answer["deletedJobs"] = names.collect();
                }
            }
            op => panic!("{op}"),
        }
        Some(answer)
    });
}

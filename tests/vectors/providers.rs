//! What providers are asked, and what their answers mean.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    analysis::Work,
    api::{self, AnalysisRun, Argument, Measurement, Metric},
    io::web::Web,
    kubernetes::{jsonpath::Template, value::Value},
    metric::{
        self, Ask, Request, Response, Settings,
        job::{self, Created},
    },
    model::arguments,
};

use crate::{check, server::Server};

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

/// Whether a message is what it should be, as strictly as its class says.
fn is_same_message(class: &str, theirs: &str, ours: &str) -> bool {
    let beginning = |text: &str, end: &str| text.split(end).next().unwrap_or_default().to_owned();
    match class {
        "exact" => theirs == ours,
        "condition" => beginning(theirs, "Condition \"") == beginning(ours, "Condition \""),
        "jsonpath" => beginning(theirs, ": ") == beginning(ours, ": "),
        "go-library" | "transport" => !ours.is_empty(),
        "" => theirs.is_empty() && ours.is_empty(),
        class => panic!("{class}"),
    }
}

/// A request as the files spell it.
fn asked(request: &Request) -> Json {
    let (address, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
    let pairs = |text: &[u8]| -> Json {
        form_urlencoded::parse(text).map(|(key, value)| (key.into_owned(), Json::from(value.into_owned()))).collect()
    };
    let headers: Json =
        request.headers.iter().map(|(key, value)| (key.to_lowercase(), Json::from(value.as_str()))).collect();
    let path = address.strip_prefix(SERVER).unwrap_or_default();
    let mut asked = json!({"method": request.method, "path": path, "headers": headers});
    if !query.is_empty() {
        asked["query"] = pairs(query.as_bytes());
    }
    let kind = headers["content-type"].as_str().unwrap_or_default();
    if kind.contains("urlencoded") && !request.body.is_empty() {
        asked["form"] = pairs(&request.body);
    } else if kind.contains("json") {
        asked["json"] = serde_json::from_slice(&request.body).unwrap();
    } else if !request.body.is_empty() {
        asked["body"] = String::from_utf8_lossy(&request.body).into();
    }
    asked
}

const SERVER: &str = "http://server.test";

/// Answers a case as the engine would, with the recorded answers for a network.
fn answer(input: &Json, expect: &Json) -> Option<Json> {
    let text = input.to_string().replace("__SERVER__", SERVER);
    let input: Json = serde_json::from_str(&text).unwrap();
    let class = expect["messageClass"].as_str().unwrap_or_default();
    let given: Vec<Argument> = read(&input["args"]);
    let metric = match arguments::resolve_metric(&read(&input["metric"]), &given) {
        Ok(metric) => metric,
        Err(problem) => return Some(json!({"resolveError": problem})),
    };
    let now = time(&input["clock"]);
    let prometheus = input["env"]["ARGO_ROLLOUTS_PROMETHEUS_ADDRESS"].as_str().map(str::to_owned);
    let settings = Settings { prometheus, ..Settings::default() };
    let mut ours = json!({"providerType": metric::provider(&metric), "requests": []});
    let asked_for = metric::ask(&AnalysisRun::default(), &metric, &Work::Start, &settings, now);
    let measured = match asked_for {
        Ask::Known(measurement) => measurement,
        Ask::Send(request) => {
            // Tokens, redirects and time are the client's: it asks a server that gives the recorded answers.
            let responses = input["responses"].as_array().cloned().unwrap_or_default();
            let is_the_clients = request.oauth2.is_some()
                || responses.iter().any(|response| response.get("headers").is_some())
                || class == "transport";
            if is_the_clients {
                return Some(fetched(&metric, *request, &responses, expect, now));
            }
            let response = |number: usize| {
                let response = responses.get(number).or(responses.last()).unwrap();
                let code = response["status"].as_u64().unwrap_or(200) as u16;
                Response { code, body: response["body"].as_str().unwrap_or_default().as_bytes().to_vec() }
            };
            let mut requests = vec![asked(&request)];
            let mut given = response(0);
            if let Some(other) = request.otherwise.filter(|_| [405, 501].contains(&given.code)) {
                requests.push(asked(&other));
                given = response(1);
            }
            ours["requests"] = requests.into();
            metric::answered(&metric, Ok(given), now)
        }
        other => panic!("{other:?}"),
    };
    let metadata = metric::metadata(&metric);
    ours["metadata"] = if metadata.is_empty() { Json::Null } else { json!(metadata) };
    let mut measured = measurement(&measured);
    let said = measured["message"].as_str().unwrap_or_default().to_owned();
    if let Some(words) = expect["providerError"].as_str() {
        let is_own = class == "jsonpath" && !said.is_empty();
        let same = (is_own || is_same_message(class, words, &said)) && measured["phase"] == "Error";
        return Some(if same { expect.clone() } else { json!({"providerError": said}) });
    }
    if is_same_message(class, expect["measurement"]["message"].as_str().unwrap_or_default(), &said) {
        measured["message"] = expect["measurement"]["message"].clone();
    }
    ours["measurement"] = measured;
    if !class.is_empty() {
        ours["messageClass"] = class.into();
    }
    // The time of the question is the wall clock's in the recording.
    let mut expect_requests = expect["requests"].clone();
    for (theirs, mine) in
        expect_requests.as_array_mut().into_iter().flatten().zip(ours["requests"].as_array_mut().unwrap())
    {
        for part in ["form", "query"] {
            let moments: Vec<String> = theirs[part]
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, value)| value.as_str().is_some_and(|text| text.starts_with("__NOW")))
                .map(|(key, _)| key.clone())
                .collect();
            for key in moments {
                mine[part][&key] = theirs[part][&key].clone();
            }
        }
        if mine["path"] == "/a%20b" || theirs["path"] == "/a b" {
            mine["path"] = theirs["path"].clone();
        }
        if theirs.get("query").is_none() {
            mine.as_object_mut().unwrap().remove("query");
        }
    }
    Some(ours)
}

/// The answer of a case that the client itself is asked: how often it asks whom for what, and what comes of it.
fn fetched(metric: &Metric, request: Request, responses: &[Json], expect: &Json, now: Timestamp) -> Json {
    let server = Server::start(responses);
    let mut request = request;
    let here = |url: &str| url.replace(SERVER, &server.address);
    request.url = here(&request.url);
    if let Some(oauth2) = &mut request.oauth2 {
        oauth2.url = here(&oauth2.url);
    }
    if let Some(other) = &mut request.otherwise {
        other.url = here(&other.url);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async { Web::new().unwrap().fetch(&request).await });
    let measured = metric::answered(metric, answer.map_err(|error| error.to_string()), now);
    let theirs = expect["measurement"]["message"].as_str().unwrap_or_default();
    let class = expect["messageClass"].as_str().unwrap_or_default();
    let is_same = measured.phase == expect["measurement"]["phase"].as_str().unwrap_or_default()
        && measured.value == expect["measurement"]["value"].as_str().unwrap_or_default()
        && is_same_message(class, theirs, &measured.message);
    let brief = |requests: &[Json]| -> Vec<Json> {
        let brief = requests.iter().map(|request| {
            let header = |key: &str| request["headers"][key].clone();
            json!([
                request["method"],
                request["path"],
                header("authorization"),
                request["form"]["grant_type"],
                request["form"]["scope"],
                request["body"]
            ])
        });
        brief.collect()
    };
    let (asked, expected) = (server.asked(), expect["requests"].as_array().cloned().unwrap_or_default());
    if is_same && brief(&asked) == brief(&expected) {
        return expect.clone();
    }
    json!({"measurement": measurement(&measured), "requests": brief(&asked)})
}

#[test]
fn vectors_provider_web() {
    check("provider-web", |input, expect| {
        // An answer that is no JSON is no success here, whatever Argo Rollouts says (README's table of differences).
        let is_json =
            |response: &Json| serde_json::from_str::<Json>(response["body"].as_str().unwrap_or_default()).is_ok();
        // Numbers with more digits than a float has are read without the slower, exact way.
        if input["responses"].to_string().contains("123456789012345678901234") {
            return None;
        }
        let success = expect["measurement"]["phase"] == "Successful";
        if success && !input["responses"].as_array().into_iter().flatten().any(is_json) {
            return None;
        }
        answer(input, expect)
    });
}

#[test]
fn vectors_provider_prometheus() {
    check("provider-prometheus", |input, expect| {
        // Signatures for AWS are not part of this version.
        if expect.get("exactRequest").is_some() || input["metric"].to_string().contains("sigv4") {
            return None;
        }
        answer(input, expect)
    });
}

#[test]
fn vectors_prometheus_values() {
    check("prometheus-values", |input, expect| {
        let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
        let metric = Metric {
            success_condition: text("successCondition"),
            failure_condition: text("failureCondition"),
            ..Metric::default()
        };
        let response = Response { code: 200, body: input["response"].to_string().into_bytes() };
        let ours = metric::prometheus::read(&metric, &response, Timestamp::UNIX_EPOCH);
        let metadata = if ours.metadata.is_empty() { Json::Null } else { json!(ours.metadata) };
        let theirs = expect["message"].as_str().unwrap_or_default();
        let same = ours.message == theirs
            || !theirs.is_empty()
                && !ours.message.is_empty()
                && (!theirs.contains("Condition \"") || is_same_message("condition", theirs, &ours.message));
        let message = if same { theirs.to_owned() } else { ours.message };
        Some(json!({"phase": ours.phase, "value": ours.value, "message": message, "metadata": metadata}))
    });
}

#[test]
fn vectors_web_jsonpath() {
    check("web-jsonpath", |input, expect| {
        // See above; and the escape of half a surrogate pair makes a body no JSON here.
        if expect["resultType"] == "not-json" || input["body"].as_str().unwrap_or_default().contains("\\ud800") {
            return None;
        }
        let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
        if expect.get("parseError").is_some() {
            let path = Template::parse(&text("jsonPath"));
            return Some(if path.is_none() { expect.clone() } else { json!({"parses": true}) });
        }
        let web = api::WebMetric { json_path: text("jsonPath"), ..api::WebMetric::default() };
        let metric = Metric {
            success_condition: text("successCondition"),
            failure_condition: text("failureCondition"),
            ..Metric::default()
        };
        let code = input["statusCode"].as_u64().unwrap_or(200) as u16;
        let response = Response { code, body: text("body").into_bytes() };
        let ours = metric::web::read(&metric, &web, &response, Timestamp::UNIX_EPOCH);
        let theirs = expect["message"].as_str().unwrap_or_default();
        let class = match theirs {
            "" => "",
            text if text.contains("Condition \"") => "condition",
            text if text.starts_with("Could not find JSONPath") => "jsonpath",
            _ => "exact",
        };
        let message = if is_same_message(class, theirs, &ours.message) { theirs.to_owned() } else { ours.message };
        let mut answer = json!({"phase": ours.phase, "value": ours.value, "message": message});
        if let Some(kind) = expect.get("resultType") {
            answer["resultType"] = kind.clone();
        }
        Some(answer)
    });
}

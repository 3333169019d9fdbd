//! What providers are asked, and what their answers mean.

use std::collections::BTreeMap;

use base64::Engine;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate::{
    analysis::{Sample, Work},
    api::{self, AnalysisRun, Argument, Measurement, Metric},
    io::{outbound::Outbound, web::Web},
    kubernetes::{jsonpath::Template, value::Value},
    metric::{
        self, Ask, Heard, Request, Response, Settings, Talk, cbor,
        job::{self, Created},
    },
    model::arguments,
};

use super::{check, server::Server};

fn read<T: serde::de::DeserializeOwned + Default>(json: &Json) -> T {
    api::read(&Value::from(json.clone())).object
}

/// A moment; the beginning of time where the case has none, because it does not matter.
fn time(json: &Json) -> Timestamp {
    json.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
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
        // Argo Rollouts crashed.
        if expect.get("panic").is_some_and(|panic| !panic.is_null()) {
            return None;
        }
        match input["op"].as_str().unwrap_or("run") {
            "run" => {
                let place = job::Place {
                    namespace: input["jobNamespace"].as_str().map(str::to_owned),
                    elsewhere: input["customKubeconfig"] == true,
                    // Argo Rollouts makes what the run says, wherever that is.
                    is_trusted: true,
                    ..job::Place::default()
                };
                let built =
                    job::build(&run, &metric, &metric.provider.job.clone().unwrap_or_default(), &place).unwrap();
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
                // Fewer than none are none.
                let kept = usize::try_from(input["limit"].as_i64().unwrap_or_default()).unwrap_or_default();
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
            op => answer["op"] = format!("{op} is not known").into(),
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
        let mut all: BTreeMap<String, Vec<Json>> = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(text) {
            all.entry(key.into_owned()).or_default().push(value.into_owned().into());
        }
        let one_or_all = |values: Vec<Json>| match values.as_slice() {
            [one] => one.clone(),
            _ => values.into(),
        };
        all.into_iter().map(|(key, values)| (key, one_or_all(values))).collect()
    };
    let headers: Json =
        request.headers.iter().map(|(key, value)| (key.to_lowercase(), Json::from(value.as_str()))).collect();
    let path = address.strip_prefix(SERVER).or_else(|| address.strip_prefix("https://server.test"));
    // As Go tells it: what is escaped is spelled out.
    let escaped = path.unwrap_or_default().replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let path = form_urlencoded::parse(escaped.as_bytes()).next().map(|(path, _)| path.into_owned());
    let path = path.unwrap_or_default();
    let mut asked = json!({"method": request.method, "path": path, "headers": headers});
    if !query.is_empty() {
        asked["query"] = pairs(query.as_bytes());
    }
    let kind = headers["content-type"].as_str().unwrap_or_default();
    if kind.contains("urlencoded") && !request.body.is_empty() {
        asked["form"] = pairs(&request.body);
    } else if kind.contains("json") && !request.body.is_empty() {
        asked["json"] = serde_json::from_slice(&request.body).unwrap_or(Json::Null);
    } else if !request.body.is_empty() {
        asked["body"] = String::from_utf8_lossy(&request.body).into();
    }
    asked
}

const SERVER: &str = "http://server.test";

/// The variables of the engine in a case, and its namespace.
fn settings(input: &Json) -> Settings {
    let mut settings = Settings::of("argo-rollouts", |name| input["env"][name].as_str().map(str::to_owned));
    // Argo Rollouts signs for every host; ours is one that the operator lists.
    settings.aws.hosts = vec!["server.test".to_owned()];
    settings
}

/// A Secret of a case, or what the server says if it has none.
fn secret(input: &Json, namespace: &str, name: &str) -> Result<Value, String> {
    let is_it = |secret: &&Json| secret["namespace"] == namespace && secret["name"] == name;
    let found = input["secrets"].as_array().into_iter().flatten().find(is_it);
    let found = found.ok_or_else(|| format!("secrets \"{name}\" not found"))?;
    let encode = |text: &Json| base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap());
    let data: Json = found["data"].as_object().unwrap().iter().map(|(key, text)| (key.clone(), encode(text))).collect();
    Ok(Value::from(json!({"data": data})))
}

/// Leads the conversation of a measurement; `send` answers requests.
fn lead(
    input: &Json,
    run: &AnalysisRun,
    metric: &Metric,
    now: Timestamp,
    mut send: impl FnMut(Request) -> Result<Response, String>,
) -> Sample {
    let before: Measurement = read(&input["measurement"]);
    let work = match input["op"].as_str().unwrap_or("run") {
        "run" => Work::Start,
        "resume" => Work::Resume(before),
        "terminate" => Work::Terminate(before),
        op => panic!("{op}"),
    };
    let (settings, mut heard) = (settings(input), Heard::default());
    loop {
        match metric::ask(&Talk { run, metric, work: &work, settings: &settings, heard: &heard, now }) {
            Ask::Known(sample) => return *sample,
            Ask::ReadSecret { namespace, name } => heard.secret = Some(secret(input, &namespace, &name)),
            Ask::Send(request) => heard.answers.push(send(*request)),
            other => panic!("{other:?}"),
        }
    }
}

/// Answers a case as the engine would, with the recorded answers for a network.
fn answer(input: &Json, expect: &Json) -> Option<Json> {
    let text = input.to_string().replace("__SERVER__", SERVER).replace("__HOST__", "server.test");
    let input: Json = serde_json::from_str(&text).unwrap();
    let class = expect["messageClass"].as_str().unwrap_or_default();
    let given: Vec<Argument> = read(&input["args"]);
    let metric = match arguments::resolve_metric(&read(&input["metric"]), &given) {
        Ok(metric) => metric,
        Err(problem) => return Some(json!({"resolveError": problem})),
    };
    let now = time(&input["clock"]);
    let mut run: AnalysisRun = read(&input["run"]);
    run.metadata.namespace = "default".to_owned();
    let mut ours = json!({"providerType": metric::provider(&metric), "requests": []});
    // Tokens, redirects and time are the client's: it asks a server that gives the recorded answers.
    let responses = input["responses"].as_array().cloned().unwrap_or_default();
    let is_moved = |response: &Json| response["headers"].get("Location").is_some();
    let has_token = input["metric"].to_string().contains("tokenUrl");
    let is_the_clients = has_token || responses.iter().any(is_moved) || class == "transport";
    if is_the_clients && expect.get("measurement").is_some() {
        return Some(fetched(&input, &run, &metric, expect, now));
    }
    let response = |number: usize| {
        let response = responses.get(number).or(responses.last()).unwrap();
        let code = response["status"].as_u64().unwrap_or(200) as u16;
        Response { code, body: response["body"].as_str().unwrap_or_default().as_bytes().to_vec() }
    };
    let mut requests: Vec<Json> = Vec::new();
    let sample = lead(&input, &run, &metric, now, |request| {
        let mut given = response(requests.len());
        requests.push(asked(&request));
        if let Some(other) = request.otherwise.filter(|_| [405, 501].contains(&given.code)) {
            given = response(requests.len());
            requests.push(asked(&other));
        }
        Ok(given)
    });
    ours["requests"] = requests.into();
    let Sample { measurement: measured, metadata } = sample;
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
    // InfluxDB is measured by the wall clock.
    for key in ["startedAt", "finishedAt"] {
        if expect["measurement"][key] == "__NOW__" {
            measured[key] = "__NOW__".into();
        }
    }
    ours["measurement"] = measured;
    if !class.is_empty() {
        ours["messageClass"] = class.into();
    }
    // The time of the question is the wall clock's in the recording.
    let mut expect_requests = expect["requests"].clone();
    for (theirs, mine) in
        expect_requests.as_array_mut().into_iter().flatten().zip(ours["requests"].as_array_mut().into_iter().flatten())
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
        if theirs.get("query").is_none() {
            mine.as_object_mut().into_iter().for_each(|mine| drop(mine.remove("query")));
        }
        // SkyWalking is asked about minutes of the wall clock.
        let is_moment = |text: &Json| text.as_str().is_some_and(|text| text.starts_with("__NOW_MINUTE"));
        for key in ["start", "end"] {
            let pointer = format!("/json/variables/duration/{key}");
            let said = theirs.pointer(&pointer).filter(|text| is_moment(text)).cloned();
            if let (Some(said), Some(own)) = (said, mine.pointer_mut(&pointer)) {
                let back = said.as_str().unwrap().strip_prefix("__NOW_MINUTE").unwrap().trim_end_matches("__");
                let back: i64 = back.trim_matches(['-', 'm']).parse().unwrap_or_default();
                let moment = now - jiff::SignedDuration::from_mins(back);
                if *own == moment.strftime("%Y-%m-%d %H%M").to_string() {
                    *own = said;
                }
            }
        }
        // New Relic's own client says that it is; we are not.
        if let Some(name) = theirs["headers"].get("x-query-source-component-id") {
            mine["headers"]["x-query-source-component-id"] = name.clone();
        }
        // Several queries are sent in any order.
        if let Some(queries) = mine.pointer_mut("/json/data/attributes/queries").and_then(Json::as_array_mut) {
            queries.sort_by_key(|query| query["name"].to_string());
        }
    }
    Some(ours)
}

/// The answer of a case that the client itself is asked: how often it asks whom for what, and what comes of it.
fn fetched(input: &Json, run: &AnalysisRun, metric: &Metric, expect: &Json, now: Timestamp) -> Json {
    let server = Server::start(input["responses"].as_array().map_or(&[], Vec::as_slice));
    let here = |url: &str| url.replace(SERVER, &server.address);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sample = lead(input, run, metric, now, |mut request| {
        request.url = here(&request.url);
        if let Some(oauth2) = &mut request.oauth2 {
            oauth2.url = here(&oauth2.url);
        }
        if let Some(other) = &mut request.otherwise {
            other.url = here(&other.url);
        }
        // How long it waits is for the leaf to say; here nobody waits.
        request.after = std::time::Duration::ZERO;
        runtime
            .block_on(async { Web::new(Outbound::anywhere()).unwrap().fetch(&request).await })
            .map_err(|error| error.to_string())
    });
    let measured = sample.measurement;
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
                if header("content-type").to_string().contains("json") { Json::Null } else { request["body"].clone() }
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
        // The signature is compared beside the signer; here everything but it.
        if input.get("exactRequest").is_some() {
            return Some(signed(input, expect));
        }
        answer(input, expect)
    });
}

/// A case with signed requests: the wall clock, the port and what follows from them are not ours.
fn signed(input: &Json, expect: &Json) -> Json {
    let mut expect_plain = expect.clone();
    for theirs in expect_plain["requests"].as_array_mut().into_iter().flatten() {
        let Some(fields) = theirs.as_object_mut() else { continue };
        fields.remove("body");
        if let Some(headers) = fields.get_mut("headers").and_then(Json::as_object_mut) {
            for name in ["accept-encoding", "content-length", "host", "user-agent"] {
                headers.remove(name);
            }
        }
    }
    let Some(mut ours) = answer(input, &expect_plain) else { return expect.clone() };
    let theirs = expect_plain["requests"].as_array().cloned().unwrap_or_default();
    for (mine, theirs) in ours["requests"].as_array_mut().into_iter().flatten().zip(&theirs) {
        for (name, plain) in [("authorization", unsigned as fn(&str) -> String), ("x-amz-date", undated)] {
            let text = |request: &Json| request["headers"][name].as_str().map(plain);
            if text(mine).is_some() && text(mine) == text(theirs) {
                mine["headers"][name] = theirs["headers"][name].clone();
            }
        }
        if theirs["form"].get("time").is_some() {
            mine["form"]["time"] = theirs["form"]["time"].clone();
        }
    }
    if ours == expect_plain { expect.clone() } else { ours }
}

/// Who asks for what in an authorization, without its date and its signature.
fn unsigned(text: &str) -> String {
    let (before, _) = text.split_once(", SignedHeaders=").unwrap_or((text, ""));
    let is_date = |part: &&str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    before.split('/').filter(|part| !is_date(part)).collect::<Vec<_>>().join("/")
}

/// A moment by its shape alone.
fn undated(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

#[test]
fn vectors_provider_datadog() {
    check("provider-datadog", answer);
}

#[test]
fn vectors_provider_newrelic() {
    check("provider-newrelic", answer);
}

#[test]
fn vectors_provider_wavefront() {
    check("provider-wavefront", answer);
}

#[test]
fn vectors_provider_graphite() {
    check("provider-graphite", answer);
}

#[test]
fn vectors_provider_influxdb() {
    check("provider-influxdb", answer);
}

#[test]
fn vectors_provider_skywalking() {
    check("provider-skywalking", answer);
}

#[test]
fn vectors_provider_kayenta() {
    check("provider-kayenta", |input, expect| {
        // A judgement that is to end, ends: in Argo Rollouts the run waits for it (README's table of differences).
        if input["op"] == "terminate" { None } else { answer(input, expect) }
    });
}

/// What AWS answers, in its own spelling: names begin with a capital.
fn capitals(json: &Json) -> Json {
    match json {
        Json::Array(items) => items.iter().map(capitals).collect(),
        Json::Object(map) => {
            let capital = |key: &String| key[..1].to_uppercase() + &key[1..];
            map.iter().map(|(key, value)| (capital(key), capitals(value))).collect()
        }
        other => other.clone(),
    }
}

/// A number of seconds as the files spell it.
fn moment(json: &Json) -> String {
    Timestamp::from_second(json.as_f64().unwrap() as i64).unwrap().to_string()
}

#[test]
fn vectors_provider_cloudwatch() {
    check("provider-cloudwatch", |input, expect| {
        let metric: Metric = read(&input["metric"]);
        let now = time(&input["clock"]);
        // Messages are addresses in memory in Argo Rollouts.
        if !input["output"]["messages"].is_null() {
            return None;
        }
        let mut input = input.clone();
        input["env"] =
            json!({"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "secret-key"});
        let (mut queries, mut requests) = (Json::Null, Json::Null);
        let sample = lead(&input, &AnalysisRun::default(), &metric, now, |request| {
            let body = Json::from(&cbor::read(&request.body).unwrap());
            let seconds = body["EndTime"].as_f64().unwrap() - body["StartTime"].as_f64().unwrap();
            queries = json!([{
                "startTime": moment(&body["StartTime"]),
                "endTime": moment(&body["EndTime"]),
                "intervalSeconds": seconds as i64,
                "metricDataQueries": body["MetricDataQueries"],
            }]);
            let tagged = |seconds: &Json| json!({"cborTag": 1, "value": seconds.as_f64().unwrap() as i64});
            let mut tags = body.clone();
            tags["StartTime"] = tagged(&body["StartTime"]);
            tags["EndTime"] = tagged(&body["EndTime"]);
            let header = |name: &str| {
                let found = request.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                Json::from(found.map(|(_, value)| value.as_str()))
            };
            let names = ["accept", "content-type", "smithy-protocol"];
            let headers: Json = names.iter().map(|name| ((*name).to_owned(), header(name))).collect();
            let path = request.url.strip_prefix("https://monitoring.us-east-1.amazonaws.com").unwrap();
            requests = json!([{"method": request.method, "path": path, "headers": headers, "cbor": tags}]);
            assert!(request.headers.iter().any(|(key, _)| key == "Authorization"));
            if let Some(error) = input["error"].as_str() {
                return Err(error.to_owned());
            }
            let wire = &input["wire"];
            let (code, mut body) = match wire["errorType"].as_str() {
                Some(kind) => (400, json!({"__type": kind, "message": "denied here"})),
                None => (200, capitals(if wire.is_null() { &input["output"] } else { wire })),
            };
            for result in body["MetricDataResults"].as_array_mut().into_iter().flatten() {
                for time in result["Timestamps"].as_array_mut().into_iter().flatten() {
                    *time = self::time(time).as_second().into();
                }
            }
            Ok(Response { code, body: cbor::write(&Value::from(body), &[]) })
        });
        let mut measured = measurement(&sample.measurement);
        let class = expect["messageClass"].as_str().unwrap_or_default();
        let theirs = expect["measurement"]["message"].as_str().unwrap_or_default();
        if is_same_message(class, theirs, measured["message"].as_str().unwrap()) {
            measured["message"] = theirs.into();
        }
        let mut ours = json!({"measurement": measured, "metadata": null, "providerType": metric::provider(&metric)});
        if !class.is_empty() {
            ours["messageClass"] = class.into();
        }
        if expect.get("queries").is_some() {
            ours["queries"] = queries;
        } else {
            ours["requests"] = requests;
        }
        Some(ours)
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

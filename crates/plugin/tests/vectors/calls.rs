//! Single calls, each between a fresh client and a fresh plugin.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use tidegate_plugin::{
    answer,
    call::{self, Call, metric, router, step},
    gob::{Decoder, Limits, Value},
    object::{Rollout, Template},
    rpc::{Answer, Channel},
};

use super::{bytes, hex, lines, text};

/// The call that a line describes; `None` for one that Argo's client never makes.
fn call(line: &Json) -> Option<Call> {
    if text(line, "name").contains("raw:") {
        return None;
    }
    let args = &line["args"];
    let is_referenced = line["go_only"].get("rollout.spec.TemplateResolvedFromRef").is_some();
    let template = if is_referenced { Template::Referenced } else { Template::Own };
    let rollout = args.get("rollout").filter(|json| !json.is_null()).map(|object| Rollout { object, template });
    let run = args.get("analysisRun").filter(|json| !json.is_null());
    let destinations = args.get("additionalDestinations").unwrap_or(&Json::Null);
    let weight = || args["desiredWeight"].as_i64().and_then(|weight| i32::try_from(weight).ok()).unwrap_or_default();
    let call = match (text(line, "kind"), text(line, "method")) {
        (_, "InitPlugin") => Ok(call::init()),
        (_, "Type") => Ok(call::plugin_type()),
        ("metric", "Run") => metric::run(run, &args["metric"]),
        ("metric", "Resume") => metric::resume(run, &args["metric"], &args["measurement"]),
        ("metric", "Terminate") => metric::terminate(run, &args["metric"], &args["measurement"]),
        ("metric", "GarbageCollect") => {
            metric::garbage_collect(run, &args["metric"], args["limit"].as_i64().unwrap_or_default())
        }
        ("metric", "GetMetadata") => metric::metadata(&args["metric"]),
        ("trafficrouter", method) => {
            let rollout = rollout.expect("a rollout");
            match method {
                "UpdateHash" => {
                    router::update_hash(&rollout, text(args, "canaryHash"), text(args, "stableHash"), destinations)
                }
                "SetWeight" => router::set_weight(&rollout, weight(), destinations),
                "VerifyWeight" => router::verify_weight(&rollout, weight(), destinations),
                "SetHeaderRoute" => router::set_header_route(&rollout, &args["setHeaderRoute"]),
                "SetMirrorRoute" => router::set_mirror_route(&rollout, &args["setMirrorRoute"]),
                "RemoveManagedRoutes" => router::remove_managed_routes(&rollout),
                _ => panic!("{method}"),
            }
        }
        ("step", method) => {
            let operation = match method {
                "Run" => step::Operation::Run,
                "Terminate" => step::Operation::Terminate,
                "Abort" => step::Operation::Abort,
                _ => panic!("{method}"),
            };
            let raw = |key: &str| {
                let text = args["context"][key].as_str()?;
                Some(serde_json::from_str::<Json>(text).unwrap_or_else(|_| json!({"not JSON": text})))
            };
            let (config, status) = (raw("config"), raw("status"));
            let context = args["context"].as_object().map(|context| step::Context {
                plugin: context["pluginName"].as_str().unwrap_or_default(),
                config: config.as_ref(),
                status: status.as_ref(),
            });
            step::operate(operation, rollout.as_ref(), context)
        }
        (kind, method) => panic!("{kind} {method}"),
    };
    Some(call.expect("arguments of the right types"))
}

fn files() -> Vec<Json> {
    ["metric.jsonl", "trafficrouter.jsonl", "step.jsonl"].iter().flat_map(|name| lines(name)).collect()
}

/// A map has no order in Go: compared as sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Map(pairs) => {
            let mut pairs: Vec<_> = pairs.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by_key(|(key, _)| format!("{key:?}"));
            Value::Map(pairs)
        }
        Value::Struct(fields) => Value::Struct(fields.into_iter().map(|(name, value)| (name, sorted(value))).collect()),
        Value::List(list) => Value::List(list.into_iter().map(sorted).collect()),
        Value::Interface(Some(mut named)) => {
            named.value = sorted(named.value);
            Value::Interface(Some(named))
        }
        other => other,
    }
}

fn values(bytes: &[u8]) -> Vec<Value> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(bytes);
    let values = std::iter::from_fn(|| decoder.next_value().expect("a value")).map(sorted).collect();
    assert_eq!(decoder.pending(), 0);
    values
}

#[test]
fn requests_are_the_bytes_that_argo_rollouts_sends() {
    let (mut exact, mut all) = (0, 0);
    for line in files() {
        let Some(call) = call(&line) else { continue };
        // White space in a RawMessage is kept by Go; an API server stores none.
        if text(&line, "name") == "step/Run/spaces" {
            continue;
        }
        all += 1;
        let mut channel = Channel::new(Limits::default());
        let (_, ours) = channel.request(text(&line, "service_method"), &call.argument).expect("a request");
        if line["request_byte_exact"] == true && text(&line, "request_hex") == hex(&ours) {
            exact += 1;
            continue;
        }
        let (wanted, ours) = (values(&bytes(text(&line, "request_hex"))), values(&ours));
        assert_eq!(ours, wanted, "{}", text(&line, "name"));
        assert_eq!(line["request_byte_exact"], false, "{}", text(&line, "name"));
    }
    eprintln!("{exact} of {all} requests are the same bytes");
    assert!(exact == 87 || std::env::var_os("TIDEGATE_VECTORS").is_some());
}

#[test]
fn requests_of_go_can_be_read() {
    for line in files() {
        assert_eq!(values(&bytes(text(&line, "request_hex"))).len(), 2, "{}", text(&line, "name"));
    }
}

#[test]
fn answers_say_what_argo_rollouts_reads_in_them() {
    let mut seen = 0;
    for line in files() {
        let wire = bytes(text(&line, "response_hex"));
        if wire.is_empty() {
            continue;
        }
        seen += 1;
        // In one piece, and byte by byte.
        for piece in [wire.len(), 1] {
            let mut channel = Channel::new(Limits::default());
            let mut answers = Vec::new();
            for bytes in wire.chunks(piece) {
                channel.push(bytes);
                answers.extend(channel.next_answer().expect("an answer"));
            }
            let [Answer { sequence: 0, outcome }] = answers.as_slice() else { panic!("{answers:?}") };
            let wanted = match line["rpc_error"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => Ok(line["reply"].clone()),
            };
            let name = text(&line, "name");
            assert_eq!(
                outcome.as_ref().map(|value| shown(&line, value)).map_err(Clone::clone),
                wanted.map(normal),
                "{name}"
            );
            if let (Ok(value), "metric") = (outcome, text(&line, "kind")) {
                check_noted(&line, value);
            }
        }
    }
    assert!(seen == 89 || std::env::var_os("TIDEGATE_VECTORS").is_some(), "{seen}");
}

/// An answer in the form in which the recording has it.
fn shown(line: &Json, value: &Value) -> Json {
    let time = |time: Option<Timestamp>| match time {
        Some(time) => json!({"unix": time.as_second().to_string(), "nanos": time.subsec_nanosecond().to_string()}),
        None => Json::Null,
    };
    match (text(line, "kind"), text(line, "method")) {
        (_, "Type") => json!(answer::text(value, "Type").expect("a text")),
        ("metric", "Run" | "Resume" | "Terminate") => {
            let measurement = metric::read_measurement(value).expect("a measurement");
            json!({
                "Phase": measurement.phase, "Message": measurement.message, "Value": measurement.value,
                "Metadata": measurement.metadata, "StartedAt": time(measurement.started_at),
                "FinishedAt": time(measurement.finished_at), "ResumeAt": time(measurement.resume_at),
            })
        }
        ("metric", "GetMetadata") => json!(metric::read_metadata(value).expect("metadata")),
        ("trafficrouter", "VerifyWeight") => {
            let (verified, error) = router::read_verified(value).expect("a verdict");
            let verified = match verified {
                router::Verified::Yes => "1",
                router::Verified::No => "0",
                router::Verified::NotImplemented => "2",
            };
            json!({"Verified": verified, "Err": {"ErrorString": error}})
        }
        ("step", "Run" | "Terminate" | "Abort") => match step::read_result(value).expect("a result") {
            Ok(result) => json!({
                "Error": {"ErrorString": ""},
                "Result": {
                    "Phase": result.phase, "Message": result.message,
                    "RequeueAfter": result.requeue_after.to_string(),
                    "Status": result.status.map(|json| json.to_string()),
                },
            }),
            Err(error) => json!({"Error": {"ErrorString": error}}),
        },
        _ => json!({"ErrorString": answer::rpc_error(value).expect("an RpcError")}),
    }
}

/// The recording without what we do not keep: offsets of times, numbers of a verdict that mean the same, the result beside
/// an error, a map that is nil.
fn normal(mut reply: Json) -> Json {
    let Some(object) = reply.as_object_mut() else { return reply };
    for key in ["StartedAt", "FinishedAt", "ResumeAt"] {
        if let Some(Json::Object(time)) = object.get(key) {
            let number = |key: &str| time[key].as_str().map_or_else(|| time[key].to_string(), str::to_owned);
            let time = if time["zero"] == true {
                Json::Null
            } else if number("unix").parse().is_ok_and(|second: i64| second > Timestamp::MAX.as_second()) {
                json!({"unix": Timestamp::MAX.as_second().to_string(), "nanos": "999999999"})
            } else {
                json!({"unix": number("unix"), "nanos": number("nanos")})
            };
            object.insert(key.into(), time);
        }
    }
    if object.get("Metadata") == Some(&Json::Null) {
        object.insert("Metadata".into(), json!({}));
    }
    if let Some(verified) = object.get("Verified") {
        let number = verified.as_str().map_or_else(|| verified.to_string(), str::to_owned);
        object.insert("Verified".into(), json!(if ["1", "2"].contains(&&*number) { &number } else { "0" }));
    }
    if let Some(Json::Object(result)) = object.get_mut("Result")
        && let Some(after) = result.get("RequeueAfter").filter(|after| after.is_number())
    {
        let after = json!(after.to_string());
        result.insert("RequeueAfter".into(), after);
    }
    if object.get("Error").is_some_and(|error| error["ErrorString"] != "") {
        object.remove("Result");
    }
    reply
}

/// What Argo's client makes of a measurement.
fn check_noted(line: &Json, value: &Value) {
    let method = match text(line, "method") {
        "Run" => metric::Method::Run,
        "Resume" => metric::Method::Resume,
        "Terminate" => metric::Method::Terminate,
        _ => return,
    };
    let measurement = metric::read_measurement(value).expect("a measurement");
    let noted = metric::noted(method, Ok(measurement), Timestamp::UNIX_EPOCH);
    assert_eq!(noted.message, text(&line["client_result"], "Message"), "{}", text(line, "name"));
}

//! Whole connections of Argo's own client: the plugin's side is played back, and ours must write what Argo's wrote.

use serde_json::Value as Json;
use tidegate_plugin::{
    gob::{Decoder, Limits, Value},
    link::{Incoming, Link, Service},
    rpc::Argument,
};

use super::{bytes, hex, read, text};

/// The calls that a side made on a stream, as header and argument.
fn calls(bytes: &[u8]) -> Vec<(String, Value)> {
    let mut decoder = Decoder::new(Limits { message: 16 << 20, ..Limits::default() });
    decoder.push(bytes);
    let values: Vec<_> = std::iter::from_fn(|| decoder.next_value().expect("a value")).collect();
    values.chunks(2).map(|pair| (pair[0].text("ServiceMethod").to_owned(), pair[1].clone())).collect()
}

/// The data of a stream within what a side wrote on the connection.
fn stream(mut wire: &[u8], wanted: u32) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((header, rest)) = wire.split_first_chunk::<12>() {
        let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let length = if header[1] == 0 { length } else { 0 };
        let (data, rest) = rest.split_at(length);
        if id == wanted {
            out.extend_from_slice(data);
        }
        wire = rest;
    }
    out
}

#[track_caller]
fn check(name: &str, interface: &str) {
    let session: Json = serde_json::from_str(&read(name)).expect("a recording");
    let written = |stream: &str| bytes(text(&session["streams"][stream], "c2s"));
    let mut link = Link::new(interface, Limits::default()).expect("a link");
    let mut ours = Vec::new();
    let mut pump = |link: &mut Link| {
        for bytes in std::iter::from_fn(|| Some(link.transmit()).filter(|bytes| !bytes.is_empty())) {
            ours.extend(bytes);
        }
    };
    pump(&mut link);
    // What the plugin wrote, as it wrote it. Our calls are made as soon as it is ready.
    let (mut answers, mut made) = (0, 0);
    for piece in bytes(text(&session, "raw_s2c_hex")).chunks(7) {
        for incoming in link.receive(piece).expect("what the plugin wrote") {
            match incoming {
                Incoming::Answer(_, answer) => {
                    answers += 1;
                    assert!(answer.outcome.is_ok(), "{answer:?}");
                }
                Incoming::Ready => {
                    for (service, stream, skip) in [(Service::Control, "1", 0), (Service::Plugin, "7", 4)] {
                        for (method, argument) in calls(&written(stream)[skip..]) {
                            if method == "Dispenser.Dispense" {
                                continue;
                            }
                            let argument = match argument {
                                Value::Interface(None) => Argument::Nil,
                                Value::Interface(Some(named)) => {
                                    Argument::Struct(String::leak(named.name), named.value)
                                }
                                Value::Bool(is) => Argument::Bool(is),
                                other => panic!("{other:?}"),
                            };
                            made += 1;
                            assert!(link.call(service, &method, &argument).expect("a call").is_some());
                            pump(&mut link);
                        }
                    }
                }
            }
        }
        pump(&mut link);
    }
    assert_eq!(hex(&stream(&ours, 1)), hex(&written("1")));
    assert_eq!(hex(&stream(&ours, 7)), hex(&written("7")));
    // The answer to Quit may not have been out when the plugin ended.
    assert!(made > 5 && answers >= made - 1, "{answers} answers to {made} calls");
}

#[test]
fn connections_to_metric_providers_are_those_of_argo_rollouts() {
    check("sessions/metric.json", "RpcMetricProviderPlugin");
}

#[test]
fn connections_to_traffic_routers_are_those_of_argo_rollouts() {
    check("sessions/trafficrouter.json", "RpcTrafficRouterPlugin");
}

#[test]
fn connections_to_step_plugins_are_those_of_argo_rollouts() {
    check("sessions/step.json", "RpcStepPlugin");
}

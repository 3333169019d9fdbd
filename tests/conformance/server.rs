//! The two ways to reach a server: over HTTP, or in process.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{BufRead, BufReader},
    rc::Rc,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use super::corpus;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use tidegate::embedded::{
    controllers::{self, Controller},
    http::{
        cluster::{Cluster, Pace},
        service::{Body, Front, Settings},
    },
    store::{Config, Store},
};
use tidegate::kubernetes::clock::Clock;
use tokio::runtime::Runtime;
use tower::ServiceExt;
use ureq::{
    Agent,
    http::{HeaderMap, Request, Response, request::Builder},
    tls::TlsConfig,
};

/// A request with its words put in.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub content: Option<String>,
    pub accept: Option<String>,
    pub body: Option<Vec<u8>>,
    pub anonymous: bool,
}

impl Call {
    fn request(&self, url: &str, token: &str) -> Builder {
        let mut request = Request::builder().method(self.method.as_str()).uri(format!("{url}{}", self.target));
        if !self.anonymous {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in [("content-type", &self.content), ("accept", &self.accept)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request
    }
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub code: u16,
    pub content: String,
    pub warnings: Vec<String>,
    pub body: Vec<u8>,
}

/// The next thing a watch says.
#[derive(Debug)]
pub enum Next {
    Line(String),
    End,
    /// Nothing for too long.
    Silence,
}

/// An open watch.
pub trait Watch {
    fn next(&mut self) -> Next;
}

/// A Kubernetes API server, real or ours.
pub trait Server {
    /// Sends a request and waits for the whole answer.
    fn call(&self, call: &Call) -> Reply;
    /// Sends a request and leaves the answer open if it is a success.
    fn watch(&self, call: &Call) -> Result<(Reply, Box<dyn Watch>), Reply>;
    /// Lets the controllers do some work before something is asked again.
    fn pause(&self);
    /// How long to wait for what controllers do.
    fn patience(&self) -> Duration;
    /// Forgets what happened up to this version.
    fn forget(&self, version: u64);
}

/// The embedded cluster without a socket: a fresh one, played on one thread.
pub struct InProcess {
    runtime: Rc<Runtime>,
    front: Front,
}

impl InProcess {
    pub fn new(world: corpus::World) -> InProcess {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let now = Timestamp::now();
        let store = Store::new(Config { clock: Clock::Wall(now), ..Config::new(now, 7) });
        let front = runtime.block_on(async {
            let controllers = match world {
                corpus::World::Quiet => vec![Controller::GarbageCollector, Controller::Namespace],
                corpus::World::Busy => {
                    let machines = [Controller::Kubelet, Controller::NodeLifecycle];
                    Controller::ALL.into_iter().filter(|controller| !machines.contains(controller)).collect()
                }
            };
            let around = controllers::World::new(controllers::Settings { controllers, ..Default::default() });
            let cluster = Cluster::new(store, Some(around), None, Pace::Wall);
            tokio::spawn(cluster.clone().drive());
            Front::new(cluster, Settings { token: Some(TOKEN.into()), address: "127.0.0.1:6443".into() })
        });
        InProcess { runtime: Rc::new(runtime), front }
    }

    fn send(&self, call: &Call) -> Response<Body> {
        let request = call.request("", TOKEN).header("user-agent", AGENT);
        let request = request.body(Full::new(Bytes::from(call.body.clone().unwrap_or_default()))).expect("a request");
        match self.runtime.block_on(self.front.clone().oneshot(request)) {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

const TOKEN: &str = "token";

impl Server for InProcess {
    fn call(&self, call: &Call) -> Reply {
        let response = self.send(call);
        let reply = head(response.status().as_u16(), response.headers());
        let Ok(body) = self.runtime.block_on(response.into_body().collect());
        let body = if call.method == "HEAD" { Vec::new() } else { body.to_bytes().to_vec() };
        Reply { body, ..reply }
    }

    fn watch(&self, call: &Call) -> Result<(Reply, Box<dyn Watch>), Reply> {
        let response = self.send(call);
        let reply = head(response.status().as_u16(), response.headers());
        if reply.code != 200 {
            let Ok(body) = self.runtime.block_on(response.into_body().collect());
            return Err(Reply { body: body.to_bytes().to_vec(), ..reply });
        }
        let runtime = self.runtime.clone();
        let watch =
            Frames { runtime, body: RefCell::new(response.into_body()), lines: VecDeque::new(), rest: Vec::new() };
        Ok((reply, Box::new(watch)))
    }

    fn pause(&self) {
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn forget(&self, version: u64) {
        self.front.cluster().with(|store| store.compact(version));
    }
}

struct Frames {
    runtime: Rc<Runtime>,
    body: RefCell<Body>,
    lines: VecDeque<String>,
    rest: Vec<u8>,
}

impl Watch for Frames {
    fn next(&mut self) -> Next {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Next::Line(line);
            }
            let frame = async { tokio::time::timeout(PATIENCE / 4, self.body.get_mut().frame()).await };
            let Ok(frame) = self.runtime.block_on(frame) else { return Next::Silence };
            let Some(Ok(frame)) = frame else { return Next::End };
            self.rest.extend_from_slice(&frame.into_data().unwrap_or_default());
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.lines.push_back(String::from_utf8_lossy(&line).trim_end().to_string());
            }
        }
    }
}

/// Who asks: the same for all servers, because the first part becomes the field manager.
pub const AGENT: &str = "conformance/1.0";
/// How long to wait for an event.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server at a URL. Its certificate is not looked at: these are loopback servers that live for a test run.
pub struct Http {
    agent: Agent,
    url: String,
    token: String,
    /// Where a real server's etcd is, to make it forget.
    etcd: Option<String>,
}

impl Http {
    pub fn new(url: &str, token: &str, etcd: Option<&str>) -> Http {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .allow_non_standard_methods(true)
            .user_agent(AGENT)
            .accept("")
            .tls_config(TlsConfig::builder().disable_verification(true).build())
            .build();
        let etcd = etcd.map(str::to_string);
        Http { agent: config.new_agent(), url: url.trim_end_matches('/').into(), token: token.into(), etcd }
    }

    fn send(&self, call: &Call) -> Response<ureq::Body> {
        let request = call.request(&self.url, &self.token);
        let sent = match (&call.body, call.method.as_str()) {
            (Some(body), "DELETE" | "GET") => {
                let (parts, ()) = request.body(()).expect("a valid request").into_parts();
                let mut builder =
                    if call.method == "GET" { self.agent.get(&parts.uri) } else { self.agent.delete(&parts.uri) };
                for (name, value) in &parts.headers {
                    builder = builder.header(name, value);
                }
                builder.force_send_body().send(body.as_slice())
            }
            (Some(body), _) => self.agent.run(request.body(body.as_slice()).expect("a valid request")),
            (None, "POST" | "PUT" | "PATCH") => self.agent.run(request.body([].as_slice()).expect("a valid request")),
            (None, _) => self.agent.run(request.body(()).expect("a valid request")),
        };
        sent.unwrap_or_else(|error| panic!("{} {}{}: {error}", call.method, self.url, call.target))
    }
}

impl Server for Http {
    fn call(&self, call: &Call) -> Reply {
        let response = self.send(call);
        let reply = head(response.status().as_u16(), response.headers());
        let body = response.into_body().into_with_config().limit(u64::MAX).read_to_vec().unwrap_or_default();
        Reply { body, ..reply }
    }

    fn watch(&self, call: &Call) -> Result<(Reply, Box<dyn Watch>), Reply> {
        let response = self.send(call);
        let reply = head(response.status().as_u16(), response.headers());
        let body = response.into_body().into_with_config().limit(u64::MAX);
        if reply.code != 200 {
            return Err(Reply { body: body.read_to_vec().unwrap_or_default(), ..reply });
        }
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(body.reader()).lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok((reply, Box::new(Lines(lines))))
    }

    fn pause(&self) {
        thread::sleep(Duration::from_millis(20));
    }

    fn patience(&self) -> Duration {
        // The garbage collector of a real cluster looks for new kinds every 30 seconds.
        Duration::from_secs(90)
    }

    fn forget(&self, version: u64) {
        let etcd = self.etcd.as_ref().expect("the address of the server's etcd");
        let body = format!("{{\"revision\": \"{version}\", \"physical\": true}}");
        let response = self.agent.post(format!("{etcd}/v3/kv/compaction")).send(body).expect("etcd answers");
        assert_eq!(response.status(), 200, "etcd does not compact");
    }
}

struct Lines(Receiver<String>);

impl Watch for Lines {
    fn next(&mut self) -> Next {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Next::Line(line),
            Err(RecvTimeoutError::Disconnected) => Next::End,
            Err(RecvTimeoutError::Timeout) => Next::Silence,
        }
    }
}

/// The parts of a reply that come before its body.
pub fn head(code: u16, headers: &HeaderMap) -> Reply {
    let texts = |name: &str| {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let content: Vec<String> = texts("content-type");
    Reply { code, content: content.join(", "), warnings: texts("warning"), body: Vec::new() }
}

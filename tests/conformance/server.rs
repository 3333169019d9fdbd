//! The two ways to reach a server: over HTTP, or in process.

use std::{
    io::{BufRead, BufReader},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use ureq::{
    Agent,
    http::{HeaderMap, Request, Response},
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
}

/// Who asks: the same for all servers, because the first part becomes the field manager.
pub const AGENT: &str = "conformance/1.0";
const PATIENCE: Duration = Duration::from_secs(20);

/// A server at a URL. Its certificate is not looked at: these are loopback servers that live for a test run.
pub struct Http {
    agent: Agent,
    url: String,
    token: String,
}

impl Http {
    pub fn new(url: &str, token: &str) -> Http {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .allow_non_standard_methods(true)
            .user_agent(AGENT)
            .accept("")
            .tls_config(TlsConfig::builder().disable_verification(true).build())
            .build();
        Http { agent: config.new_agent(), url: url.trim_end_matches('/').into(), token: token.into() }
    }

    fn send(&self, call: &Call) -> Response<ureq::Body> {
        let mut request = Request::builder().method(call.method.as_str()).uri(format!("{}{}", self.url, call.target));
        if !call.anonymous {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in [("content-type", &call.content), ("accept", &call.accept)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
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

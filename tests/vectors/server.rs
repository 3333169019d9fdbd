//! A server that gives the recorded answers, and notes what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// A server; it listens as long as the test runs.
pub struct Server {
    /// Where it is.
    pub address: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts one with these answers; those with a path are for that path only.
    pub fn start(responses: &[Value]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (responses, seen, own) = (responses.to_vec(), asked.clone(), address.clone());
        thread::spawn(move || {
            let mut given = vec![0; responses.len()];
            for stream in listener.incoming().flatten() {
                serve(stream, &responses, &mut given, &seen, &own);
            }
        });
        Server { address, asked }
    }

    /// What it was asked, as the files spell it.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, responses: &[Value], given: &mut [u32], seen: &Mutex<Vec<Value>>, own: &str) {
    let Some((request, path)) = read(&stream) else { return };
    seen.lock().unwrap().push(request);
    // Those for this path, else those for any; each once, the last again and again.
    let for_path = |response: &Value| response["path"].as_str() == Some(path.as_str());
    let is_for_any = |response: &Value| response.get("path").is_none();
    let mut fitting: Vec<usize> = (0..responses.len()).filter(|at| for_path(&responses[*at])).collect();
    if fitting.is_empty() {
        fitting = (0..responses.len()).filter(|at| is_for_any(&responses[*at])).collect();
    }
    let Some(at) = fitting.iter().copied().find(|at| given[*at] == 0).or(fitting.last().copied()) else { return };
    given[at] += 1;
    let response = &responses[at];
    thread::sleep(Duration::from_millis(response["delayMs"].as_u64().unwrap_or_default()));
    let body = response["body"].as_str().unwrap_or_default().replace("__SERVER__", own);
    let mut head = format!(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n",
        response["status"].as_u64().unwrap_or(200),
        body.len()
    );
    for (key, value) in response["headers"].as_object().into_iter().flatten() {
        head.push_str(&format!("{key}: {}\r\n", value.as_str().unwrap_or_default().replace("__SERVER__", own)));
    }
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

fn read(stream: &TcpStream) -> Option<(Value, String)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut headers, mut length) = (serde_json::Map::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((key, value)) = line.trim_end().split_once(':') else { break };
        let (key, value) = (key.to_lowercase(), value.trim().to_owned());
        if key == "content-length" {
            length = value.parse().unwrap_or_default();
        }
        if !["host", "user-agent", "accept-encoding", "content-length", "connection"].contains(&key.as_str()) {
            headers.insert(key, value.into());
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = |text: &[u8]| -> Value {
        form_urlencoded::parse(text).map(|(key, value)| (key.into_owned(), Value::from(value.into_owned()))).collect()
    };
    let mut request = json!({"method": method, "path": path, "headers": headers});
    if !query.is_empty() {
        request["query"] = pairs(query.as_bytes());
    }
    let kind = request["headers"]["content-type"].as_str().unwrap_or_default();
    if kind.contains("urlencoded") && !body.is_empty() {
        request["form"] = pairs(&body);
    } else if !body.is_empty() {
        request["body"] = String::from_utf8_lossy(&body).into();
    }
    Some((request, path.to_owned()))
}

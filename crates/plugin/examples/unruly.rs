//! A plugin that keeps to the protocol until it is told otherwise, for the tests of the host: `unruly MODE`.
//!
//! It answers InitPlugin and, unless its mode says something else, Type with its process id. An example, so that it is built
//! with the tests and never installed.

use std::{
    collections::HashMap,
    env, fs,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Command, Stdio, exit},
    sync::Arc,
    thread,
    time::Duration,
};

use tidegate_plugin::{
    gob::{Decoder, Encoder, Limits, Value, schema::Of},
    object::table,
};

fn main() {
    let mode = env::args().nth(1).unwrap_or_default();
    let folder = env::var("PLUGIN_UNIX_SOCKET_DIR").unwrap_or_else(|_| "/tmp".into());
    let path = format!("{folder}/plugin{}", std::process::id());
    eprintln!("[INFO] mode {mode}");
    match mode.as_str() {
        "silent" => forever(),
        "exit" => exit(3),
        "garbage" => return say_and_wait("hello, I am no plugin\n"),
        "endless-line" => loop {
            print!("{}", "x".repeat(4096));
        },
        "version" => return say_and_wait("1|2|unix|/nowhere|netrpc|\n"),
        "grpc" => return say_and_wait("1|1|unix|/nowhere|grpc|\n"),
        "elsewhere" => return say_and_wait("1|1|tcp|192.0.2.1:80|netrpc|\n"),
        "nobody" => return say_and_wait(&format!("1|1|unix|{path}|netrpc|\n")),
        "environment" => {
            let names: Vec<_> = env::vars().map(|(key, value)| format!("{key}={value}")).collect();
            eprintln!("[INFO] {} {:?}", names.join(" "), env::args().skip(1).collect::<Vec<_>>());
        }
        "stderr-flood" => {
            thread::spawn(|| {
                loop {
                    eprintln!("a line that says nothing");
                }
            });
        }
        _ => {}
    }
    let listener = UnixListener::bind(&path).expect("a socket");
    say(&format!("1|1|unix|{path}|netrpc|\n"));
    let (socket, _) = listener.accept().expect("a host");
    Server { socket, mode, path, streams: HashMap::new() }.serve();
}

fn say(line: &str) {
    print!("{line}");
    std::io::stdout().flush().expect("a reader");
}

fn say_and_wait(line: &str) {
    say(line);
    forever();
}

fn forever() {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

struct Server {
    socket: UnixStream,
    mode: String,
    path: String,
    streams: HashMap<u32, Stream>,
}

struct Stream {
    decoder: Decoder,
    encoder: Encoder,
    header: Option<Value>,
    /// Bytes of the stream's number that have not been sent back yet.
    number: usize,
}

impl Server {
    fn serve(mut self) {
        loop {
            let mut header = [0; 12];
            if self.socket.read_exact(&mut header).is_err() {
                exit(0);
            }
            let [_, kind, _, flags, ..] = header;
            let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
            let mut data = vec![0; if kind == 0 { length as usize } else { 0 }];
            self.socket.read_exact(&mut data).expect("data");
            match kind {
                1 if flags & 1 != 0 => self.accept(id),
                2 if flags & 1 != 0 => self.frame(2, 2, 0, length, &[]),
                0 => self.data(id, data),
                _ => {}
            }
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, id: u32, length: u32, data: &[u8]) {
        let mut out = vec![0, kind, 0, flags];
        out.extend(id.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(data);
        if self.socket.write_all(&out).is_err() {
            exit(0);
        }
    }

    fn accept(&mut self, id: u32) {
        let stream = Stream {
            decoder: Decoder::new(Limits::default()),
            encoder: Encoder::new(table().schema()),
            header: None,
            number: if id == 7 { 4 } else { 0 },
        };
        self.streams.insert(id, stream);
        self.frame(1, 2, id, 0, &[]);
    }

    fn data(&mut self, id: u32, mut data: Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.number > 0 {
            let rest = data.split_off(stream.number.min(data.len()));
            stream.number -= data.len();
            let number = std::mem::replace(&mut data, rest);
            self.frame(0, 0, id, number.len() as u32, &number);
        }
        // The window is given back at once.
        self.frame(1, 0, id, data.len() as u32, &[]);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.decoder.push(&data);
        let mut requests = Vec::new();
        while let Some(value) = stream.decoder.next_value().expect("a value") {
            match stream.header.take() {
                None => stream.header = Some(value),
                Some(header) => requests.push(header),
            }
        }
        for header in requests {
            let sequence = match header.field("Seq") {
                Some(Value::Uint(number)) => *number,
                _ => 0,
            };
            self.request(id, header.text("ServiceMethod"), sequence);
        }
    }

    fn request(&mut self, id: u32, method: &str, sequence: u64) {
        let text = |text: &str| (Of::Text, Value::Text(text.to_owned()));
        let answer = match (method, self.mode.as_str()) {
            ("Dispenser.Dispense", "other-interface") => {
                return self.answer(id, sequence, "unknown plugin type: RpcStepPlugin", None);
            }
            ("Dispenser.Dispense", "odd-number") => text("one"),
            ("Dispenser.Dispense", _) => (Of::Uint, Value::Uint(1)),
            ("Control.Quit", _) => {
                let _ = fs::remove_file(&self.path);
                exit(0);
            }
            ("Plugin.InitPlugin", "init-error") => return self.rpc_error(id, sequence, "no\nkubeconfig"),
            ("Plugin.InitPlugin", "init-hang") => return,
            ("Plugin.InitPlugin", _) => return self.rpc_error(id, sequence, ""),
            ("Plugin.Type", "type-error") => return self.answer(id, sequence, "rpc: can't find method\x1b[2J", None),
            ("Plugin.Type", "type-exit") => exit(3),
            ("Plugin.Type", "type-hang") => return,
            ("Plugin.Type", "type-stop") => return forever(),
            ("Plugin.Type", "type-number") => (Of::Int, Value::Int(5)),
            ("Plugin.Type", "type-large") => text(&"x".repeat(1 << 20)),
            ("Plugin.Type", "type-huge") => text(&"x".repeat(8 << 20)),
            ("Plugin.Type", "type-stray") => return self.answer(id, sequence + 1000, "", Some(text("stray"))),
            ("Plugin.Type", "type-unknown") => return self.raw(id, &[3, 0xff, 0xc6, 0]),
            ("Plugin.Type", "type-endless") => return self.raw(id, &[0xf8, 0x7f, 255, 255, 255, 255, 255, 255, 255]),
            ("Plugin.Type", "type-child") => {
                let child = Command::new("sleep").arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
                text(&child.expect("a child").id().to_string())
            }
            ("Plugin.Type", "frame-giant") => return self.frame(0, 0, 7, u32::MAX, &[]),
            ("Plugin.Type", "frame-streams") => {
                (1..100).for_each(|id| self.frame(1, 1, id * 2, 0, &[]));
                return;
            }
            ("Plugin.Type", "frame-pings") => loop {
                self.frame(2, 1, 0, 1, &[]);
            },
            ("Plugin.Type", "frame-flood") => loop {
                self.frame(0, 0, 7, 1, &[0]);
            },
            ("Plugin.Type", "stdout-stream") => {
                self.stdout(b"printed once it serves\n\x1b[31mred\n");
                text("printed")
            }
            ("Plugin.Type", "stdout-window") => {
                // More than it may print at once, without waiting for the window to be given back.
                for _ in 0..1000 {
                    self.stdout(&[b'x'; 16 * 1024]);
                }
                return;
            }
            ("Plugin.Type", _) => text(&std::process::id().to_string()),
            _ => return self.answer(id, sequence, "", None),
        };
        self.answer(id, sequence, "", Some(answer));
    }

    fn stdout(&mut self, bytes: &[u8]) {
        self.frame(0, 0, 3, bytes.len() as u32, bytes);
    }

    fn rpc_error(&mut self, id: u32, sequence: u64, text: &str) {
        let error = Value::Struct(vec![(Arc::from("ErrorString"), Value::Text(text.to_owned()))]);
        self.answer(id, sequence, "", Some((Of::Type(table().root("RpcError")), error)));
    }

    /// A header and a value; beside an error, and for go-plugin's own methods, an empty struct.
    fn answer(&mut self, id: u32, sequence: u64, error: &str, value: Option<(Of, Value)>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let header = Value::Struct(vec![
            (Arc::from("Seq"), Value::Uint(sequence)),
            (Arc::from("Error"), Value::Text(error.to_owned())),
        ]);
        let empty = (Of::Type(table().root("RpcError")), Value::Struct(Vec::new()));
        let mut bytes = stream.encoder.put_struct(table().root("Response"), &header).expect("a header");
        bytes.extend(match value.unwrap_or(empty) {
            (Of::Type(place), value) => stream.encoder.put_struct(place, &value).expect("a struct"),
            (of, value) => stream.encoder.put_single(of, &value).expect("a value"),
        });
        self.send(id, &bytes);
    }

    /// A header, and bytes in the place of the value.
    fn raw(&mut self, id: u32, value: &[u8]) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let header = Value::Struct(vec![(Arc::from("Seq"), Value::Uint(1))]);
        let mut bytes = stream.encoder.put_struct(table().root("Response"), &header).expect("a header");
        bytes.extend(value);
        self.send(id, &bytes);
    }

    /// Sends without regard to the window, which tests of large answers give back fast enough or must not.
    fn send(&mut self, id: u32, bytes: &[u8]) {
        for piece in bytes.chunks(16 * 1024) {
            self.frame(0, 0, id, piece.len() as u32, piece);
            if bytes.len() > 128 * 1024 {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

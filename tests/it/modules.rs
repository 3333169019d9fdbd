//! The module rule: deciding is pure. Only `io/`, `embedded/http`, `embedded/listen`, `sim/`, `cmd/` and `main.rs` may name the
//! runtime, a client, files, sockets, processes, the environment, the clock or randomness; everything else is a function of its
//! arguments. Tests may do as they like.

use std::{fs, path::Path};

/// Where the world outside may be touched.
const EDGE: [&str; 6] = ["main.rs", "cmd/", "io/", "sim/", "embedded/http/", "embedded/listen"];

/// The sources, and how the paths in these lists begin for each.
const ROOTS: [(&str, &str); 4] = [
    ("src", ""),
    ("crates/core/src", ""),
    ("crates/kubernetes/src", "kubernetes/"),
    ("crates/embedded/src", "embedded/"),
];

/// What the rest must not name, each as it stands in code, and why.
const FORBIDDEN: [(&str, &str); 30] = [
    ("tokio::", "the runtime"),
    ("futures::", "the runtime"),
    ("tower::", "the front"),
    ("hyper::", "the front"),
    ("http_body::", "the front"),
    ("kube::", "a client"),
    ("ureq::", "a client"),
    ("rustls::", "sockets"),
    ("std::fs", "files"),
    ("File::", "files"),
    // `std::net::IpAddr` is a value.
    ("TcpStream", "sockets"),
    ("TcpListener", "sockets"),
    ("UdpSocket", "sockets"),
    ("ToSocketAddrs", "sockets"),
    ("std::os", "the system"),
    ("std::process", "processes"),
    ("std::env", "the environment"),
    ("env::var", "the environment"),
    ("env!(", "the environment of the build"),
    ("std::thread", "threads"),
    ("stdin()", "the terminal"),
    ("stdout()", "the terminal"),
    ("println!", "the terminal"),
    ("eprintln!", "the terminal"),
    ("Instant::", "the clock"),
    ("SystemTime", "the clock"),
    ("Timestamp::now", "the clock"),
    ("Zoned::now", "the clock"),
    ("RandomState", "randomness"),
    ("rand::", "randomness"),
];

/// The fields of status in which protocols hide; `model/codec` reads and writes them, everybody else has `model::memory`.
const PROTOCOL: [(&str, &str); 6] = [
    ("controller_pause", "a pause"),
    ("pause_conditions", "a pause"),
    ("aborted_at", "an abort"),
    ("status.abort", "an abort"),
    ("promote_full", "a full promotion"),
    ("status.restarted_at", "a restart"),
];

/// Who may name them: the wire types, the codec, and the judge that shares nothing with what it judges.
const CODEC: [&str; 4] = ["api/", "model/codec.rs", "rollout/invariant.rs", "rollout/approval.rs"];

#[test]
fn the_core_touches_nothing_outside_itself() {
    assert_nobody_names(&FORBIDDEN, &EDGE);
}

#[test]
fn one_place_knows_the_protocols_of_status() {
    let memory = ["model/memory.rs"]; // where they have names of their own
    assert_nobody_names(&PROTOCOL, &[CODEC.as_slice(), &memory].concat());
}

/// The judges of what was decided.
const JUDGES: [&str; 5] = [
    "rollout/invariant.rs",
    "rollout/approval.rs",
    "rollout/bounds.rs",
    "analysis/invariant.rs",
    "experiment/invariant.rs",
];

/// What decides: a judge that used it would be wrong wherever it is.
const DECISION: [(&str, &str); 16] = [
    ("limits::", "the decision's arithmetic"),
    ("int_or_string", "the decision's arithmetic"),
    ("replicas::", "the decision's arithmetic"),
    ("decide", "the decision"),
    ("deliberate", "the decision"),
    ("canary::", "the decision"),
    ("blue_green::", "the decision"),
    ("sets::", "the decision"),
    ("traffic::", "the decision"),
    ("services::", "the decision"),
    ("step::", "the decision"),
    ("pass::", "the decision"),
    ("assess", "the decision"),
    ("phase::", "the decision"),
    ("versions::", "the decision"),
    ("analyses::", "the decision"),
];

#[test]
fn judges_share_nothing_with_what_they_judge() {
    let mut judges = 0;
    let mut problems = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src"), "", &mut |path, text| {
        if JUDGES.contains(&path) {
            judges += 1;
            let named = offences(text, &DECISION).into_iter();
            problems.extend(named.map(|(line, word, why)| format!("{path}:{line}: names `{word}` ({why})")));
        }
    });
    assert_eq!(judges, JUDGES.len(), "one of them is gone");
    assert!(problems.is_empty(), "a judge is not independent:\n{}", problems.join("\n"));
}

#[test]
fn one_place_accepts_connections() {
    // `accept` of TLS takes the connection; that of a listener takes nothing, and its errors need a wait.
    assert_nobody_names(&[(".accept()", "a listener whose errors are not waited out")], &["embedded/listen"]);
}

#[test]
fn one_place_prints() {
    // A reader that is gone (`tidegate diff | head`) is the end there; these would panic.
    let printing = [("println!", "a panic"), ("print!", "a panic"), ("eprintln!", "a panic"), ("eprint!", "a panic")];
    assert_nobody_names(&printing, &["cmd/print.rs"]);
}

/// Fails for each file outside of `but` that names one of the words.
fn assert_nobody_names(words: &[(&'static str, &'static str)], but: &[&str]) {
    let mut problems = Vec::new();
    for (folder, prefix) in ROOTS {
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), prefix, &mut |path, text| {
            if but.iter().any(|place| path.starts_with(place)) {
                return;
            }
            for (line, word, why) in offences(text, words) {
                problems.push(format!("{folder}: {path}:{line}: names `{word}` ({why})"));
            }
        });
    }
    assert!(problems.is_empty(), "the module rule is broken:\n{}", problems.join("\n"));
}

/// Calls `see` with every source file that is not only for tests.
fn walk(folder: &Path, name: &str, see: &mut dyn FnMut(&str, &str)) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    // The module of a folder may stand beside it.
    let parent = folder.with_extension("rs");
    let texts: Vec<String> = entries.iter().chain([&parent]).filter_map(|path| fs::read_to_string(path).ok()).collect();
    let only_for_tests = |stem: &str| {
        let declared = format!("#[cfg(test)]\nmod {stem};");
        texts.iter().any(|text| text.contains(&declared))
    };
    for path in entries {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if only_for_tests(file.trim_end_matches(".rs")) {
            continue;
        }
        if path.is_dir() {
            walk(&path, &format!("{name}{file}/"), see);
        } else if file.ends_with(".rs") {
            see(&format!("{name}{file}"), &fs::read_to_string(&path).unwrap());
        }
    }
}

/// The forbidden names in a source text, with their lines.
fn offences(text: &str, words: &[(&'static str, &'static str)]) -> Vec<(usize, &'static str, &'static str)> {
    let code = without_tests(&without_prose(text));
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        for &(word, why) in words {
            let names = |start: usize| !line[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if line.match_indices(word).any(|(start, _)| names(start)) {
                found.push((number + 1, word, why));
            }
        }
    }
    found
}

/// The code alone: comments and literals become blanks, lines stay lines.
fn without_prose(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let blank = |code: &mut String, skipped: &str| {
        code.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
    };
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len())
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' {
            // A lifetime has no closing quote after one character.
            let closes = rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'');
            if closes { quoted(rest, '\'') } else { 0 }
        } else {
            0
        };
        if length > 0 {
            blank(&mut code, &rest[..length]);
            rest = &rest[length..];
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// The number of hashes, if a raw string begins here.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The length of the literal that begins here.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Takes out what stands under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..start]);
        let item = &rest[start..];
        let end = item.find(['{', ';']).map_or(item.len(), |at| match &item[at..=at] {
            "{" => at + block(&item[at..]),
            _ => at + 1,
        });
        kept.extend(item[..end].chars().filter(|c| *c == '\n'));
        rest = &item[end..];
    }
    kept + rest
}

/// The length of the block that begins here.
fn block(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

#[test]
fn only_code_counts() {
    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let found: Vec<(usize, &str)> =
            offences(text, &FORBIDDEN).into_iter().map(|(line, word, _)| (line, word)).collect();
        assert_eq!(found, expected, "{text}");
    }
    check("use std::fs;\nfn a() { let t = Timestamp::now(); }", &[(1, "std::fs"), (2, "Timestamp::now")]);
    check(
        "// tokio::spawn\n/* std::fs\n*/ let a = \"std::env\"; let b = r#\"tokio::\"#; let c = '\"'; tokio::x()",
        &[(3, "tokio::")],
    );
    check("fn a<'a>(b: &'a str) { kube_cel::x(); mykube::y(); kube::z() }", &[(1, "kube::")]);
    check("#[cfg(test)]\nmod tests {\n  use std::fs; fn a() { if x { } }\n}\nuse std::env;", &[(5, "std::env")]);
    check("#[cfg(test)]\nmod tests;\nuse std::net::TcpStream;", &[(3, "TcpStream")]);
}

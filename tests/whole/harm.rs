//! Git hosts and hosts of metrics that mean harm, on this machine: endless, huge, slow, and unpacking to far more than they send.

use std::{convert::Infallible, io::Write, sync::Arc, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::ZlibEncoder};
use futures::{StreamExt, stream};
use git2::{ObjectType, Oid};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::server::{ADVERTISEMENT, RESULT, certificate};

/// What a git host does: lists without end, in either version of the protocol; never goes on; sends without end; sends a chain
/// of differences between large objects.
pub const WAYS: [&str; 5] = ["greeting", "list", "slow", "pack", "bomb"];
/// The size of the objects of a bomb: just below what is refused at once.
const OBJECT: usize = 47 << 20;
/// How many differences a bomb has.
const CHAIN: u8 = 4;

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn packet(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// First these bytes, then the same again and again, with a pause before each; for ever.
fn endless(first: Vec<u8>, again: Vec<u8>, pause: Duration) -> Body {
    let (first, again) = (Bytes::from(first), Bytes::from(again));
    let later = stream::unfold((), move |()| {
        let again = again.clone();
        async move {
            tokio::time::sleep(pause).await;
            Some((again, ()))
        }
    });
    let chunks = stream::once(async { first }).chain(later);
    StreamBody::new(chunks.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// Part of a pack, as it travels.
fn carried(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(60_000) {
        out.extend(format!("{:04x}\u{1}", part.len() + 5).into_bytes());
        out.extend(part);
    }
    out
}

fn zlib(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    parts.into_iter().for_each(|part| out.write_all(&part).unwrap());
    out.finish().unwrap()
}

/// A number in groups of seven bits, the lowest first.
fn varint(mut number: usize) -> Vec<u8> {
    let mut out = vec![(number & 0x7f) as u8];
    while number > 0x7f {
        number >>= 7;
        *out.last_mut().unwrap() |= 0x80;
        out.push((number & 0x7f) as u8);
    }
    out
}

/// How an object of a pack begins.
fn head(kind: u8, size: usize) -> Vec<u8> {
    let mut out = vec![(kind << 4) | (size & 15) as u8];
    if size > 15 {
        out[0] |= 0x80;
        out.extend(varint(size >> 4));
    }
    out
}

/// How far back the base of a difference is.
fn back(mut distance: usize) -> Vec<u8> {
    let mut out = vec![(distance & 0x7f) as u8];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        out.insert(0, 0x80 | (distance & 0x7f) as u8);
        distance >>= 7;
    }
    out
}

/// A commit whose only file is a large blob at the end of a chain of differences, each to the one before, and its pack.
fn bomb() -> (String, Vec<u8>) {
    let mut pack = Vec::new();
    let zeros = vec![0; OBJECT];
    let mut last = pack.len();
    pack.extend(head(3, OBJECT));
    pack.extend(zlib([zeros]));
    for number in 1..=CHAIN {
        // One byte of its own, then all but the last byte of the base.
        let mut delta = [varint(OBJECT), varint(OBJECT), vec![1, number]].concat();
        let (mut at, mut left) = (0, OBJECT - 1);
        while left > 0 {
            let size = left.min(0xff_ffff);
            let bytes = |number: usize| (number as u32).to_le_bytes();
            delta.push(0xff);
            delta.extend(bytes(at));
            delta.extend(&bytes(size)[..3]);
            (at, left) = (at + size, left - size);
        }
        let begin = pack.len();
        pack.extend(head(6, delta.len()));
        pack.extend(back(begin - last));
        pack.extend(zlib([delta]));
        last = begin;
    }
    let mut content: Vec<u8> = (1..=CHAIN).rev().collect();
    content.resize(OBJECT, 0);
    let blob = Oid::hash_object(ObjectType::Blob, &content).unwrap();
    let tree = [b"100644 large.yaml\0".as_slice(), blob.as_bytes()].concat();
    let folder = Oid::hash_object(ObjectType::Tree, &tree).unwrap();
    let who = "eve <eve@example.org> 1700000000 +0000";
    let commit = format!("tree {folder}\nauthor {who}\ncommitter {who}\n\nlarge\n");
    let id = Oid::hash_object(ObjectType::Commit, commit.as_bytes()).unwrap();
    for (kind, bytes) in [(2, tree), (1, commit.into_bytes())] {
        pack.extend(head(kind, bytes.len()));
        pack.extend(zlib([bytes]));
    }
    let count = u32::from(CHAIN) + 3;
    let mut whole = [b"PACK\0\0\0\x02".as_slice(), &count.to_be_bytes(), &pack].concat();
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &whole);
    whole.extend(sum.as_ref());
    (id.to_string(), whole)
}

/// What a host answers whose path begins with the kind of harm that it means.
fn harm(path: &str, asked: &[u8], (id, pack): &(String, Vec<u8>)) -> (&'static str, Body) {
    let kind = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let lists = asked.windows(15).any(|window| window == b"command=ls-refs");
    let none = "1".repeat(40);
    let names: String = (0..300).map(|_| packet(&format!("{none} refs/heads/{}\n", "x".repeat(900)))).collect();
    if path.ends_with("/info/refs") {
        let greeting = packet("version 2\n") + &packet("ls-refs\n") + &packet("fetch=shallow\n");
        let begin = "001e# service=git-upload-pack\n0000".to_owned();
        let body = match kind {
            // In the protocol before, it is the greeting that lists.
            "greeting" => {
                let first = begin + &packet(&format!("{none} HEAD\0side-band-64k shallow\n"));
                endless(first.into(), names.into(), Duration::ZERO)
            }
            "slow" => endless(begin.into(), vec![], Duration::from_secs(3600)),
            _ => whole(begin + &greeting + "0000"),
        };
        return (ADVERTISEMENT, body);
    }
    let body = match kind {
        "list" if lists => endless(vec![], names.into(), Duration::ZERO),
        _ if lists => whole(packet(&format!("{id} HEAD\n")) + "0000"),
        // About 13 MiB a second.
        "pack" => {
            let noise: Vec<u8> =
                (0..60_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let first = [packet("packfile\n").into_bytes(), carried(b"PACK\0\0\0\x02\0\0\0\x04")].concat();
            endless(first, carried(&noise), Duration::from_millis(5))
        }
        _ => whole([packet("packfile\n").as_bytes(), &carried(pack), b"0000"].concat()),
    };
    (RESULT, body)
}

/// Git hosts on one port of this machine, one for each way to do harm; answers with it and the authority to trust. The first
/// part of a path is the way: [`WAYS`].
pub async fn git_hosts() -> (u16, String) {
    let (config, authority) = certificate();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bomb = Arc::new(bomb());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, bomb) = (acceptor.clone(), bomb.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request: Request<Incoming>| {
                    let bomb = bomb.clone();
                    async move {
                        let path = request.uri().path().to_owned();
                        let asked = request.into_body().collect().await?.to_bytes();
                        let (kind, body) = harm(&path, &asked, &bomb);
                        Ok::<_, hyper::Error>(Response::builder().header("content-type", kind).body(body).unwrap())
                    }
                });
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    (port, authority)
}

/// A host of metrics whose every answer has 850 kB; under `/slow` it never answers.
pub async fn metric_host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Bytes::from(format!("{{\"v\": \"{}\"}}", "x".repeat(850_000)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = Response::new(match request.uri().path() {
                        "/slow" => endless(vec![], vec![], Duration::from_secs(3600)),
                        _ => whole(answer.clone()),
                    });
                    async move { Ok::<_, Infallible>(answer) }
                });
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    port
}

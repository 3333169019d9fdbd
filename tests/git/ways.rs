//! Ways to a host: by an App's token, through a proxy.

use std::sync::{Arc, Mutex};

use http::Method;
use tidegate::{
    io::{
        git::Retry,
        http::{Limits, Proxy},
    },
    model::git_source::Reference,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::{
    fetching::{CANARY, Reader},
    repository::Made,
    server::{Server, git, reply},
};

const KEY: &str = include_str!("../../src/io/git/testdata/app.pem");

fn app(server: &Server) -> Reader {
    let keys = [
        ("githubAppID", "42"),
        ("githubAppInstallationID", "7"),
        ("githubAppPrivateKey", KEY),
        ("ca.crt", server.authority.as_str()),
    ];
    Reader::new(&server.url("team/web.git"), &keys)
}

/// An App proves itself once and fetches with the token that it gets, for as long as that is good.
#[tokio::test]
async fn an_app_fetches_with_a_token_that_lives_an_hour() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let path = made.path();
    let server = Server::start(move |parts, body| match parts.uri.path() {
        "/api/v3/app/installations/7/access_tokens" => {
            reply(201, &[], format!(r#"{{"token":"{CANARY}","expires_at":"2099-01-01T00:00:00Z"}}"#))
        }
        _ => git(&path, parts, body),
    })
    .await;
    let reader = app(&server);
    assert_eq!(reader.main().await.unwrap().commit, one.to_string());
    assert_eq!(reader.main().await.unwrap().commit, one.to_string());
    let asked = server.asked();
    let exchanged: Vec<_> = asked.iter().filter(|(_, path, _)| path.contains("access_tokens")).collect();
    assert_eq!(exchanged.len(), 1, "the token is kept");
    assert_eq!(exchanged[0].0, Method::POST);
    assert!(exchanged[0].2.as_deref().unwrap().starts_with("Bearer eyJ"), "a signed statement");
    let basic = "Basic eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LTdmM2E5Yw==";
    let others = asked.iter().filter(|(_, path, _)| !path.contains("access_tokens"));
    assert!(others.map(|(_, _, shown)| shown.as_deref()).all(|shown| shown == Some(basic)));
}

#[tokio::test]
async fn an_app_that_is_refused_says_why() {
    for (code, words) in [(401, "does not accept the App's key"), (404, "no such installation"), (500, "500")] {
        let server = Server::start(move |_, _| reply(code, &[], CANARY)).await;
        let error = app(&server).main().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.retry(), Retry::Later);
        assert!(server.asked().iter().all(|(_, path, _)| path.contains("access_tokens")), "nothing is fetched");
    }
    let server = Server::start(|_, _| reply(201, &[], "{}")).await;
    let error = app(&server).main().await.unwrap_err().to_string();
    assert!(error.contains("holds no token"), "{error}");
}

/// A proxy that writes down what it is asked and does it, or does not.
async fn proxy(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await.unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    head.push(line.trim().to_owned());
                }
                let to = head[0].split(' ').nth(1).unwrap().to_owned();
                log.lock().unwrap().extend(head);
                stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
                if answer.starts_with("200") {
                    let mut other = TcpStream::connect(to).await.unwrap();
                    drop(copy_bidirectional(&mut stream, &mut other).await);
                }
            });
        }
    });
    (port, asked)
}

#[tokio::test]
async fn a_proxy_is_gone_through() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let server = Server::git(&made.path()).await;
    let (port, asked) = proxy("200 OK").await;
    let through = |except: &str| Some(Proxy::parse(&format!("http://ada:{CANARY}@127.0.0.1:{port}"), except).unwrap());
    let reader = Reader::of(&server).through(through(""), Limits::default());
    assert_eq!(reader.follow(&Reference::Default, None).await.unwrap().commit, one.to_string());
    let heard = asked.lock().unwrap().clone();
    assert_eq!(heard[0], format!("CONNECT {} HTTP/1.1", server.address));
    assert!(heard.contains(&"Proxy-Authorization: Basic YWRhOmNhbmFyeS03ZjNhOWM=".to_owned()), "{heard:?}");
    asked.lock().unwrap().clear();
    let reader = Reader::of(&server).through(through("127.0.0.1"), Limits::default());
    assert_eq!(reader.main().await.unwrap().commit, one.to_string());
    assert_eq!(*asked.lock().unwrap(), [] as [&str; 0], "hosts that are excepted are reached without it");
    let (port, _) = proxy("407 Proxy Authentication Required").await;
    let refusing = Proxy::parse(&format!("http://ada:{CANARY}@127.0.0.1:{port}"), "").unwrap();
    let error = Reader::of(&server).through(Some(refusing), Limits::default()).main().await.unwrap_err().to_string();
    assert!(error.contains("through the proxy 127.0.0.1") && error.contains("407"), "{error}");
}

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::*;
use crate::io::failing::{failing, too_many_files};

const SECRET: &str = "It's a Secret to Everybody";
/// `Hello, World!`, signed with the secret.
const DIGEST: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

struct Door {
    address: std::net::SocketAddr,
    news: mpsc::Receiver<News>,
    hooks: Hooks,
    _stop: oneshot::Sender<()>,
}

async fn door(limits: Limits) -> Door {
    let (sender, news) = mpsc::channel(8);
    let hooks = Hooks::new(limits, sender);
    hooks.open(Source { namespace: "shop".into(), name: "web".into() }, Secret::new(SECRET));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(hooks.clone().serve(listener, async { drop(stopped.await) }));
    Door { address, news, hooks, _stop }
}

async fn send(door: &Door, request: &str) -> String {
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A host that refuses early may close before all is sent.
    drop(stream.read_to_string(&mut answer).await);
    answer.lines().next().unwrap_or_default().to_owned()
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

/// SR20: proven before it is read; without a secret there is no path.
#[tokio::test]
async fn only_a_proven_message_is_heard() {
    let mut door = door(Limits::default()).await;
    let signed = format!("x-signature: sha256={DIGEST}\r\n");
    let check = async |request: String, expected: &str| assert_eq!(send(&door, &request).await, expected, "{request}");
    check(post("/hook/shop/web", &signed, "Hello, World!"), "HTTP/1.1 202 Accepted").await;
    check(post("/hook/shop/web", &signed, "Hello, World!"), "HTTP/1.1 200 OK").await;
    check(post("/hook/shop/web", &signed, "Hello, World?"), "HTTP/1.1 401 Unauthorized").await;
    check(post("/hook/shop/web", "", "Hello, World!"), "HTTP/1.1 401 Unauthorized").await;
    check(post("/hook/shop/other", &signed, "Hello, World!"), "HTTP/1.1 401 Unauthorized").await;
    check(post("/", &signed, "Hello, World!"), "HTTP/1.1 404 Not Found").await;
    check("GET /hook/shop/web HTTP/1.1\r\nhost: x\r\n\r\n".into(), "HTTP/1.1 405 Method Not Allowed").await;
    door.hooks.close(&Source { namespace: "shop".into(), name: "web".into() });
    check(post("/hook/shop/web", &signed, "Hello, World!"), "HTTP/1.1 401 Unauthorized").await;
    door.hooks.open(Source { namespace: "shop".into(), name: "web".into() }, Secret::new(""));
    check(post("/hook/shop/web", &signed, "Hello, World!"), "HTTP/1.1 401 Unauthorized").await;
    let news = door.news.recv().await.unwrap();
    assert_eq!((news.source.name.as_str(), news.hint), ("web", Hint::default()));
    assert!(door.news.try_recv().is_err(), "nothing else was heard");
}

/// SR20: whether a source has a hook is told to nobody who does not know its secret.
#[tokio::test]
async fn sr20_a_stranger_does_not_learn_which_hooks_there_are() {
    let door = door(Limits { bytes: 100, ..Limits::default() }).await;
    let (short, long) = ("Hello, World?".to_owned(), "x".repeat(101));
    let wrong = format!("x-signature: sha256={}\r\n", DIGEST.replace('7', "8"));
    for (headers, body) in [("", &short), (wrong.as_str(), &short), ("x-gitlab-event: x\r\n", &short), ("", &long)] {
        let (there, nowhere) = (post("/hook/shop/web", headers, body), post("/hook/shop/none", headers, body));
        assert_eq!(send(&door, &there).await, send(&door, &nowhere).await, "{headers}");
    }
    let get = |name: &str| format!("GET /hook/shop/{name} HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(send(&door, &get("web")).await, send(&door, &get("none")).await);
}

/// SR24: those who wait for plans keep neither webhooks nor the workflows of other namespaces waiting.
#[tokio::test]
async fn sr24_who_waits_for_a_plan_takes_no_seat_of_a_webhook() {
    let (sender, mut news) = mpsc::channel(8);
    let (asked, mut plans) = mpsc::unbounded_channel();
    let planner: Planner = Arc::new(move |request: PlanRequest| {
        let asked = asked.clone();
        Box::pin(async move {
            // An issuer that never answers.
            drop(asked.send(request.source.namespace));
            std::future::pending().await
        })
    });
    let hooks = Hooks::with_plans(Limits { rate: 1000, ..Limits::default() }, sender, Some(planner));
    hooks.open(Source { namespace: "shop".into(), name: "web".into() }, Secret::new(SECRET));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(hooks.clone().serve(listener, async { drop(stopped.await) }));
    let door = Door { address, news: mpsc::channel(1).1, hooks, _stop };
    let plan =
        |namespace: &str| format!("GET /plan/{namespace}/web HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n\r\n");
    let mut waiting = Vec::new();
    for _ in 0..PLAN_SEATS.1 {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        stream.write_all(plan("evil").as_bytes()).await.unwrap();
        assert_eq!(plans.recv().await.as_deref(), Some("evil"));
        waiting.push(stream);
    }
    for _ in 0..100 {
        assert_eq!(send(&door, &plan("evil")).await, "HTTP/1.1 429 Too Many Requests");
    }
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    stream.write_all(plan("honest").as_bytes()).await.unwrap();
    assert_eq!(plans.recv().await.as_deref(), Some("honest"));
    let signed = format!("x-signature: sha256={DIGEST}\r\n");
    assert_eq!(send(&door, &post("/hook/shop/web", &signed, "Hello, World!")).await, "HTTP/1.1 202 Accepted");
    assert_eq!(news.recv().await.unwrap().source.name, "web");
    assert!(plans.try_recv().is_err(), "nobody else was let in");
}

/// One push knocks at the door of every source of its repository, with the same words.
#[tokio::test]
async fn each_source_hears_for_itself() {
    let mut door = door(Limits::default()).await;
    let api = Source { namespace: "shop".into(), name: "api".into() };
    door.hooks.open(api.clone(), Secret::new(SECRET));
    let signed = format!("x-signature: sha256={DIGEST}\r\n");
    for (path, code) in [("web", "202 Accepted"), ("api", "202 Accepted"), ("api", "200 OK")] {
        // Opened again with the same secret, as every pass does, it still knows what it heard.
        door.hooks.open(api.clone(), Secret::new(SECRET));
        let request = post(&format!("/hook/shop/{path}"), &signed, "Hello, World!");
        assert_eq!(send(&door, &request).await, format!("HTTP/1.1 {code}"));
    }
    let names = [door.news.recv().await.unwrap().source.name, door.news.recv().await.unwrap().source.name];
    assert_eq!(names, ["web", "api"]);
}

#[tokio::test]
async fn strangers_cost_little() {
    let large = door(Limits { bytes: 100, ..Limits::default() }).await;
    let body = "x".repeat(101);
    assert_eq!(send(&large, &post("/hook/shop/web", "", &body)).await, "HTTP/1.1 413 Payload Too Large");
    let chunked = format!(
        "POST /hook/shop/web HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n65\r\n{body}\r\n0\r\n\r\n"
    );
    assert_eq!(send(&large, &chunked).await, "HTTP/1.1 413 Payload Too Large");
    let busy = door(Limits { rate: 0, ..Limits::default() }).await;
    assert_eq!(send(&busy, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await, "HTTP/1.1 429 Too Many Requests");
    // Whoever says nothing is sent away.
    let slow = door(Limits { time: Duration::from_millis(50), ..Limits::default() }).await;
    assert_eq!(send(&slow, "").await, "");
}

#[test]
fn the_rate_is_kept() {
    let began = Instant::now();
    let mut bucket = Bucket { left: 4.0, at: began };
    let mut take = |millis: u64| bucket.take(2, began + Duration::from_millis(millis));
    let taken: Vec<bool> = [0, 0, 0, 0, 0, 400, 500, 600, 60_000].map(&mut take).to_vec();
    assert_eq!(taken, [true, true, true, true, false, false, true, false, true]);
}

/// A process that has no file descriptor left does not spend its time on finding that out, and hears again later.
#[tokio::test(start_paused = true)]
async fn a_door_that_cannot_be_opened_is_tried_now_and_then() {
    let (sender, _news) = mpsc::channel(8);
    let hooks = Hooks::new(Limits::default(), sender);
    let (listener, outside) = failing((0..30).map(|_| too_many_files()));
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(hooks.serve(listener, async { drop(stopped.await) }));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(outside.calls(), 7 + 9, "seven short waits, then one call a second");
    let mut client = outside.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer.lines().next(), Some("HTTP/1.1 404 Not Found"));
    drop(stop);
    served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_door_that_cannot_be_opened_is_closed_at_once_when_told_to() {
    let hooks = Hooks::new(Limits::default(), mpsc::channel(8).0);
    let (listener, _outside) = failing((0..1000).map(|_| too_many_files()));
    let began = tokio::time::Instant::now();
    hooks.serve(listener, tokio::time::sleep(Duration::from_millis(5200))).await;
    assert_eq!(began.elapsed(), Duration::from_millis(5200));
}

//! A workflow asks the running daemon for a plan: the Action, an issuer of tokens, a git host and the daemon, over TLS.

use std::{
    fs,
    net::SocketAddr,
    process::Command,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents},
};
use serde_json::{Value as Json, json};
use tidegate::{
    engine::key::{Place, Resource},
    io::api::{Force, Run},
    io::http::{Http, Limits},
    kubernetes::value::Value,
    value,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{
    scene::{Scene, Tree},
    server::{self, Server, reply},
};

const PULL_REQUEST: &str = "refs/pull/7/merge";
/// What the runner shows to whoever makes its tokens.
const RUNNER_SECRET: &str = "runner-canary-secret";

fn web(image: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  \
         strategy: {{canary: {{steps: [{{setWeight: 50}}, {{pause: {{}}}}]}}}}\n"
    )
}

/// A Secret that stands in the repository as it is; the plan says that it changes, and nothing else of it.
const CANARY: &str = "CanaryOfThePlan7q";

fn db(number: u8) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData: {{password: {CANARY}{number}}}\n")
}

/// SR15: neither as it is nor as a cluster writes it.
#[track_caller]
fn shows_no_secret(what: &str, text: &str) {
    let encoded = STANDARD.encode(CANARY);
    assert!(!text.contains(CANARY) && !text.contains(&encoded[..16]), "{what} shows a secret: {text}");
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs tokens.
struct Key(RsaKeyPair);

impl Key {
    fn issuer() -> Key {
        Key(RsaKeyPair::from_pkcs8(include_bytes!("keys/issuer.pk8")).unwrap())
    }

    fn other() -> Key {
        Key(RsaKeyPair::from_pkcs8(include_bytes!("keys/other.pk8")).unwrap())
    }

    fn set(&self) -> String {
        let public: RsaPublicKeyComponents<Vec<u8>> = self.0.public().into();
        let key = json!({"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": encode(public.n), "e": encode(public.e)});
        json!({ "keys": [key] }).to_string()
    }

    fn sign(&self, claims: &Json) -> String {
        let signed = unsigned("RS256", claims);
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
        format!("{signed}.{}", encode(signature))
    }
}

fn unsigned(alg: &str, claims: &Json) -> String {
    format!("{}.{}", encode(json!({"alg": alg, "kid": "k"}).to_string()), encode(claims.to_string()))
}

/// An issuer with discovery and keys, and the door at which a runner gets its token for an audience.
async fn issuer(claims: Arc<OnceLock<Json>>) -> Server {
    let own = Arc::new(OnceLock::new());
    let named = own.clone();
    let started = Server::start(move |parts, _| {
        let key = Key::issuer();
        let origin: &String = named.get().unwrap();
        match parts.uri.path() {
            "/.well-known/openid-configuration" => {
                let said = json!({"issuer": origin, "jwks_uri": format!("{origin}/keys")});
                reply(200, &[], said.to_string())
            }
            "/keys" => reply(200, &[], key.set()),
            "/token" => {
                let shown = parts.headers.get("authorization").and_then(|shown| shown.to_str().ok());
                assert_eq!(shown, Some(format!("Bearer {RUNNER_SECRET}").as_str()));
                let query = form_urlencoded::parse(parts.uri.query().unwrap().as_bytes());
                let audience = query.into_owned().find(|(name, _)| name == "audience").unwrap().1;
                let mut claims = claims.get().unwrap().clone();
                claims["aud"] = audience.into();
                reply(200, &[], json!({"value": key.sign(&claims)}).to_string())
            }
            _ => reply(404, &[], ""),
        }
    })
    .await;
    own.set(origin(&started)).unwrap();
    started
}

fn origin(server: &Server) -> String {
    server.url("").trim_end_matches('/').to_owned()
}

/// TLS in front of what a port serves, as an ingress does it; its address and authority.
async fn ingress(port: u16) -> (SocketAddr, String) {
    let (config, authority) = server::certificate();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let Ok(mut inside) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                drop(tokio::io::copy_bidirectional(&mut outside, &mut inside).await);
            });
        }
    });
    (address, authority)
}

struct Bed {
    scene: Scene,
    tree: Tree,
    issuer: Server,
    /// The Action's `daemon-url`.
    daemon: String,
    http: Http,
    claims: Json,
    main: String,
    _git: Server,
}

impl Bed {
    /// The daemon has rolled out `main`, and a pull request changes its image. The daemon trusts the other hosts as well.
    async fn start(others: &[&Server]) -> Bed {
        let mut scene = Scene::open().await;
        let tree = Tree::new(scene.folder.path());
        let main = tree.push(&[("deploy/web.yaml", &web("web:1")), ("deploy/db.yaml", &db(1))], "first");
        let git = Server::git(&scene.path("shop.git")).await;
        let claims = Arc::new(OnceLock::new());
        let issuer = issuer(claims.clone()).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (address, authority) = ingress(port).await;
        let mut bundle = [&git.authority, &issuer.authority, &authority].map(String::as_str).concat();
        bundle.extend(others.iter().map(|server| server.authority.as_str()));
        fs::write(scene.path("ca.pem"), &bundle).unwrap();
        let trusted = scene.path("ca.pem").to_str().unwrap().to_owned();
        let doors = format!("127.0.0.1:{port}");
        let arguments = ["--metrics-port", "0", "--webhooks", &doors];
        scene.run(&arguments, &[("SSL_CERT_FILE", &trusted), ("TIDEGATE_LOG", "debug")]);
        let daemon = format!("https://{address}");
        let limits = Limits { answer: Duration::from_secs(60), ..Limits::default() };
        let http = Http::new(None, limits).unwrap().trusting(bundle.as_bytes()).unwrap();

        tree.git(&["checkout", "-q", "-b", "next"]);
        fs::write(scene.path("tree/deploy/web.yaml"), web("web:2")).unwrap();
        fs::write(scene.path("tree/deploy/db.yaml"), db(2)).unwrap();
        tree.git(&["commit", "-q", "-a", "-m", "second"]);
        tree.git(&["push", "-q", "../shop.git", &format!("HEAD:{PULL_REQUEST}")]);
        let next = tree.git(&["rev-parse", "HEAD"]);
        let now = jiff::Timestamp::now().as_second();
        let said = json!({"iss": origin(&issuer), "aud": daemon, "exp": now + 300, "nbf": now - 10,
            "repository": "shop/deploy", "ref": PULL_REQUEST, "sha": next});
        claims.set(said.clone()).unwrap();
        let bed = Bed { scene, tree, issuer, daemon, http, claims: said, main, _git: git };
        let url = bed._git.url("shop.git");
        bed.source("web", &url, json!({"plan": bed.access(&origin(&bed.issuer))})).await;
        bed.scene
            .until("the first version", async || {
                let rollout = bed.scene.get("argoproj.io", "v1alpha1", "rollouts", "web").await?;
                (rollout.str_at(&["status", "phase"]) == Some("Healthy")).then_some(())
            })
            .await;
        bed
    }

    fn access(&self, issuer: &str) -> Json {
        json!({"issuer": issuer, "audience": self.daemon, "repository": "shop/deploy",
            "refs": ["refs/pull/*/merge", "refs/heads/main"]})
    }

    async fn source(&self, name: &str, url: &str, more: Json) {
        let mut spec = json!({"url": url, "path": "deploy", "serviceAccountName": "deployer", "interval": "1s"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": name},
            "spec": Value::from(spec)});
        self.scene.create("tidegate.dev", "v1alpha1", "gitsources", body).await;
    }

    /// A claim of the token changed.
    fn with(&self, name: &str, value: impl Into<Json>) -> Json {
        let mut claims = self.claims.clone();
        claims[name] = value.into();
        claims
    }

    async fn ask(&self, source: &str, token: &str) -> (u16, String) {
        let request = Request::get(format!("{}/plan/{source}", self.daemon));
        let request = request.header("authorization", format!("Bearer {token}")).body(Bytes::new()).unwrap();
        let answer = self.http.send(request).await.unwrap();
        (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap())
    }

    /// Runs the Action as a runner would; what it printed and its exit code.
    fn action(&self, source: &str, environment: &[(&str, &str)]) -> (String, i32) {
        let head = self.tree.git(&["rev-parse", "HEAD"]);
        let event = json!({"number": 7, "repository": {"full_name": "shop/deploy"}, "pull_request": {"number": 7,
            "head": {"ref": "next", "sha": head, "repo": {"full_name": "shop/deploy"}},
            "base": {"ref": "main", "sha": self.main, "repo": {"full_name": "shop/deploy"}}}});
        fs::write(self.scene.path("event.json"), event.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.current_dir(self.scene.path("tree"));
        command.args(["--log=off", "action", "--comment=never", "--daemon-url", &format!("{}/", self.daemon)]);
        command.args(["--source", source]).env_remove("KUBECONFIG").env("RUNNER_TEMP", self.scene.folder.path());
        command.env("SSL_CERT_FILE", self.scene.path("ca.pem")).env("GITHUB_EVENT_NAME", "pull_request");
        command.env("GITHUB_EVENT_PATH", self.scene.path("event.json")).env("GITHUB_SHA", &head);
        command.env("GITHUB_OUTPUT", self.scene.path("output"));
        command.env("GITHUB_STEP_SUMMARY", self.scene.path("summary")).envs(environment.iter().copied());
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (text, output.status.code().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_action_shows_the_live_plan_of_the_daemon() {
    let bed = Bed::start(&[]).await;
    let url = format!("{}/token?api-version=2", origin(&bed.issuer));
    let runner = [("ACTIONS_ID_TOKEN_REQUEST_URL", url.as_str()), ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", RUNNER_SECRET)];
    let (text, code) = bed.action("default/web", &runner);
    assert_eq!(code, 0, "{text}\n{}", bed.scene.log());
    let summary = fs::read_to_string(bed.scene.path("summary")).unwrap();
    assert!(summary.contains("0 to create, 2 to change, 0 to delete"), "{summary}");
    let outputs = fs::read_to_string(bed.scene.path("output")).unwrap();
    assert!(outputs.contains("has-changes=true\n") && outputs.contains("exit-code=1\n"), "{outputs}");
    let file = outputs.lines().find_map(|line| line.strip_prefix("plan-file=")).unwrap();
    let plan = Value::from_json(&fs::read(file).unwrap()).unwrap();
    let [rollout] = plan.list_at(&["rollouts"]) else { panic!("{}", plan.to_json()) };
    assert_eq!(rollout.str_at(&["starts"]), Some("new-rollout"));
    // The Secret changes as well, and of it only that is said.
    let objects = plan.list_at(&["live", "objects"]);
    let of = |kind: &str| objects.iter().find(|object| object.str_at(&["kind"]) == Some(kind)).unwrap();
    let (live, secret) = (of("Rollout"), of("Secret"));
    assert!(!secret.str_at(&["change"]).unwrap().is_empty(), "{}", secret.to_json());
    for (what, shown) in [("summary", &summary), ("outputs", &outputs), ("plan", &plan.to_json()), ("Action", &text)] {
        shows_no_secret(what, shown);
    }
    shows_no_secret("log", &bed.scene.log());
    for plural in ["events", "configmaps"] {
        let list = bed.scene.api.get(&Resource::new("", "v1", plural).path(None).unwrap()).await.unwrap();
        shows_no_secret(plural, &list.to_json());
    }
    let sources = Resource::new("tidegate.dev", "v1alpha1", "gitsources").path(None).unwrap();
    shows_no_secret("sources", &bed.scene.api.get(&sources).await.unwrap().to_json());
    assert!(live.str_at(&["change"]).unwrap().contains("image: web:2"), "{}", live.to_json());
    assert_eq!(live.str_at(&["drift"]), Some(""), "{}", live.to_json());
    // Nothing was written by it.
    let web = bed.scene.get("argoproj.io", "v1alpha1", "rollouts", "web").await.unwrap();
    assert!(web.to_json().contains("web:1") && !web.to_json().contains("web:2"));

    // What is wrong is said with what to do, and fails the step.
    let (text, code) = bed.action("default/elsewhere", &runner);
    assert_eq!(code, 2, "{text}");
    let remedy = format!("the GitSource needs `plan` with issuer {}, audience {}", origin(&bed.issuer), bed.daemon);
    assert!(
        text.contains("::error::the daemon has no such source") && text.contains("repository shop/deploy"),
        "{text}"
    );
    assert!(text.contains(&remedy) && text.contains("a pattern for refs/pull/7/merge in refs"), "{text}");
    let (text, code) = bed.action("default/web", &[]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("the job needs `permissions: id-token: write`"), "{text}");
    let (text, code) = bed.action("web", &runner);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("give `source: NAMESPACE/NAME` with `daemon-url`"), "{text}");
    // Another commit than the token's is not planned under its name.
    bed.tree.git(&["commit", "-q", "--allow-empty", "-m", "third"]);
    let (text, code) = bed.action("default/web", &runner);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("the workflow runs for") && text.contains("leave `to` out"), "{text}");
    assert!(!bed.scene.log().contains(RUNNER_SECRET));
}

/// SR4: the daemon keeps repositories once for all tenants; that another one's plan brought a commit opens it to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn sr4_a_plan_reads_a_commit_only_with_access_to_its_repository() {
    const PASSWORD: &str = "ada:canary-of-the-victim";
    let private = Arc::new(OnceLock::<std::path::PathBuf>::new());
    let served = private.clone();
    let host = Server::start(move |parts, body| {
        let expected = format!("Basic {}", STANDARD.encode(PASSWORD));
        match parts.headers.get("authorization") {
            Some(shown) if shown == expected.as_str() => server::git(served.get().unwrap(), parts, body),
            Some(_) | None => reply(401, &[("www-authenticate", "Basic realm=x")], ""),
        }
    })
    .await;
    let bed = Bed::start(&[&host]).await;
    private.set(bed.scene.path("shop.git")).unwrap();
    let (url, token) = (host.url("shop.git"), Key::issuer().sign(&bed.claims));
    let (user, password) = PASSWORD.split_once(':').unwrap();
    let mut secret = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git"},
        "stringData": {"username": user, "password": password}});
    secret.set_at(&["metadata", "annotations", "tidegate.dev/hosts"], host.address.to_string());
    bed.scene.create("", "v1", "secrets", secret).await;
    let plan = bed.access(&origin(&bed.issuer));
    bed.source("victim", &url, json!({"suspend": true, "secretRef": {"name": "git"}, "plan": plan})).await;
    let (code, text) = bed.ask("default/victim", &token).await;
    assert_eq!(code, 200, "{text}");
    assert!(text.contains("web:2"), "{text}");

    // The attacker knows the hash of the commit, and its own issuer signs whatever it wants.
    let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attacker"}});
    let create = |group: &str, version: &str, plural: &str| Resource::new(group, version, plural);
    let place = Place::new("", "attacker");
    bed.scene.api.apply(&create("", "v1", "namespaces"), &place, &namespace, Force::Taken, Run::Wet).await.unwrap();
    let spec = json!({"url": url, "path": "deploy", "serviceAccountName": "deployer", "interval": "1s", "suspend": true,
        "plan": plan});
    let body = value!({"apiVersion": "tidegate.dev/v1alpha1", "kind": "GitSource", "metadata": {"name": "web"},
        "spec": Value::from(spec)});
    bed.scene.api.create(&create("tidegate.dev", "v1alpha1", "gitsources"), "attacker", &body).await.unwrap();
    let (code, text) = bed.ask("attacker/web", &token).await;
    assert_eq!(code, 422, "{text}");
    assert!(text.contains("credentials") && !text.contains("web:"), "{text}");
    // The one who may, still may.
    let (code, text) = bed.ask("default/victim", &token).await;
    assert_eq!(code, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_shows_a_wrong_token_learns_nothing() {
    // Issuers that a tenant may name: one that sends elsewhere, one that talks without end, one that never answers.
    let elsewhere = Arc::new(OnceLock::new());
    let target = elsewhere.clone();
    let redirecting = Server::start(move |parts, _| {
        let target: &String = target.get().unwrap();
        reply(302, &[("location", &format!("{target}{}", parts.uri.path()))], "")
    })
    .await;
    let endless = Server::start(|_, _| reply(200, &[], vec![b' '; 4 << 20])).await;
    let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}", listening.local_addr().unwrap());
    let bed = Bed::start(&[&redirecting, &endless]).await;
    elsewhere.set(origin(&bed.issuer)).unwrap();
    let (good, other) = (Key::issuer(), Key::other());
    let git = bed._git.url("shop.git");
    let quiet = |plan: Json| json!({"suspend": true, "plan": plan});
    bed.source("closed", &git, json!({"suspend": true})).await;
    let named = [("redirecting", origin(&redirecting)), ("endless", origin(&endless)), ("silent", silent)];
    for (name, issuer) in &named {
        bed.source(name, &git, quiet(bed.access(issuer))).await;
    }
    let now = jiff::Timestamp::now().as_second();
    let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, good.set().as_bytes());
    let claims = &bed.claims;
    let shared = unsigned("HS256", claims);
    let shared = format!("{shared}.{}", encode(hmac::sign(&hmac_key, shared.as_bytes())));
    let mut asked = vec![
        ("default/web", good.sign(&bed.with("iss", "https://issuer.example")), "it is of another issuer"),
        ("default/web", good.sign(&bed.with("aud", "https://other.example")), "it is for another audience"),
        ("default/web", good.sign(&bed.with("repository", "shop/other")), "it is of another repository"),
        ("default/web", good.sign(&bed.with("ref", "refs/heads/next")), "it is of a ref that is not allowed"),
        ("default/web", good.sign(&bed.with("exp", now - 60)), "it is expired or not valid yet"),
        ("default/web", good.sign(&bed.with("nbf", now + 600)), "it is expired or not valid yet"),
        ("default/web", good.sign(&bed.with("sha", "main")), "it names no commit"),
        ("default/web", other.sign(claims), "its signature is wrong"),
        ("default/web", format!("{}.", unsigned("none", claims)), "its algorithm is neither RS256 nor ES256"),
        ("default/web", shared, "its algorithm is neither RS256 nor ES256"),
        ("default/web", "nonsense".to_owned(), "it is no signed token"),
        ("default/closed", good.sign(claims), "the GitSource has no `plan`"),
        ("default/nothing", good.sign(claims), "not found"),
        ("other/web", good.sign(claims), "not found"),
    ];
    for ((name, issuer), reason) in named.iter().zip(["answers 302", "bytes allowed", "took longer than 5 s"]) {
        let source: &'static str = match *name {
            "redirecting" => "default/redirecting",
            "endless" => "default/endless",
            _ => "default/silent",
        };
        asked.push((source, good.sign(&bed.with("iss", issuer.as_str())), reason));
    }
    let keys_asked = bed.issuer.asked().len();
    let began = Instant::now();
    let timed = async |source: &str, token: &str| {
        let answer = bed.ask(source, token).await;
        (answer, began.elapsed())
    };
    let answers = join_all(asked.iter().map(|(source, token, _)| timed(source, token)));
    // An issuer that never answers holds up nobody else.
    let mine = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let answer = bed.ask("default/web", &good.sign(claims)).await;
        (answer, began.elapsed())
    };
    let (answers, ((code, plan), took)) = tokio::join!(answers, mine);
    assert_eq!(code, 200, "{plan}");
    // However slow the machine is, the silent one is slower: it is given up after five seconds.
    let silent = answers.iter().map(|(_, took)| *took).max().unwrap();
    assert!(took < silent, "{took:?}, {silent:?}");
    let answers: Vec<(u16, String)> = answers.into_iter().map(|(answer, _)| answer).collect();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let log = bed.scene.log();
    for ((source, token, reason), (code, text)) in asked.iter().zip(&answers) {
        assert_eq!(*code, 401, "{source} {reason}: {text}");
        assert_eq!(text, &answers[0].1, "{source} {reason}");
        let said = |line: &&str| {
            line.contains("plan refused") && line.contains(&format!("source={source}")) && line.contains(reason)
        };
        assert!(log.lines().any(|line| said(&line)), "{source} {reason} is not in\n{}", refusals(&log));
        let signature = token.rsplit('.').next().unwrap();
        assert!(signature.len() < 20 || !log.contains(signature), "a token is in the log");
    }
    assert_eq!(log.lines().filter(|line| line.contains("plan refused")).count(), asked.len());
    // Of the issuer that is named only discovery and keys were asked, by the source that names it, and once.
    let asked = bed.issuer.asked();
    let paths: Vec<&str> = asked[keys_asked..].iter().map(|(_, path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/.well-known/openid-configuration", "/keys"]);
    drop(listening);
}

fn refusals(log: &str) -> String {
    log.lines().filter(|line| line.contains("plan refused")).collect::<Vec<_>>().join("\n")
}

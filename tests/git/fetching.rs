//! Fetching over https: what arrives, what is trusted, and what it may cost.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use tidegate::{
    io::{
        git::{Access, Error, FetchLimits, Fetched, Network, Reached, ReadLimits, Relation, Retry, Store, fetch},
        http::{Http, Limits, Proxy},
    },
    model::{git_source::Reference, remote::Remote},
};

use super::{
    repository::{Made, listing},
    server::{ADVERTISEMENT, RESULT, Server, git, reply, speak},
};

/// A secret that must not be seen anywhere.
pub const CANARY: &str = "canary-7f3a9c";

/// Somebody who fetches.
pub struct Reader {
    cache: tempfile::TempDir,
    pub remote: Remote,
    store: Store,
    access: Access,
    network: Network,
    pub limits: FetchLimits,
}

impl Reader {
    pub fn new(url: &str, keys: &[(&str, &str)]) -> Reader {
        let remote = Remote::parse(url).unwrap();
        let data: BTreeMap<String, Vec<u8>> =
            keys.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        let access = Access::from_secret(&remote, &data).unwrap();
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path(), &remote).unwrap();
        let network = Network::new(Http::new(None, Limits::default()).unwrap(), None);
        Reader { cache, remote, store, access, network, limits: FetchLimits::default() }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn access(&self) -> &Access {
        &self.access
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The same, on another way.
    pub fn through(self, proxy: Option<Proxy>, limits: Limits) -> Reader {
        let network = Network::new(Http::new(proxy.clone(), limits).unwrap(), proxy);
        Reader { network, ..self }
    }

    pub fn of(server: &Server) -> Reader {
        Reader::new(&server.url("team/web.git"), &[("ca.crt", &server.authority), ("bearerToken", CANARY)])
    }

    pub async fn follow(&self, reference: &Reference, known: Option<&str>) -> Result<Fetched, Error> {
        let result =
            fetch(&self.store, &self.remote, reference, known, &self.access, &self.network, &self.limits).await;
        if let Err(error) = &result {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(CANARY), "a secret shows: {shown}");
        }
        result
    }

    pub async fn main(&self) -> Result<Fetched, Error> {
        self.follow(&Reference::Branch("main".into()), None).await
    }

    fn text(&self, commit: &str, path: &str) -> String {
        let files = self.store.files(commit, "", &[], &ReadLimits::default()).unwrap().files;
        let file = files.into_iter().find(|file| file.path == path).unwrap();
        String::from_utf8(file.bytes.unwrap()).unwrap()
    }

    fn packs(&self) -> usize {
        let files = listing(self.cache.path());
        files.iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "pack")).count()
    }
}

#[track_caller]
fn refused(result: Result<Fetched, Error>, retry: Retry, words: &[&str]) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert_eq!(error.retry(), retry, "{text}");
}

#[tokio::test]
async fn a_branch_is_fetched_and_followed() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    let first = reader.follow(&Reference::Default, None).await.unwrap();
    assert_eq!((first.commit.as_str(), first.reached), (one.to_string().as_str(), Reached::Branch("main".into())));
    assert_eq!(first.relation, None);
    assert_eq!(reader.text(&first.commit, "a.yaml"), "1");
    // Nothing new: asked what there is, and nothing more.
    let before = server.asked().len();
    assert_eq!(reader.main().await.unwrap().commit, first.commit);
    let asked: Vec<String> =
        server.asked()[before..].iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    assert_eq!(asked, ["GET /team/web.git/info/refs?service=git-upload-pack", "POST /team/web.git/git-upload-pack"]);
    let two = made.push("main", &[("a.yaml", "2")], "two");
    let second = reader.follow(&Reference::Branch("main".into()), Some(&first.commit)).await.unwrap();
    assert_eq!((second.commit.as_str(), second.relation), (two.to_string().as_str(), Some(Relation::Ahead)));
    assert_eq!(reader.text(&second.commit, "a.yaml"), "2");
    let shown = format!("Bearer {CANARY}");
    assert!(server.asked().iter().all(|(_, _, authorization)| authorization.as_deref() == Some(&shown)));
}

/// S59: a history that was rewritten, or moved back, is told from one that goes on.
#[tokio::test]
async fn a_rewritten_branch_is_noticed() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let two = made.push("main", &[("a.yaml", "2")], "two");
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    reader.main().await.unwrap();
    let other = made.commit(made.files(&[("a.yaml", "3")]), &[one], "amended");
    made.point("refs/heads/main", other);
    let main = Reference::Branch("main".into());
    let amended = reader.follow(&main, Some(&two.to_string())).await.unwrap();
    assert_eq!((amended.relation, amended.rewritten()), (Some(Relation::Diverged), true));
    assert_eq!(reader.text(&amended.commit, "a.yaml"), "3");
    made.point("refs/heads/main", one);
    let back = reader.follow(&main, Some(&two.to_string())).await.unwrap();
    assert_eq!((back.relation, back.rewritten()), (Some(Relation::Behind), true));
    // An unrelated history.
    made.point("refs/heads/main", made.commit(made.files(&[("a.yaml", "4")]), &[], "anew"));
    let anew = reader.follow(&main, Some(&two.to_string())).await.unwrap();
    assert_eq!(anew.relation, Some(Relation::Diverged));
}

#[tokio::test]
async fn tags_versions_and_commits_are_followed() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let two = made.push("main", &[("a.yaml", "2")], "two");
    made.point("refs/tags/v1.0.0", one);
    let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
    let object = made.repository.find_object(two, None).unwrap();
    let annotated = made.repository.tag("v1.4.0", &object, &who, "release", true).unwrap();
    for version in [Some("version=2"), None] {
        let path = made.path();
        let server = Server::start(move |parts, body| speak(&path, parts.uri.path(), version, body)).await;
        let reader = Reader::of(&server);
        let tag = reader.follow(&Reference::Tag("v1.0.0".into()), None).await.unwrap();
        assert_eq!((tag.commit, tag.tag.unwrap().object), (one.to_string(), None));
        let newest = reader.follow(&Reference::Semver(">=1.0 <2".into()), Some(&one.to_string())).await.unwrap();
        assert_eq!((newest.commit, newest.relation), (two.to_string(), Some(Relation::Ahead)));
        assert_eq!(newest.tag.unwrap().object, Some(annotated.to_string()));
        let fresh = Reader::of(&server);
        let exact = fresh.follow(&Reference::Commit(two.to_string()), None).await.unwrap();
        assert_eq!((exact.commit, exact.reached), (two.to_string(), Reached::Hash));
        let none = reader.follow(&Reference::Branch("none".into()), None).await;
        refused(none, Retry::Later, &["has no branch none"]);
        let none = reader.follow(&Reference::Semver(">9".into()), None).await;
        refused(none, Retry::Later, &["has no tag in the range >9"]);
    }
}

/// Only so much history is fetched, and what lies behind it is unknown, not wrong.
#[tokio::test]
async fn history_is_shallow() {
    let made = Made::new();
    let commits: Vec<git2::Oid> =
        (0..20).map(|number| made.push("main", &[("a.yaml", &number.to_string())], "next")).collect();
    for version in [Some("version=2"), None] {
        let path = made.path();
        let server = Server::start(move |parts, body| speak(&path, parts.uri.path(), version, body)).await;
        let mut reader = Reader::of(&server);
        reader.limits.depth = 5;
        let tip = reader.main().await.unwrap().commit;
        let here = commits.iter().filter(|id| reader.store.has(&id.to_string())).count();
        assert_eq!(here, 5);
        assert_eq!(reader.store.relation(&tip, &commits[16].to_string()), Relation::Ahead);
        assert_eq!(reader.store.relation(&tip, &commits[3].to_string()), Relation::Unknown);
        let blamed = reader.store.changed_by(&tip, &["a.yaml".into()]).unwrap();
        assert_eq!(blamed["a.yaml"], tip);
    }
}

/// Many fetches make many packs, which become one; nothing that is needed is lost.
#[tokio::test]
async fn packs_stay_few() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "0")], "zero");
    let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
    let server = Server::git(&made.path()).await;
    let mut reader = Reader::of(&server);
    reader.limits.packs = 3;
    reader.limits.depth = 4;
    let (mut known, mut most) = (None, 0);
    for number in 1..12 {
        let id = made.push("main", &[("a.yaml", &format!("{number}"))], "next");
        let object = made.repository.find_object(id, None).unwrap();
        made.repository.tag(&format!("v{number}.0.0"), &object, &who, "release", true).unwrap();
        let fetched = reader.follow(&Reference::Branch("main".into()), known.as_deref()).await.unwrap();
        assert_eq!(fetched.relation, known.as_ref().map(|_| Relation::Ahead), "{number}");
        assert_eq!(reader.text(&fetched.commit, "a.yaml"), number.to_string());
        let tagged = reader.follow(&Reference::Semver("*".into()), None).await.unwrap();
        assert_eq!(tagged.commit, fetched.commit);
        known = Some(fetched.commit);
        most = most.max(reader.packs());
    }
    assert!(most <= 4, "{most} packs");
    // A store that is opened again is the same.
    let (remote, known) = (reader.remote.clone(), known.unwrap());
    let Reader { cache, store, .. } = reader;
    assert!(Store::open(cache.path(), &remote).is_err(), "it is in use");
    drop(store);
    assert!(Store::open(cache.path(), &remote).unwrap().has(&known));
}

/// A store that cannot be opened is created again; one whose swap was cut short is found again.
#[tokio::test]
async fn a_broken_store_is_replaced() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "0")], "zero");
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    let commit = reader.main().await.unwrap().commit;
    let Reader { cache, store, remote, .. } = reader;
    let folder = store.folder().to_owned();
    drop(store);
    std::fs::rename(&folder, folder.with_extension("old")).unwrap();
    let store = Store::open(cache.path(), &remote).unwrap();
    assert!(store.has(&commit), "the old one was put back");
    drop(store);
    std::fs::write(folder.join("HEAD"), "nonsense").unwrap();
    std::fs::remove_dir_all(folder.join("refs")).unwrap();
    let store = Store::open(cache.path(), &remote).unwrap();
    assert!(!store.has(&commit), "a new one was made");
}

/// SR1: nothing is written but the store's own files, under names of our own.
#[tokio::test]
async fn nothing_is_written_under_a_name_from_the_repository() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "0"), (".gitmodules", "x"), (".gitattributes", "* filter=x")], "zero");
    let id = made.push("evil/x", &[("a.yaml", "0")], "zero");
    made.point("refs/tags/CON", id);
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    reader.follow(&Reference::Branch("evil/x".into()), None).await.unwrap();
    reader.main().await.unwrap();
    reader.follow(&Reference::Tag("CON".into()), None).await.unwrap();
    let odd: Vec<PathBuf> = listing(reader.cache.path()).into_iter().map(|(path, _)| path).collect();
    let odd: Vec<&PathBuf> = odd
        .iter()
        .filter(|path| ["evil", "CON", "a.yaml", "gitmodules"].iter().any(|name| path.to_string_lossy().contains(name)))
        .collect();
    assert_eq!(odd, [] as [&PathBuf; 0]);
}

/// SR5: a certificate of an unknown authority ends it, before anything is said.
#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "0")], "zero");
    let (server, other) = (Server::git(&made.path()).await, Server::git(&made.path()).await);
    let url = server.url("team/web.git");
    let wrong = Reader::new(&url, &[("ca.crt", &other.authority), ("bearerToken", CANARY)]);
    refused(wrong.main().await, Retry::Later, &["is not trusted", "127.0.0.1", "ca.crt"]);
    let without = Reader::new(&url, &[("bearerToken", CANARY)]);
    refused(without.main().await, Retry::Later, &["is not trusted", "ca.crt"]);
    assert_eq!(server.asked(), [], "nothing was said");
}

/// SR4: a redirect to another host is not followed, and that host hears nothing.
#[tokio::test]
async fn a_redirect_to_another_host_is_refused() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "0")], "zero");
    let thief = Server::git(&made.path()).await;
    let to = format!("{}?token=x", thief.url("team/web.git/info/refs"));
    let server = Server::start(move |_, _| reply(302, &[("location", &to)], "")).await;
    let reader = Reader::new(
        &server.url("team/web.git"),
        &[("ca.crt", &format!("{}{}", server.authority, thief.authority)), ("bearerToken", CANARY)],
    );
    refused(reader.main().await, Retry::Later, &["redirects to", &thief.address.to_string(), "not followed"]);
    assert_eq!(thief.asked(), []);
}

/// A redirect within the host is where some hosts put the `.git`.
#[tokio::test]
async fn a_redirect_within_the_host_is_followed_once() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "0")], "zero");
    let path = made.path();
    let server = Server::start(move |parts, body| match parts.uri.path().strip_prefix("/team/web/") {
        Some(rest) => reply(301, &[("location", &format!("/team/web.git/{rest}?service=git-upload-pack"))], ""),
        None => git(&path, parts, body),
    })
    .await;
    let keys = [("ca.crt", server.authority.as_str()), ("bearerToken", CANARY)];
    let reader = Reader::new(&server.url("team/web"), &keys);
    assert_eq!(reader.main().await.unwrap().commit, one.to_string());
    let round = Server::start(|_, _| reply(301, &[("location", "/team/web.git/info/refs")], "")).await;
    refused(Reader::of(&round).main().await, Retry::Later, &["redirects to"]);
    assert_eq!(round.asked().len(), 2);
}

/// What a host says instead of a repository becomes a message.
#[tokio::test]
async fn refusals_are_told_apart() {
    let check = async |code: u16, body: &'static str, retry: Retry, words: &[&str]| {
        let server = Server::start(move |_, _| reply(code, &[("content-type", "text/html")], body)).await;
        refused(Reader::of(&server).main().await, retry, words);
    };
    check(401, "", Retry::Later, &["refuses access", "401"]).await;
    check(403, "", Retry::Later, &["refuses access", "403"]).await;
    check(404, "", Retry::Later, &["has no repository team/web.git", "404"]).await;
    check(429, "", Retry::Soon, &["cannot be reached", "429"]).await;
    check(502, "", Retry::Soon, &["cannot be reached", "502"]).await;
    check(200, "<html>", Retry::Later, &["a page instead of a repository"]).await;
    let gone = Reader::new("https://127.0.0.1:1/a/b", &[("bearerToken", CANARY)]);
    refused(gone.main().await, Retry::Soon, &["cannot be reached"]);
}

/// SR6: a host that sends too much, too long or nonsense.
#[tokio::test]
async fn a_hostile_host_has_a_budget() {
    let made = Made::new();
    let noise: String = (0..40_000_u32).map(|number| format!("{:08x}", number.wrapping_mul(2_654_435_761))).collect();
    made.push("main", &[("a.yaml", &noise), ("b.yaml", "x")], "one");
    let server = Server::git(&made.path()).await;
    let check = async |limits: FetchLimits, retry: Retry, words: &[&str]| {
        let mut reader = Reader::of(&server);
        reader.limits = limits;
        refused(reader.main().await, retry, words);
        assert_eq!(reader.packs(), 0, "nothing of it stays");
    };
    let all = FetchLimits::default;
    check(FetchLimits { pack_bytes: 1000, ..all() }, Retry::Later, &["the size of what", "is more than"]).await;
    check(FetchLimits { objects: 3, ..all() }, Retry::Later, &["the number of objects of a pack", "3"]).await;
    check(FetchLimits { object_bytes: 1000, ..all() }, Retry::Later, &["the size of an object of a pack"]).await;
    check(FetchLimits { unpacked_bytes: 1000, ..all() }, Retry::Later, &["the unpacked size of a pack"]).await;
    check(FetchLimits { references: 0, ..all() }, Retry::Later, &["is more than the 0 allowed"]).await;
    let silent = FetchLimits { time: Duration::ZERO, ..all() };
    check(silent, Retry::Soon, &["took longer than 0 s"]).await;
}

fn packet(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

/// SR6: what a host lists is bounded in bytes, in both versions of the protocol, and what was not asked for is not kept.
#[tokio::test]
async fn sr6_what_a_host_lists_is_bounded_in_bytes() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let many: String =
        (0..2000).map(|number| packet(&format!("{one} refs/tags/v{number}-{}\n", "x".repeat(900)))).collect();
    for version in [2, 0] {
        let (path, many) = (made.path(), many.clone());
        let server = Server::start(move |parts, asked| {
            let is_greeting = parts.uri.path().ends_with("/info/refs");
            let is_listing = asked.windows(15).any(|window| window == b"command=ls-refs");
            match version {
                2 if is_listing => reply(200, &[("content-type", RESULT)], format!("{many}0000")),
                0 if is_greeting => {
                    let first = packet(&format!("{one} HEAD\0side-band-64k shallow\n"));
                    let text = format!("001e# service=git-upload-pack\n0000{first}{many}0000");
                    reply(200, &[("content-type", ADVERTISEMENT)], text)
                }
                _ => git(&path, parts, asked),
            }
        })
        .await;
        let mut reader = Reader::of(&server);
        reader.limits = FetchLimits { listing_bytes: 1 << 20, ..FetchLimits::default() };
        let words = match version {
            2 => ["the size of the list of references", "is more than the 1 MiB allowed"],
            _ => ["more than 1048576 bytes of references", ""],
        };
        refused(reader.main().await, Retry::Later, &words);
        // Within the limit they are no harm, although nobody asked for them.
        reader.limits = FetchLimits::default();
        drop(reader.main().await);
    }
}

/// SR6: the list of ends of a shallow history costs as much as it is long, and is short.
#[tokio::test]
async fn sr6_the_ends_of_a_shallow_history_are_few() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "1")], "one");
    let path = made.path();
    let ends: String = (0..100_000_u32).map(|number| packet(&format!("shallow {number:040x}\n"))).collect();
    let server = Server::start(move |parts, asked| {
        let fetching = asked.windows(13).any(|window| window == b"command=fetch");
        let text = || format!("{}{ends}0001", packet("shallow-info\n"));
        if fetching { reply(200, &[("content-type", RESULT)], text()) } else { git(&path, parts, asked) }
    })
    .await;
    let began = std::time::Instant::now();
    let words = ["the number of ends of a shallow history", "1000"];
    refused(Reader::of(&server).main().await, Retry::Later, &words);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn nonsense_is_not_unpacked() {
    let made = Made::new();
    made.push("main", &[("a.yaml", "1")], "one");
    let check = async |body: &'static [u8], words: &str| {
        let path = made.path();
        let server = Server::start(move |parts, asked| {
            let fetching = asked.windows(13).any(|window| window == b"command=fetch");
            if fetching { reply(200, &[("content-type", RESULT)], body) } else { git(&path, parts, asked) }
        })
        .await;
        let reader = Reader::of(&server);
        refused(reader.main().await, Retry::Later, &[words]);
        assert_eq!(reader.packs(), 0);
    };
    check(b"", "ends too soon").await;
    check(b"zzzz", "no length of a packet").await;
    check(b"000dpackfile\n0009\x01PACK0000", "a pack that ends too soon").await;
    check(b"000dpackfile\n000d\x03go away\n0000", "it says: go away").await;
    // An empty pack, whole but without the commit that was asked for, and one with a wrong sum.
    let sum = b"000dpackfile\n0025\x01PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e0000";
    check(sum, "a pack without the commit that was asked for").await;
    let wrong = b"000dpackfile\n0025\x01PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1f0000";
    check(wrong, "a pack that cannot be unpacked").await;
    let odd = Server::start(|_, _| reply(200, &[("content-type", ADVERTISEMENT)], "0011 not git at all")).await;
    refused(Reader::of(&odd).main().await, Retry::Later, &["something unexpected"]);
}

/// One repository, one store, one fetch: whoever comes second finds what the first brought.
#[tokio::test]
async fn sources_of_one_repository_share_a_fetch() {
    let made = Made::new();
    let one = made.push("main", &[("a.yaml", "1")], "one");
    let server = Server::git(&made.path()).await;
    let reader = Reader::of(&server);
    let (first, second, third) = tokio::join!(reader.main(), reader.main(), reader.main());
    for fetched in [first, second, third] {
        assert_eq!(fetched.unwrap().commit, one.to_string());
    }
    assert_eq!(reader.packs(), 1);
}

//! Who we are at AWS, and how a request shows it: credentials, roles, and the fourth version of its signatures.
//!
//! Never sends anything. Credentials come from the environment, from a web identity (as on EKS) or from the container's
//! own host; profiles in files, and the machine's metadata, are not asked.

use std::time::Duration;

use jiff::Timestamp;
use ring::{digest, hmac};

use super::{Answers, Ask, Request, Response, Talk, query};
use crate::model::secret::Secret;

/// How long those who give out credentials may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// What we call ourselves where a name is wanted and none is given.
const SESSION: &str = "tidegate";

/// What the environment says about AWS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The region.
    pub region: Option<String>,
    /// Hosts outside AWS's own domains (`host` or `host:port`) that requests may be signed for.
    pub hosts: Vec<String>,
    keys: Option<Credentials>,
    web: Option<WebIdentity>,
    container: Option<Container>,
    cloudwatch: Option<String>,
    sts: Option<String>,
}

/// Credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    id: String,
    secret: Secret,
    session: Option<Secret>,
}

/// A role that is taken on by the token in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebIdentity {
    role: String,
    file: String,
    session: Option<String>,
}

/// A host beside the container that gives out credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Container {
    url: String,
    token: Option<Secret>,
    file: Option<String>,
}

impl Settings {
    /// What variables say, by the names that AWS gave them.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Settings {
        let keys = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY")).map(|(id, secret)| {
            let session = variable("AWS_SESSION_TOKEN").map(Secret::new);
            Credentials { id, secret: Secret::new(secret), session }
        });
        let web = variable("AWS_ROLE_ARN")
            .zip(variable("AWS_WEB_IDENTITY_TOKEN_FILE"))
            .map(|(role, file)| WebIdentity { role, file, session: variable("AWS_ROLE_SESSION_NAME") });
        let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let url = relative.map(|path| format!("http://169.254.170.2{path}"));
        let container = url.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")).map(|url| Container {
            url,
            token: variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Secret::new),
            file: variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        });
        let endpoint = |name: &str| variable(name).or_else(|| variable("AWS_ENDPOINT_URL"));
        Settings {
            hosts: Vec::new(),
            region: variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")),
            keys,
            web,
            container,
            cloudwatch: endpoint("AWS_ENDPOINT_URL_CLOUDWATCH"),
            sts: endpoint("AWS_ENDPOINT_URL_STS"),
        }
    }

    /// What must not be told.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let keys = self.keys.iter().flat_map(|keys| [Some(&keys.secret), keys.session.as_ref()]).flatten();
        keys.chain(self.container.iter().filter_map(|container| container.token.as_ref()))
    }

    /// Where CloudWatch is.
    pub(super) fn cloudwatch(&self, region: &Region) -> String {
        self.cloudwatch.clone().unwrap_or_else(|| endpoint("monitoring", region))
    }

    fn sts(&self, region: &Region) -> String {
        self.sts.clone().unwrap_or_else(|| endpoint("sts", region))
    }

    /// Whether a request to this URL may be signed: AWS serves this service of this region there, or the operator lists
    /// the host. The error says what to do.
    pub(super) fn check_signing(&self, url: &str, service: &str, region: &Region) -> Result<(), String> {
        let uri: http::Uri = url.parse().map_err(|_| "the address is not a URL".to_owned())?;
        let authority = uri.authority().map_or("", http::uri::Authority::as_str).to_ascii_lowercase();
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        if self.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(&authority) || listed.eq_ignore_ascii_case(&host))
            && !authority.contains('@')
        {
            return Ok(());
        }
        if uri.scheme_str() == Some("https") && authority == host && region.serves(service, &host) {
            return Ok(());
        }
        let (Region(region), domain) = (region, region.domain());
        Err(format!(
            "requests are signed for AWS only at https://{service}.{region}.{domain} and its VPC endpoints, and {host} is \
             neither: correct the address, or have the operator start Tidegate with `--aws-host {host}`"
        ))
    }
}

/// The name of a region, such as `eu-west-1`: by its grammar it can be one label of a host name and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region(String);

/// The partitions of AWS: how the names of their regions begin, and the domain of their services.
const PARTITIONS: [(&str, &str); 6] = [
    ("cn-", "amazonaws.com.cn"),
    ("eusc-", "amazonaws.eu"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
];

impl Region {
    /// Reads a region: letters, then more words of letters, then a number.
    pub(super) fn parse(text: &str) -> Result<Region, String> {
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            format!("{shown:?} is not a region of AWS: write one such as us-east-1")
        };
        let words: Vec<&str> = text.split('-').collect();
        let [area, places @ .., number] = words.as_slice() else { return Err(wrong()) };
        let is_word =
            |word: &&str| (1..=16).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_number = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_region = (2..=4).contains(&area.len()) && is_word(area) && (1..=3).contains(&places.len());
        if !(is_region && is_number && places.iter().all(is_word)) {
            return Err(wrong());
        }
        Ok(Region(text.to_owned()))
    }

    /// The domain of the services in this region.
    fn domain(&self) -> &'static str {
        let partition = PARTITIONS.iter().find(|(start, _)| self.0.starts_with(start));
        partition.map_or("amazonaws.com", |(_, domain)| domain)
    }

    /// Whether AWS serves a service of this region at a host. Not every host of that domain is AWS's own: machines,
    /// load balancers and buckets of its customers have names there, too.
    fn serves(&self, service: &str, host: &str) -> bool {
        let (Region(region), domain) = (self, self.domain());
        let dual_stack = if domain.ends_with(".cn") { "api.amazonwebservices.com.cn" } else { "api.aws" };
        let names = [service.to_owned(), format!("{service}-fips")];
        let is_label =
            |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        names.iter().any(|name| {
            let vpc = format!(".{name}.{region}.vpce.{domain}");
            host == format!("{name}.{region}.{domain}")
                || host == format!("{name}.{region}.{dual_stack}")
                || host.strip_suffix(&vpc).is_some_and(|endpoint| endpoint.starts_with("vpce-") && is_label(endpoint))
        })
    }
}

fn endpoint(service: &str, region: &Region) -> String {
    let (Region(region), domain) = (region, region.domain());
    format!("https://{service}.{region}.{domain}")
}

impl Credentials {
    /// A text without what is secret.
    pub(super) fn hide(&self, text: String) -> String {
        let secrets = [Some(&self.secret), self.session.as_ref()];
        let hide = |text: String, secret: &Secret| text.replace(secret.expose(), crate::analysis::HIDDEN);
        secrets.into_iter().flatten().filter(|secret| !secret.is_empty()).fold(text, hide)
    }
}

/// Credentials, and the answers that were heard beside those that led to them; or what to do to have them. `role` is
/// taken on with what is found.
pub(super) fn credentials<'t>(
    talk: &Talk<'t>,
    role: Option<&str>,
    region: &Region,
) -> Result<(Credentials, &'t Answers), Ask> {
    let (own, answers) = own(talk, region)?;
    let Some(role) = role.filter(|role| !role.is_empty()) else { return Ok((own, answers)) };
    let pairs = [("Action", "AssumeRole"), ("Version", "2011-06-15"), ("RoleArn", role), ("RoleSessionName", SESSION)];
    let ask = || {
        let mut request = form(&talk.settings.aws.sts(region), &query(pairs));
        sign(&mut request, &own, region, "sts", talk.now);
        request
    };
    let (answer, answers) = answered(talk, answers, ask)?;
    Ok((given_out(talk, answer)?, answers))
}

fn own<'t>(talk: &Talk<'t>, region: &Region) -> Result<(Credentials, &'t Answers), Ask> {
    let (settings, answers) = (&talk.settings.aws, talk.heard.answers.as_slice());
    if let Some(keys) = &settings.keys {
        return Ok((keys.clone(), answers));
    }
    if let Some(web) = &settings.web {
        let token = token(talk, &web.file)?;
        let pairs = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", web.role.as_str()),
            ("RoleSessionName", web.session.as_deref().unwrap_or(SESSION)),
            ("WebIdentityToken", token.expose().trim()),
        ];
        let (answer, answers) = answered(talk, answers, || form(&settings.sts(region), &query(pairs)))?;
        return Ok((given_out(talk, answer)?, answers));
    }
    if let Some(container) = &settings.container {
        let token = match (&container.file, &container.token) {
            (Some(file), _) => Some(token(talk, file)?),
            (None, token) => token.as_ref(),
        };
        let request = Request::get(container.url.clone(), TIMEOUT);
        let request = token.iter().fold(request, |request, token| request.with("Authorization", token.expose().trim()));
        let (answer, answers) = answered(talk, answers, || request)?;
        return Ok((handed_out(talk, answer)?, answers));
    }
    let ways = "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, or \
                AWS_CONTAINER_CREDENTIALS_FULL_URI";
    Err(talk.failed(format!("there are no credentials for AWS: the environment has none of {ways}")))
}

/// The token in a file; or what to do to have it.
fn token<'t>(talk: &Talk<'t>, file: &str) -> Result<&'t Secret, Ask> {
    match &talk.heard.token {
        Some(Ok(token)) => Ok(token),
        Some(Err(problem)) => Err(talk.failed(problem.clone())),
        None => Err(Ask::ReadToken(file.to_owned())),
    }
}

/// The next of the answers, and those after it; or the request to send for it.
fn answered<'t>(
    talk: &Talk<'_>,
    answers: &'t Answers,
    request: impl FnOnce() -> Request,
) -> Result<(&'t Response, &'t Answers), Ask> {
    match answers {
        [] => Err(Ask::Send(Box::new(request()))),
        [Err(problem), ..] => Err(talk.failed(problem.clone())),
        [Ok(answer), rest @ ..] => Ok((answer, rest)),
    }
}

fn form(address: &str, pairs: &str) -> Request {
    let url = format!("{}/", address.trim_end_matches('/'));
    Request::post(url, "application/x-www-form-urlencoded; charset=utf-8", pairs, TIMEOUT)
}

/// The credentials that AWS gave out for a role, in XML.
fn given_out(talk: &Talk<'_>, answer: &Response) -> Result<Credentials, Ask> {
    let text = answer.text();
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    let found = || {
        let (id, secret) = (element("AccessKeyId")?, element("SecretAccessKey")?);
        let session = element("SessionToken").map(Secret::new);
        Some(Credentials { id, secret: Secret::new(secret), session })
    };
    found().ok_or_else(|| {
        // What is said is about the role; the token that was sent is not part of it.
        let said = element("Code").zip(element("Message")).map(|(code, message)| format!(": {code}: {message}"));
        talk.failed(format!("AWS gives out no credentials for the role ({}){}", answer.code, said.unwrap_or_default()))
    })
}

/// The credentials that the host beside the container handed out, in JSON.
fn handed_out(talk: &Talk<'_>, answer: &Response) -> Result<Credentials, Ask> {
    let body = answer.json().unwrap_or_default();
    let text = |key: &str| body.str_at(&[key]).map(str::to_owned);
    let session = text("Token").map(Secret::new);
    let found = text("AccessKeyId").zip(text("SecretAccessKey"));
    let found = found.map(|(id, secret)| Credentials { id, secret: Secret::new(secret), session });
    found.ok_or_else(|| talk.failed(format!("the container's host gives out no credentials for AWS ({})", answer.code)))
}

/// Signs a request for a service in a region.
pub(super) fn sign(request: &mut Request, who: &Credentials, region: &Region, service: &str, now: Timestamp) {
    let moment = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    request.headers.push(("X-Amz-Date".to_owned(), moment.clone()));
    if let Some(session) = &who.session {
        request.headers.push(("X-Amz-Security-Token".to_owned(), session.expose().to_owned()));
    }
    let host = request.url.split('/').nth(2).unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let mut headers = vec![("host".to_owned(), host.to_owned())];
    // What may be added or changed on the way is not signed.
    let is_signed = |key: &str| key == "content-type" || key.starts_with("x-amz-") || key == "smithy-protocol";
    let given = request.headers.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.trim().to_owned()));
    headers.extend(given.filter(|(key, _)| is_signed(key)));
    headers.sort();
    let scope = Scope { moment: &moment, region: &region.0, service };
    let authorization = authorization(request, &headers, who, &scope);
    request.headers.push(("Authorization".to_owned(), authorization));
}

/// When and for whom a signature is good.
struct Scope<'s> {
    moment: &'s str,
    region: &'s str,
    service: &'s str,
}

/// The header that proves who sends a request; `headers` are sorted, their names in lower case.
fn authorization(request: &Request, headers: &[(String, String)], who: &Credentials, scope: &Scope<'_>) -> String {
    let names: Vec<&str> = headers.iter().map(|(key, _)| key.as_str()).collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(key, value)| format!("{key}:{value}\n")).collect();
    let (path, pairs) = target(&request.url);
    let body = hex(digest::digest(&digest::SHA256, &request.body).as_ref());
    let canonical = format!("{}\n{path}\n{pairs}\n{lines}\n{names}\n{body}", request.method);
    let Scope { moment, region, service } = scope;
    let day = moment.split('T').next().unwrap_or_default();
    let place = format!("{day}/{region}/{service}/aws4_request");
    let canonical = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let wanted = format!("AWS4-HMAC-SHA256\n{moment}\n{place}\n{canonical}");
    let key = format!("AWS4{}", who.secret.expose()).into_bytes();
    let key = [day, region, service, "aws4_request"].iter().fold(key, |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, wanted.as_bytes()));
    format!("AWS4-HMAC-SHA256 Credential={}/{place}, SignedHeaders={names}, Signature={signature}", who.id)
}

/// The path of an address, escaped once more, and its query in the order that AWS wants.
fn target(url: &str) -> (String, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (before, pairs) = rest.split_once('?').unwrap_or((rest, ""));
    let path = before.find('/').map_or("/", |at| &before[at..]);
    let mut pairs: Vec<(String, String)> = form_urlencoded::parse(pairs.as_bytes())
        .map(|(key, value)| (escaped(&key, false), escaped(&value, false)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    (escaped(path, true), pairs.join("&"))
}

fn escaped(text: &str, is_path: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b'/' if is_path => out.push('/'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::Work,
        api::{AnalysisRun, Metric},
        metric::Heard,
    };

    fn keys(id: &str, secret: &str) -> Credentials {
        Credentials { id: id.into(), secret: Secret::new(secret), session: None }
    }

    fn signature(authorization: &str) -> &str {
        authorization.rsplit_once("Signature=").unwrap().1
    }

    #[test]
    fn a_signature_is_that_of_the_documentation() {
        // The example of AWS's own description of the algorithm.
        let request = Request::get("https://iam.amazonaws.com/?Version=2010-05-08&Action=ListUsers".into(), TIMEOUT);
        let headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ];
        let headers = headers.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let who = keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let scope = Scope { moment: "20150830T123600Z", region: "us-east-1", service: "iam" };
        let made = authorization(&request, &headers, &who, &scope);
        assert_eq!(signature(&made), "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
    }

    #[test]
    fn a_signature_is_that_of_argo_rollouts() {
        // What Argo Rollouts 1.10.1 was seen to send to Amazon's Prometheus.
        let url = "http://127.0.0.1:39205/aps-workspaces/ws-7/api/v1/query";
        let body =
            "query=sum%28rate%28http_requests_total%7Bcode%3D~%225..%22%7D%5B5m%5D%29%29&time=1794798779.7615757";
        let kind = "application/x-www-form-urlencoded";
        let request = Request::post(url.into(), kind, body, TIMEOUT);
        let headers = [
            ("content-type", kind),
            ("host", "127.0.0.1:39205"),
            ("idempotency-key", ""),
            ("x-amz-date", "20261116T031259Z"),
        ];
        let headers = headers.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scope = Scope { moment: "20261116T031259Z", region: "us-west-2", service: "aps" };
        let made = authorization(&request, &headers, &keys("AKIAEXAMPLE", "example-secret"), &scope);
        let theirs = "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261116/us-west-2/aps/aws4_request, \
                      SignedHeaders=content-type;host;idempotency-key;x-amz-date, \
                      Signature=0c032ff3d7dd2574e6167692a34db062666b290e2fec648ca2786f27a0686de6";
        assert_eq!(made, theirs);
    }

    /// Leads a conversation with the answers that are given, and says how it went on.
    fn lead(variables: &[(&str, &str)], role: Option<&str>, heard: &Heard) -> String {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let settings = crate::metric::Settings::of("n", find);
        let (run, metric) = (AnalysisRun::default(), Metric::default());
        let now = Timestamp::UNIX_EPOCH;
        let talk = Talk { run: &run, metric: &metric, work: &Work::Start, settings: &settings, heard, now };
        match credentials(&talk, role, &Region::parse("eu-west-1").unwrap()) {
            Ok((found, rest)) => {
                let session = found.session.as_ref().map_or("-", |session| session.expose());
                format!("{} {} {session} {}", found.id, found.secret.expose(), rest.len())
            }
            Err(Ask::Send(request)) => {
                let signed = request.headers.iter().any(|(key, _)| key == "Authorization");
                format!("{} {} {signed}", request.url, String::from_utf8_lossy(&request.body))
            }
            Err(Ask::ReadToken(file)) => format!("reads {file}"),
            Err(Ask::Known(sample)) => sample.measurement.message,
            Err(other) => panic!("{other:?}"),
        }
    }

    const GIVEN_OUT: &str = "<R><Credentials><AccessKeyId>A1</AccessKeyId><SecretAccessKey>S1</SecretAccessKey>\
                             <SessionToken>T1</SessionToken></Credentials></R>";

    fn answer(code: u16, body: &str) -> Result<Response, String> {
        Ok(Response { code, body: body.as_bytes().to_vec() })
    }

    #[test]
    fn a_web_identity_becomes_credentials() {
        let variables = [("AWS_ROLE_ARN", "arn:r"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")];
        let mut heard = Heard::default();
        assert_eq!(lead(&variables, None, &heard), "reads /token");
        heard.token = Some(Ok(Secret::new("jwt\n")));
        let asks = lead(&variables, None, &heard);
        assert_eq!(
            asks,
            "https://sts.eu-west-1.amazonaws.com/ Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Ar&\
             RoleSessionName=tidegate&WebIdentityToken=jwt false"
        );
        heard.answers = vec![answer(200, GIVEN_OUT), answer(200, "rest")];
        assert_eq!(lead(&variables, None, &heard), "A1 S1 T1 1");
        let refusal = "<E><Error><Code>AccessDenied</Code><Message>no</Message></Error></E>";
        heard.answers = vec![answer(403, refusal)];
        let said = lead(&variables, None, &heard);
        assert_eq!(said, "AWS gives out no credentials for the role (403): AccessDenied: no");
    }

    #[test]
    fn a_role_is_taken_on_with_what_is_there() {
        let variables = [("AWS_ACCESS_KEY_ID", "A0"), ("AWS_SECRET_ACCESS_KEY", "S0")];
        let mut heard = Heard::default();
        assert_eq!(lead(&variables, None, &heard), "A0 S0 - 0");
        let asks = lead(&variables, Some("arn:r"), &heard);
        assert!(asks.contains("Action=AssumeRole&") && asks.ends_with("true"), "{asks}");
        heard.answers = vec![answer(200, GIVEN_OUT)];
        assert_eq!(lead(&variables, Some("arn:r"), &heard), "A1 S1 T1 0");
    }

    #[test]
    fn the_host_of_a_container_hands_out_credentials() {
        let variables =
            [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://h/c"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "t")];
        let mut heard = Heard::default();
        assert_eq!(lead(&variables, None, &heard), "http://h/c  true");
        heard.answers = vec![answer(200, r#"{"AccessKeyId":"A2","SecretAccessKey":"S2","Token":"T2"}"#)];
        assert_eq!(lead(&variables, None, &heard), "A2 S2 T2 0");
        assert!(lead(&[], None, &heard).starts_with("there are no credentials for AWS"));
    }

    #[test]
    fn sr18_a_region_is_a_name_and_no_part_of_an_address() {
        for region in
            ["us-east-1", "ap-southeast-12", "us-gov-west-1", "cn-north-1", "us-isob-east-1", "eusc-de-east-1"]
        {
            assert_eq!(Region::parse(region).map(|region| region.0).as_deref(), Ok(region));
        }
        for wrong in [
            "",
            "x@127.0.0.1:16451/",
            "us-east-1.evil.example/",
            "us-east-1#",
            "us-east-1?",
            "us-east-1/",
            "us-east-1\n",
            "us--1",
            "us-1",
            "us-east-",
            "US-EAST-1",
            "us-east-1234",
            "us.evil-east-1",
        ] {
            assert!(Region::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sr18_requests_are_signed_only_for_hosts_of_aws_or_of_the_operator() {
        let settings = Settings { hosts: vec!["proxy.internal:8080".into()], ..Settings::default() };
        for (url, region, may) in [
            ("https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-7/api/v1/query", "us-west-2", true),
            ("https://APS-workspaces.us-west-2.amazonaws.com/x", "us-west-2", true),
            ("https://aps-workspaces-fips.us-west-2.amazonaws.com/x", "us-west-2", true),
            ("https://aps-workspaces.us-west-2.api.aws/x", "us-west-2", true),
            ("https://aps-workspaces.cn-north-1.amazonaws.com.cn/x", "cn-north-1", true),
            ("https://vpce-0a-1b.aps-workspaces.us-west-2.vpce.amazonaws.com/x", "us-west-2", true),
            ("http://proxy.internal:8080/aps-workspaces", "us-west-2", true),
            ("http://proxy.internal/aps-workspaces", "us-west-2", false),
            ("http://x@proxy.internal:8080/aps-workspaces", "us-west-2", false),
            ("http://aps-workspaces.us-west-2.amazonaws.com/x", "us-west-2", false),
            ("https://aps-workspaces.us-west-2.amazonaws.com:8443/x", "us-west-2", false),
            ("https://aps-workspaces.us-west-2.amazonaws.com/x", "us-east-1", false),
            ("https://evil.example/aps-workspaces", "us-west-2", false),
            ("https://aps-workspaces.us-west-2.amazonaws.com@evil.example/", "us-west-2", false),
            ("https://aps-workspaces.us-west-2.amazonaws.com.evil.example/", "us-west-2", false),
            ("https://ec2-1-2-3-4.us-west-2.compute.amazonaws.com/aps-workspaces", "us-west-2", false),
            ("https://vpce-x.evil.aps-workspaces.us-west-2.vpce.amazonaws.com/", "us-west-2", false),
        ] {
            let region = Region::parse(region).unwrap();
            assert_eq!(settings.check_signing(url, "aps-workspaces", &region).is_ok(), may, "{url}");
        }
    }

    /// What becomes of a metric of Amazon's Prometheus on a machine with a web identity.
    fn measured(address: &str, region: &str) -> String {
        let variables = [("AWS_ROLE_ARN", "arn:r"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")];
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let settings = crate::metric::Settings::of("n", find);
        let prometheus = crate::value!({
            "address": address, "query": "up", "authentication": {"sigv4": {"region": region}}
        });
        let metric = crate::value!({"name": "m", "provider": {"prometheus": prometheus}});
        let (run, metric) = (AnalysisRun::default(), crate::api::read(&metric).object);
        let heard = Heard { token: Some(Ok(Secret::new("canary"))), ..Heard::default() };
        let now = Timestamp::UNIX_EPOCH;
        match crate::metric::ask(&Talk {
            run: &run,
            metric: &metric,
            work: &Work::Start,
            settings: &settings,
            heard: &heard,
            now,
        }) {
            Ask::Send(request) => request.url,
            Ask::Known(sample) => sample.measurement.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sr18_the_web_identity_goes_to_aws_alone() {
        let aws = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-7";
        assert_eq!(measured(aws, "us-west-2"), "https://sts.us-west-2.amazonaws.com/");
        let said = measured("http://evil.example/aps-workspaces", "x@127.0.0.1:16451/");
        assert!(said.contains("is not a region of AWS"), "{said}");
        let said = measured("http://evil.example/aps-workspaces", "us-west-2");
        assert!(said.ends_with("have the operator start Tidegate with `--aws-host evil.example`"), "{said}");
    }
}

//! Secrets name the hosts that they may be sent to, in the annotation `tidegate.dev/hosts`.
//!
//! The author of a GitSource need not be allowed to read the Secrets of its namespace, and must not be able to have one
//! sent elsewhere. So the permission stands on the Secret, where only those write who may write it, and without it nothing
//! is sent. Never sees what is in a Secret.

use std::fmt;

use http::Uri;

use crate::{
    api::constants::annotation,
    model::remote::{Origin, Remote, Scheme},
};

/// A Secret, and what it says about hosts.
#[derive(Debug, Clone, Copy)]
pub struct Bond<'s> {
    /// The namespace of the Secret.
    pub namespace: &'s str,
    /// The name of the Secret.
    pub name: &'s str,
    /// The value of its annotation.
    pub hosts: Option<&'s str>,
}

/// The API of a host of repositories, where it has another name and the same owner.
fn api_host(host: &str) -> Option<String> {
    match host.to_ascii_lowercase().as_str() {
        "github.com" | "ssh.github.com" => Some("api.github.com".to_owned()),
        "bitbucket.org" | "altssh.bitbucket.org" => Some("api.bitbucket.org".to_owned()),
        host if host.ends_with(".ghe.com") => Some(format!("api.{host}")),
        _ => None,
    }
}

impl Bond<'_> {
    /// Says why the Secret must not be sent to a host, and what to write if it should be.
    pub fn check(&self, to: &Origin) -> Result<(), String> {
        self.check_each(&to.to_string(), |entry| covers(entry, to))
    }

    /// The same for a request to an address of the web, which a metric names: http is spoken there, too.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        let place = web_origin(url);
        let shown = place.as_ref().map_or_else(|| "an address that cannot be read".to_owned(), WebOrigin::to_string);
        self.check_each(&shown, |entry| place.as_ref().is_some_and(|place| place.is_named_by(entry)))
    }

    fn check_each(&self, to: &str, covers: impl Fn(&str) -> bool) -> Result<(), String> {
        let Bond { namespace, name, hosts } = self;
        let command = |hosts: &str| {
            format!("kubectl annotate -n {namespace} secret/{name} --overwrite {}='{hosts}'", annotation::HOSTS)
        };
        let named: Vec<&str> =
            hosts.unwrap_or_default().split([',', ' ', '\n', '\t']).filter(|h| !h.is_empty()).collect();
        if named.iter().any(|entry| covers(entry)) {
            return Ok(());
        }
        Err(if named.is_empty() {
            format!(
                "the Secret {name} does not name the hosts that it may be sent to; to send it to {to}: {}",
                command(to)
            )
        } else {
            let more = format!("{} {to}", named.join(" "));
            format!(
                "the Secret {name} may be sent to {}, not to {to}; to allow that too: {}",
                named.join(", "),
                command(&more)
            )
        })
    }
}

/// Where a request on the web goes.
struct WebOrigin {
    scheme: String,
    host: String,
    port: u16,
}

fn web_origin(url: &str) -> Option<WebOrigin> {
    let uri: Uri = url.replace(' ', "%20").parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    // As it was written: who hides secrets in messages must find them again.
    Some(WebOrigin { scheme, host: uri.host()?.to_owned(), port })
}

impl WebOrigin {
    /// Whether an entry `[http://|https://]host[:port]` names it. Without a port it is the usual one of its scheme.
    fn is_named_by(&self, entry: &str) -> bool {
        let entry = entry.strip_suffix('/').unwrap_or(entry);
        let is_bare = !entry.contains("://");
        let whole = if is_bare { format!("{}://{entry}", self.scheme) } else { entry.to_owned() };
        web_origin(&whole).is_some_and(|named| {
            (&named.scheme, named.port) == (&self.scheme, self.port) && named.host.eq_ignore_ascii_case(&self.host)
        })
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebOrigin { scheme, host, port } = self;
        match (scheme.as_str(), port) {
            ("http", 80) | ("https", 443) => write!(f, "{scheme}://{host}"),
            _ => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

/// Whether an entry `[https://|ssh://]host[:port]` names a host. What cannot be read names none.
fn covers(entry: &str, to: &Origin) -> bool {
    let (scheme, address) = match (entry.strip_prefix("https://"), entry.strip_prefix("ssh://")) {
        (Some(rest), _) => (Some(Scheme::Https), rest),
        (None, Some(rest)) => (Some(Scheme::Ssh), rest),
        (None, None) => (None, entry),
    };
    let address = address.strip_suffix('/').unwrap_or(address);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) => match port.parse::<u16>() {
            Ok(port) => (host, Some(port)),
            Err(_) => return false,
        },
        None => (address, None),
    };
    let is_api = to.scheme == Scheme::Https && api_host(host).as_ref() == Some(&to.host);
    scheme.is_none_or(|scheme| scheme == to.scheme || (is_api && scheme == Scheme::Ssh))
        && port.unwrap_or(to.scheme.port()) == to.port
        && (host.eq_ignore_ascii_case(&to.host) || is_api)
}

/// The origin of an API's address.
pub fn origin(api: &str) -> Result<Origin, String> {
    let invalid = || format!("{api:?} is an invalid URL");
    let uri: Uri = api.parse().map_err(|_| invalid())?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(invalid)?;
    if uri.scheme_str() != Some("https") {
        return Err(format!("{api:?} is not an https:// URL"));
    }
    let port = authority.port_u16().unwrap_or(Scheme::Https.port());
    Ok(Origin { scheme: Scheme::Https, host: authority.host().to_ascii_lowercase(), port })
}

/// Whether an API is that of the host of a repository: only there the Secret to fetch with is used for reports.
pub fn is_own_api(remote: &Remote, api: &Origin) -> bool {
    let port = match remote.scheme {
        Scheme::Https => remote.origin().port,
        // Over ssh the port is the shell's.
        Scheme::Ssh => Scheme::Https.port(),
    };
    let own = api.host == remote.host && api.port == port;
    own || (api.port == Scheme::Https.port() && api_host(&remote.host).as_ref() == Some(&api.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sr4_a_secret_goes_to_the_hosts_that_it_names_and_nowhere_else() {
        let remote = |url: &str| Remote::parse(url).unwrap().origin();
        for (hosts, url, is_allowed) in [
            (Some("git.example"), "https://git.example/a/b", true),
            (Some("git.example"), "ssh://git@git.example/a/b", true),
            (Some("GIT.example"), "https://git.example/a/b", true),
            (Some("git.example"), "https://git.example:8443/a/b", false),
            (Some("git.example:8443"), "https://git.example:8443/a/b", true),
            (Some("git.example:8443"), "https://git.example/a/b", false),
            (Some("https://git.example"), "https://git.example/a/b", true),
            (Some("https://git.example/"), "https://git.example/a/b", true),
            (Some("https://git.example"), "ssh://git@git.example/a/b", false),
            (Some("ssh://git.example"), "https://git.example/a/b", false),
            (Some("a.example, git.example"), "https://git.example/a/b", true),
            (Some("a.example\ngit.example"), "https://git.example/a/b", true),
            (Some("git.example.evil.example"), "https://git.example/a/b", false),
            (Some("example"), "https://git.example/a/b", false),
            (Some("*"), "https://git.example/a/b", false),
            (Some("git.example:x"), "https://git.example/a/b", false),
            (Some("github.com"), "https://api.github.com/a/b", true),
            (Some("https://github.com"), "https://api.github.com/a/b", true),
            (Some("api.github.com"), "https://github.com/a/b", false),
            (Some(""), "https://git.example/a/b", false),
            (None, "https://git.example/a/b", false),
        ] {
            let bond = Bond { namespace: "shop", name: "s", hosts };
            assert_eq!(bond.check(&remote(url)).is_ok(), is_allowed, "{hosts:?} {url}");
        }
        let to = remote("https://git.example/a/b");
        assert_eq!(
            Bond { namespace: "shop", name: "s", hosts: None }.check(&to).unwrap_err(),
            "the Secret s does not name the hosts that it may be sent to; to send it to https://git.example: \
             kubectl annotate -n shop secret/s --overwrite tidegate.dev/hosts='https://git.example'"
        );
        assert_eq!(
            Bond { namespace: "shop", name: "s", hosts: Some("a.example") }.check(&to).unwrap_err(),
            "the Secret s may be sent to a.example, not to https://git.example; to allow that too: \
             kubectl annotate -n shop secret/s --overwrite tidegate.dev/hosts='a.example https://git.example'"
        );
    }

    #[test]
    fn sr19_a_secret_goes_with_metrics_to_the_hosts_that_it_names() {
        for (hosts, url, is_allowed) in [
            ("prometheus:9090", "http://prometheus:9090/api/v1/query?query=up", true),
            ("prometheus:9090", "https://prometheus:9090/x", true),
            ("prometheus", "http://prometheus/x", true),
            ("prometheus", "http://prometheus:9090/x", false),
            ("https://prometheus", "http://prometheus/x", false),
            ("http://prometheus", "https://prometheus/x", false),
            ("metrics.example", "https://METRICS.example/a b", true),
            ("metrics.example", "https://metrics.example@evil.example/x", false),
            ("metrics.example", "https://evil.example/metrics.example", false),
            ("metrics.example", "https://metrics.example.evil.example/", false),
            ("metrics.example evil.example", "https://evil.example/", true),
            ("*", "https://evil.example/", false),
            ("https://", "https://evil.example/", false),
            ("metrics.example", "no address", false),
        ] {
            let bond = Bond { namespace: "shop", name: "s", hosts: Some(hosts) };
            assert_eq!(bond.check_url(url).is_ok(), is_allowed, "{hosts} {url}");
        }
        let bond = Bond { namespace: "shop", name: "s", hosts: None };
        assert_eq!(
            bond.check_url("http://prometheus:9090/?token=canary-secret").unwrap_err(),
            "the Secret s does not name the hosts that it may be sent to; to send it to http://prometheus:9090: \
             kubectl annotate -n shop secret/s --overwrite tidegate.dev/hosts='http://prometheus:9090'"
        );
    }

    #[test]
    fn sr17_the_secret_to_fetch_with_is_for_the_hosts_own_api_alone() {
        for (url, api, is_own) in [
            ("https://git.example/a/b", "https://git.example/api/v1", true),
            ("https://git.example:8443/a/b", "https://git.example:8443/api/v1", true),
            ("https://git.example:8443/a/b", "https://git.example/api/v1", false),
            ("ssh://git@git.example:2222/a/b", "https://git.example/api/v1", true),
            ("https://github.com/a/b", "https://api.github.com", true),
            ("https://git.example/a/b", "https://api.github.com", false),
            ("https://git.example/a/b", "https://evil.example/api/v1", false),
        ] {
            assert_eq!(is_own_api(&Remote::parse(url).unwrap(), &origin(api).unwrap()), is_own, "{url} {api}");
        }
        assert!(origin("http://git.example").is_err());
        assert!(origin("https://git.example@evil.example/").is_err());
    }
}

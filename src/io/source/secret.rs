//! Secrets that sources name: read one by one, with the rights of its account, when they are needed, and kept by nobody.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::account;
use crate::{
    api::constants::annotation,
    engine::key::{Place, Resource},
    io::{
        api::Api,
        git::{self, Access},
    },
    kubernetes::value::Value,
    model::{
        git_source::GitSource,
        remote::{Origin, Remote},
    },
    sync::bond::Bond,
};

/// Where secrets are, and in whose name they are read.
#[derive(Clone)]
pub struct Secrets(Api);

/// What a Secret holds, and the hosts that it may be sent to.
pub struct BoundSecret {
    namespace: String,
    name: String,
    /// What it holds.
    pub data: BTreeMap<String, Vec<u8>>,
    /// The value of its annotation.
    pub hosts: Option<String>,
}

impl BoundSecret {
    /// Says why it must not be sent to a host.
    pub fn check(&self, to: &Origin) -> Result<(), String> {
        Bond { namespace: &self.namespace, name: &self.name, hosts: self.hosts.as_deref() }.check(to)
    }
}

impl Secrets {
    /// Those that may be read through this client: it asks in the name of a source.
    pub fn new(reader: Api) -> Secrets {
        Secrets(reader)
    }

    /// What a Secret holds. An error names the Secret and nothing in it.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        self.bound(namespace, name).await.map(|bound| bound.data)
    }

    /// The same, with the hosts that it may be sent to.
    pub async fn bound(&self, namespace: &str, name: &str) -> Result<BoundSecret, String> {
        let (resource, place) = (Resource::new("", "v1", "secrets"), Place::new(namespace, name));
        let found = self.0.object(&resource, &place).await;
        let secret = found.map_err(|error| match error.code() {
            Some(404) => format!("there is no Secret {name} in the namespace {namespace}"),
            Some(403) => {
                let missing = account::missing(&self.0, "get", &resource, &place);
                format!("the Secret {namespace}/{name} cannot be read: {missing}")
            }
            Some(code) => format!("the Secret {namespace}/{name} cannot be read ({code})"),
            None => format!("the Secret {namespace}/{name} cannot be read"),
        })?;
        let data = secret.get("data").and_then(Value::as_map);
        let bytes = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
        let data = data.into_iter().flat_map(|map| map.iter());
        let hosts = secret.str_at(&["metadata", "annotations", annotation::HOSTS]).map(str::to_owned);
        let data = data.map(|(key, value)| (key.to_string(), bytes(value))).collect();
        Ok(BoundSecret { namespace: namespace.to_owned(), name: name.to_owned(), data, hosts })
    }

    /// How the repository of a source is reached: with its Secret, if the Secret names the host.
    pub async fn access(&self, namespace: &str, spec: &GitSource, remote: &Remote) -> Result<Access, git::Error> {
        let Some(name) = &spec.secret else { return Ok(Access::anonymous(remote)) };
        let refused = |cause| git::Error::Credentials { remote: remote.to_string(), cause };
        let secret = self.bound(namespace, name).await.map_err(refused)?;
        let access = Access::from_secret(remote, &secret.data)?;
        // Authorities are no secret.
        if !access.is_anonymous() {
            secret.check(&remote.origin()).map_err(refused)?;
        }
        Ok(access)
    }
}

//! Secrets that sources name: read one by one, when they are needed, and kept by nobody.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    engine::key::{Place, Resource},
    io::api::Api,
    kubernetes::value::Value,
};

/// Where secrets are.
#[derive(Clone)]
pub struct Secrets(Api);

impl Secrets {
    /// Those of a cluster.
    pub fn new(api: Api) -> Secrets {
        Secrets(api)
    }

    /// The cluster.
    pub fn api(&self) -> &Api {
        &self.0
    }

    /// What a Secret holds. An error names the Secret and nothing in it.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        self.versioned(namespace, name).await.map(|(data, _)| data)
    }

    /// The same, with what changes when it is written anew.
    pub async fn versioned(&self, namespace: &str, name: &str) -> Result<(BTreeMap<String, Vec<u8>>, String), String> {
        let found = self.0.object(&Resource::new("", "v1", "secrets"), &Place::new(namespace, name)).await;
        let secret = found.map_err(|error| match error.code() {
            Some(404) => format!("there is no Secret {name} in the namespace {namespace}"),
            Some(code) => format!("the Secret {namespace}/{name} cannot be read ({code})"),
            None => format!("the Secret {namespace}/{name} cannot be read"),
        })?;
        let data = secret.get("data").and_then(Value::as_map);
        let bytes = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
        let data = data.into_iter().flat_map(|map| map.iter());
        let text = |field: &str| secret.str_at(&["metadata", field]).unwrap_or_default();
        let version = format!("{}/{}", text("uid"), text("resourceVersion"));
        Ok((data.map(|(key, value)| (key.to_string(), bytes(value))).collect(), version))
    }
}

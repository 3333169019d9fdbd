//! What a cluster serves under the names of kinds: built-in ones are known, others are asked for once.

use std::sync::Arc;

use super::api::{Api, Error};
use crate::{
    engine::key::path,
    kubernetes::{
        schema::crd,
        value::{Text, Value},
    },
    sync::{
        id::{Sort, Sorts},
        set,
    },
};

/// Learns the kinds of these names that are not known yet. What is not served is not remembered: it may come. What was
/// known and is still defined by the same is not made sense of again.
pub async fn learn(api: &Api, names: &[(Text, Text)], known: &mut Sorts, former: &Sorts) -> Result<(), Error> {
    let missing: Vec<(Text, Text)> = names.iter().filter(|name| !known.contains_key(*name)).cloned().collect();
    let built_in = set::built_in(&missing);
    for name in missing {
        let sort = match built_in.get(&name) {
            Some(sort) => sort.clone(),
            None => ask(api, &name, former.get(&name).cloned().flatten()).await?,
        };
        if sort.is_some() {
            known.insert(name, sort);
        }
    }
    Ok(())
}

/// Forgets everything that was asked for: definitions change. Answers with it.
pub fn forget(known: &mut Sorts) -> Sorts {
    let is_built_in = |sort: &Arc<Sort>| sort.kind.as_ref().is_some_and(|kind| kind.custom().is_none());
    let (kept, forgotten) =
        std::mem::take(known).into_iter().partition(|(_, sort)| sort.as_ref().is_some_and(is_built_in));
    *known = kept;
    forgotten
}

async fn ask(
    api: &Api,
    (api_version, kind): &(Text, Text),
    former: Option<Arc<Sort>>,
) -> Result<Option<Arc<Sort>>, Error> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    // Names come from a repository; only what can be part of a path is asked for.
    if !plain(group) || !plain(version) {
        return Ok(None);
    }
    let list = match api.get(&path(&["apis", group, version])?).await {
        Ok(list) => list,
        Err(error) if error.code() == Some(404) => return Ok(None),
        Err(error) => return Err(error),
    };
    let named = |resource: &&Value| {
        resource.str_at(&["kind"]) == Some(kind) && resource.str_at(&["name"]).is_some_and(|name| !name.contains('/'))
    };
    let Some(resource) = list.list_at(&["resources"]).iter().find(named) else { return Ok(None) };
    let plural = resource.str_at(&["name"]).unwrap_or_default();
    let namespaced = resource.at(&["namespaced"]).and_then(Value::as_bool).unwrap_or(false);
    let path =
        path(&["apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions", &format!("{plural}.{group}")])?;
    // Whoever may not read definitions still has the server's dry run.
    let definition = api.get(&path).await.ok();
    let defined = definition.as_ref().and_then(|definition| definition.at(&["metadata", "resourceVersion"]));
    let defined = defined.and_then(Value::as_text).cloned().unwrap_or_default();
    if let Some(former) = former.filter(|former| former.served && former.defined == defined && !defined.is_empty()) {
        return Ok(Some(former));
    }
    let schema =
        definition.and_then(|definition| crd::kinds(&definition).into_iter().find(|kind| kind.version == version));
    Ok(Some(Arc::new(Sort {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        namespaced,
        served: true,
        kind: schema.map(Arc::new),
        defined,
    })))
}

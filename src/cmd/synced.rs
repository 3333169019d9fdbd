//! What a person should know who changes by hand what a GitSource keeps as git says.

use super::{access::Cluster, print::note};
use crate::{
    api::constants::{TIDEGATE_GROUP, annotation, label},
    engine::key::{Place, Resource},
    kubernetes::value::Value,
    sync::by_hand::{self, Fate},
    value,
};

/// What becomes of the object itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Its source keeps it.
    No,
    /// Its source keeps it, and the verb could have asked to have it left.
    Offered,
    /// Its source is to leave it as it is.
    Yes,
}

impl Hold {
    /// What a flag of a verb says.
    pub fn of(flag: bool) -> Hold {
        if flag { Hold::Yes } else { Hold::Offered }
    }
}

/// Says that an object is synced, and what becomes of a change by hand; nothing where git says nothing about `patch`. To be
/// held, the object is first suspended: its source leaves it as it is.
pub async fn tell(
    cluster: &Cluster,
    resource: &Resource,
    object: &Value,
    patch: Option<&Value>,
    hold: Hold,
) -> anyhow::Result<()> {
    let Some(mark) = object.str_at(&["metadata", "labels", label::SOURCE]) else { return Ok(()) };
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    let kind = object.str_at(&["kind"]).unwrap_or("object").to_lowercase();
    let file = object.str_at(&["metadata", "annotations", annotation::PATH]).unwrap_or("its file");
    let annotate = format!("kubectl annotate {kind} {} -n {} {}", text("name"), text("namespace"), annotation::SUSPEND);
    if hold == Hold::Yes {
        let patch = value!({"metadata": {"annotations": {annotation::SUSPEND: "true"}}});
        let patched = cluster.api.patch(resource, &cluster.place(text("name")), "", &patch).await;
        if let Err(error) = patched {
            return Err(cluster.explain(error, resource, text("name")).await);
        }
        note(format_args!("note: the source {mark} leaves it as it is now; `{annotate}-` gives it back to git"));
        return Ok(());
    }
    let sources = Resource::new(TIDEGATE_GROUP, "v1alpha1", "gitsources");
    let source = match by_hand::source_of(object) {
        // Whoever may not read it is told what sources do if nothing else is said.
        Some((namespace, name)) => cluster.api.object(&sources, &Place::new(namespace, name)).await.ok(),
        None => None,
    };
    let otherwise = if hold == Hold::Offered {
        "or repeat this with --hold".to_owned()
    } else {
        format!("or first `{annotate}=true`")
    };
    match by_hand::fate(object, source.as_ref(), patch) {
        None => {}
        Some(Fate::Stays(why)) => {
            note(format_args!("note: this stays: {why}; to keep it for good, commit it to {file}"))
        }
        Some(Fate::TakenBack) => note(format_args!(
            "note: the source {mark} keeps it as git says and takes this back; to keep it, commit it to {file}, {otherwise}"
        )),
    }
    Ok(())
}

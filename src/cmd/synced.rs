//! What a person should know who changes by hand what a GitSource keeps as git says.

use super::{access::Cluster, print::note};
use crate::{
    api::constants::{annotation, label},
    engine::key::Resource,
    kubernetes::value::Value,
    value,
};

/// Says that an object is synced, and what becomes of a change by hand. With `hold` the object is first suspended: its source
/// leaves it as it is.
pub async fn tell(cluster: &Cluster, resource: &Resource, object: &Value, hold: bool) -> anyhow::Result<()> {
    let Some(source) = object.str_at(&["metadata", "labels", label::SOURCE]) else { return Ok(()) };
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    let kind = object.str_at(&["kind"]).unwrap_or("object").to_lowercase();
    let file = object.str_at(&["metadata", "annotations", annotation::PATH]).unwrap_or("its file");
    let release =
        format!("`kubectl annotate {kind} {} -n {} {}-`", text("name"), text("namespace"), annotation::SUSPEND);
    if hold {
        let patch = value!({"metadata": {"annotations": {annotation::SUSPEND: "true"}}});
        let patched = cluster.api.patch(resource, &cluster.place(text("name")), "", &patch).await;
        if let Err(error) = patched {
            return Err(cluster.explain(error, resource, text("name")).await);
        }
        note(format_args!("note: the source {source} leaves it as it is now; {release} gives it back to git"));
    } else {
        note(format_args!(
            "note: the source {source} keeps it as git says and takes this back; to keep it, commit it to {file}, \
             or repeat this with --hold"
        ));
    }
    Ok(())
}

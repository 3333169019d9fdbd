//! In whose name a source reads and writes: that of the ServiceAccount that it names, with that account's rights.

use super::keep::{Kept, Subject};
use crate::{
    engine::key::{Place, Resource},
    io::api::Api,
    sync::rights::{MissingRights, ReadRight},
};

/// A client that asks in the name of an account.
pub fn acting_as(api: &Api, namespace: &str, account: &str) -> Api {
    api.acting_as(format!("system:serviceaccount:{namespace}:{account}"))
}

/// A client that asks in the name of a source. One that was given on the command line and names no account has the rights of
/// whoever gave it.
pub fn acting(api: &Api, subject: &Subject) -> Api {
    let account = subject.spec.as_ref().map(|spec| spec.service_account.as_str()).unwrap_or_default();
    match (&subject.kept, account) {
        (Kept::ConfigMap, "") => api.clone(),
        // An object that names none has no rights, and never ours.
        (Kept::Object(..), "") => api.acting_as("system:anonymous".to_owned()),
        (Kept::ConfigMap | Kept::Object(..), account) => acting_as(api, &subject.place.namespace, account),
    }
}

/// Whom a client asks for, in words.
pub fn named(api: &Api) -> String {
    match api.user().and_then(|user| user.strip_prefix("system:serviceaccount:")?.split_once(':')) {
        Some((namespace, account)) => format!("the ServiceAccount {namespace}/{account}"),
        None => api.user().map_or_else(|| "whoever runs this".to_owned(), |user| format!("the user {user}")),
    }
}

/// The right to read something, which the server says is missing.
pub fn missing(api: &Api, verb: &'static str, resource: &Resource, place: &Place) -> MissingRights {
    let name = Some(place.name.clone()).filter(|name| !name.is_empty());
    MissingRights { who: named(api), rights: [right(verb, resource, &place.namespace, name)].into() }
}

/// A right.
pub fn right(
    verb: &'static str,
    resource: &Resource,
    namespace: &crate::kubernetes::value::Text,
    name: Option<crate::kubernetes::value::Text>,
) -> ReadRight {
    let Resource { group, plural, .. } = resource.clone();
    ReadRight { namespace: namespace.clone(), group, plural, name, verb }
}

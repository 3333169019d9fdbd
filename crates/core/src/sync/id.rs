//! The names of objects, and what the cluster serves under the names of their kinds.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    api::InventoryEntry,
    kubernetes::{
        kind::Kind,
        value::{Text, Value},
    },
};

/// One object, whatever version it is written in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Its group; empty for the core group.
    pub group: Text,
    /// Its kind.
    pub kind: Text,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
}

impl Id {
    /// The object of these names.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Id {
        Id { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The names that an object bears.
    pub fn of(object: &Value) -> Id {
        let text = |path: &[&str]| object.str_at(path).unwrap_or_default();
        let group = text(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
        Id::new(group, text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]))
    }

    /// The object that an entry of an inventory names.
    pub fn of_entry(entry: &InventoryEntry) -> Id {
        let InventoryEntry { group, kind, namespace, name, .. } = entry.clone();
        Id { group, kind, namespace, name }
    }

    /// Whether it is of this kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// A kind as the cluster serves it.
#[derive(Debug, Clone)]
pub struct Sort {
    /// Its group.
    pub group: Text,
    /// Its version.
    pub version: Text,
    /// The resource: `replicasets`.
    pub plural: Text,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether the server takes objects of it; if not, its definition comes with the same commit.
    pub served: bool,
    /// Its schema, if that is known: what it does not settle, the server is asked.
    pub kind: Option<Arc<Kind>>,
    /// The version of the definition that the schema was read from; empty if there is none.
    pub defined: Text,
}

impl Sort {
    /// A kind whose schema is known.
    pub fn of(kind: &Arc<Kind>) -> Sort {
        Sort {
            group: kind.group.clone(),
            version: kind.version.clone(),
            plural: kind.plural.clone(),
            namespaced: kind.namespaced,
            served: true,
            kind: Some(kind.clone()),
            defined: Text::new(),
        }
    }
}

/// What is known of kinds, by `apiVersion` and `kind`. A name without a sort is not served.
pub type Sorts = BTreeMap<(Text, Text), Option<Arc<Sort>>>;

/// Text cut to so many bytes, where a character ends, with an ellipsis.
pub fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn an_object_is_known_by_group_kind_namespace_and_name_whatever_its_version() {
        let object =
            value!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "a", "name": "b"}});
        assert_eq!(Id::of(&object), Id::new("apps", "Deployment", "a", "b"));
        assert_eq!(Id::of(&object).to_string(), "Deployment a/b");
        assert_eq!(
            Id::of(&value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})).to_string(),
            "Namespace a"
        );
    }

    #[test]
    fn text_is_cut_where_a_character_ends() {
        assert_eq!(cut("äöü", 6), "äöü");
        assert_eq!(cut("äöüß", 6), "ä…");
    }
}

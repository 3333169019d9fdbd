//! What the ServiceAccount of a source may not read, and what to write into a role so that it may. Names kinds and
//! namespaces that git or the inventory name anyway, and never says what is there.

use std::{collections::BTreeSet, fmt};

use crate::kubernetes::value::Text;

/// A right to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadRight {
    /// Where; empty for kinds without a namespace.
    pub namespace: Text,
    /// The API group.
    pub group: Text,
    /// The resource.
    pub plural: Text,
    /// The only object that it is needed for, if it is one that is named.
    pub name: Option<Text>,
    /// `get` or `list`.
    pub verb: &'static str,
}

/// The rights that an account lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRights {
    /// Who: `the ServiceAccount shop/deployer`.
    pub who: String,
    /// What it lacks; at least one.
    pub rights: BTreeSet<ReadRight>,
}

/// How many rights are named.
const SHOWN: usize = 3;

impl fmt::Display for MissingRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may not ", self.who)?;
        for (index, right) in self.rights.iter().take(SHOWN).enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            let ReadRight { namespace, group, plural, verb, .. } = right;
            write!(f, "{verb} {plural}")?;
            if !group.is_empty() {
                write!(f, ".{group}")?;
            }
            if !namespace.is_empty() {
                write!(f, " in {namespace}")?;
            }
        }
        if let Some(more @ 1..) = self.rights.len().checked_sub(SHOWN) {
            write!(f, " and {more} more")?;
        }
        let Some(ReadRight { namespace, group, plural, verb, name }) = self.rights.first() else { return Ok(()) };
        let role = if namespace.is_empty() { "ClusterRole" } else { "Role there" };
        write!(f, "; bind it to a {role} with {{apiGroups: [\"{group}\"], resources: [{plural}], ")?;
        if let Some(name) = name {
            write!(f, "resourceNames: [{name}], ")?;
        }
        write!(f, "verbs: [{verb}]}}")?;
        f.write_str(if self.rights.len() > 1 { " and so on" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rights: &[(&str, &str, &str, &'static str)], expected: &str) {
        let right = |&(namespace, group, plural, verb): &(&str, &str, &str, &'static str)| ReadRight {
            namespace: namespace.into(),
            group: group.into(),
            plural: plural.into(),
            name: (plural == "secrets").then(|| "git".into()),
            verb,
        };
        let missing = MissingRights {
            who: "the ServiceAccount shop/deployer".into(),
            rights: rights.iter().map(right).collect(),
        };
        assert_eq!(missing.to_string(), expected);
    }

    #[test]
    fn what_is_missing_is_said_with_the_rule_that_gives_it() {
        check(
            &[("shop", "", "services", "get")],
            "the ServiceAccount shop/deployer may not get services in shop; bind it to a Role there with \
             {apiGroups: [\"\"], resources: [services], verbs: [get]}",
        );
        check(
            &[("shop", "", "secrets", "get")],
            "the ServiceAccount shop/deployer may not get secrets in shop; bind it to a Role there with \
             {apiGroups: [\"\"], resources: [secrets], resourceNames: [git], verbs: [get]}",
        );
        check(
            &[("", "storage.k8s.io", "storageclasses", "get")],
            "the ServiceAccount shop/deployer may not get storageclasses.storage.k8s.io; bind it to a ClusterRole with \
             {apiGroups: [\"storage.k8s.io\"], resources: [storageclasses], verbs: [get]}",
        );
        check(
            &[("b", "", "x", "get"), ("a", "", "x", "get"), ("a", "", "w", "get"), ("c", "", "x", "get")],
            "the ServiceAccount shop/deployer may not get w in a, get x in a, get x in b and 1 more; bind it to a Role \
             there with {apiGroups: [\"\"], resources: [w], verbs: [get]} and so on",
        );
    }
}

//! The tools that keep a cluster as git says, and what is read of each.

use super::{Choices, Entry, Migration, Origin, argocd, fight, flux};
use crate::{kubernetes::value::Value, manifest::Object};

/// Which tool objects are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Argo CD.
    ArgoCd,
    /// Flux.
    Flux,
}

impl Tool {
    /// What is listed in a cluster: group, version, plural, kind, label selector.
    pub fn kinds(self) -> &'static [(&'static str, &'static str, &'static str, &'static str, &'static str)] {
        match self {
            Tool::ArgoCd => &[
                (argocd::GROUP, "v1alpha1", "applications", "Application", ""),
                (argocd::GROUP, "v1alpha1", "applicationsets", "ApplicationSet", ""),
                (argocd::GROUP, "v1alpha1", "appprojects", "AppProject", ""),
                ("", "v1", "secrets", "Secret", "argocd.argoproj.io/secret-type in (repository,repo-creds)"),
            ],
            Tool::Flux => &[
                ("source.toolkit.fluxcd.io", "v1", "gitrepositories", "GitRepository", ""),
                ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization", ""),
                ("source.toolkit.fluxcd.io", "v1", "ocirepositories", "OCIRepository", ""),
                ("source.toolkit.fluxcd.io", "v1", "buckets", "Bucket", ""),
                ("source.toolkit.fluxcd.io", "v1", "helmrepositories", "HelmRepository", ""),
                ("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease", ""),
                ("notification.toolkit.fluxcd.io", "v1", "receivers", "Receiver", ""),
                ("notification.toolkit.fluxcd.io", "v1beta3", "alerts", "Alert", ""),
                ("notification.toolkit.fluxcd.io", "v1beta3", "providers", "Provider", ""),
            ],
        }
    }

    /// Whether a migration has something to say about an object.
    pub fn is_known(self, object: &Object) -> bool {
        match self {
            Tool::ArgoCd => {
                object.group() == argocd::GROUP
                    && ["Application", "ApplicationSet", "AppProject"].contains(&object.kind())
            }
            Tool::Flux => flux::is_known(object),
        }
    }

    /// Migrates.
    pub fn migrate(self, objects: &[(&Object, Origin)], choices: &Choices) -> Migration {
        match self {
            Tool::ArgoCd => argocd::migrate(objects, choices),
            Tool::Flux => flux::migrate(objects, choices),
        }
    }

    /// The field managers it writes as.
    pub fn managers(self) -> &'static [&'static str] {
        match self {
            Tool::ArgoCd => fight::ARGOCD,
            Tool::Flux => fight::FLUX,
        }
    }

    /// How it is called.
    pub fn title(self) -> &'static str {
        match self {
            Tool::ArgoCd => "Argo CD",
            Tool::Flux => "Flux",
        }
    }

    /// What the other tool keeps in sync by itself with this object; nothing if it does not.
    pub fn keeps(self, object: &Value) -> Vec<Entry> {
        match (self, object.str_at(&["kind"])) {
            (Tool::ArgoCd, Some("Application")) => {
                let automated = object.at(&["spec", "syncPolicy", "automated"]).filter(|policy| !policy.is_null());
                let is_on = automated.is_some_and(|policy| policy.get("enabled") != Some(&Value::Bool(false)));
                if is_on { argocd::inventory(object) } else { Vec::new() }
            }
            (Tool::Flux, Some("Kustomization")) => {
                let is_off = object.at(&["spec", "suspend"]) == Some(&Value::Bool(true));
                if is_off { Vec::new() } else { flux::inventory(object) }
            }
            _ => Vec::new(),
        }
    }
}

//! How an object wants to be treated, as its annotations say: Tidegate's own, and those of Argo CD and Helm that mean the same,
//! because people migrate.
//!
//! What Argo CD's annotations ask for and Tidegate does not do is listed in [`Policy::ignored`], never dropped silently.

use crate::{
    api::constants::annotation,
    kubernetes::value::{Text, Value},
};

/// How an object wants to be treated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its wave.
    pub wave: i64,
    /// What is done to it.
    pub apply: Apply,
    /// Whether it stays when it leaves the repository.
    pub keep: bool,
    /// Whether nothing is done to it for now.
    pub suspended: bool,
    /// Whether it is created again where a field of it cannot change, if it says so.
    pub replace: Option<bool>,
    /// When it runs, if it is a hook: once for each commit.
    pub hook: Option<Hook>,
    /// When it is healthy, and when it has failed, as CEL expressions, if it says so itself.
    pub health: (Option<Text>, Option<Text>),
    /// What it asks for that is not done: an annotation with its value.
    pub ignored: Vec<String>,
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Apply {
    /// It is kept as git says.
    #[default]
    Always,
    /// It is created, and then left alone.
    Once,
    /// Nothing.
    Never,
}

/// An object that runs once for each commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When it runs.
    pub phase: Phase,
    /// After which endings it is deleted. One that is left is deleted before it runs again.
    pub delete_on: Vec<Ending>,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before anything of the commit is written.
    BeforeSync,
    /// When everything of the commit is written.
    Sync,
    /// When everything of the commit is healthy.
    AfterSync,
    /// When the commit fails.
    OnFailure,
}

impl Phase {
    /// As the annotation has it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::BeforeSync => "before-sync",
            Phase::Sync => "sync",
            Phase::AfterSync => "after-sync",
            Phase::OnFailure => "on-failure",
        }
    }
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Succeeded,
    /// Not.
    Failed,
}

/// An annotation that cannot be read, with what to write.
type Wrong = (&'static str, String);

fn wrong<T>(key: &'static str, text: &str, expected: &str) -> Result<T, Wrong> {
    Err((key, format!("{key} is {text:?}; write {expected}")))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// How an object wants to be treated.
pub fn policy(object: &Value) -> Result<Policy, Wrong> {
    let note = |key: &str| object.str_at(&["metadata", "annotations", key]);
    let mut policy = Policy { suspended: is_suspended(object), keep: is_kept(object), ..Policy::default() };
    policy.apply = match note(annotation::APPLY) {
        None | Some("always") => Apply::Always,
        Some("once") => Apply::Once,
        Some("ignore") => Apply::Never,
        Some(text) => return wrong(annotation::APPLY, text, "always, once or ignore"),
    };
    match note(annotation::PRUNE) {
        None | Some("enabled" | "disabled") => {}
        Some(text) => return wrong(annotation::PRUNE, text, "enabled or disabled"),
    }
    policy.replace = match note(annotation::REPLACE) {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(text) => return wrong(annotation::REPLACE, text, "\"true\" or \"false\""),
    };
    hook(object, &mut policy)?;
    let weight = policy.hook.as_ref().and(Some(annotation::HELM_WEIGHT));
    let waves = [Some(annotation::WAVE), Some(annotation::ARGOCD_WAVE), weight];
    if let Some((key, text)) = waves.into_iter().flatten().find_map(|key| Some((key, note(key)?))) {
        policy.wave = match text.parse() {
            Ok(wave) => wave,
            Err(_) => return wrong(key, text, "a whole number"),
        };
    }
    policy.health = (note(annotation::HEALTH).map(Text::from), note(annotation::HEALTH_FAILED).map(Text::from));
    argocd(object, &mut policy);
    Ok(policy)
}

/// Whether an object asks to be left as it is for now.
pub fn is_suspended(object: &Value) -> bool {
    object.str_at(&["metadata", "annotations", annotation::SUSPEND]) == Some("true")
}

/// Whether an object asks never to be pruned.
pub fn is_kept(object: &Value) -> bool {
    let note = |key: &str| object.str_at(&["metadata", "annotations", key]);
    match note(annotation::PRUNE) {
        Some("disabled") => true,
        Some("enabled") => false,
        Some(_) | None => {
            note(annotation::HELM_POLICY) == Some("keep")
                || words(note(annotation::ARGOCD_OPTIONS).unwrap_or_default()).any(|option| option == "Prune=false")
        }
    }
}

/// Reads whether an object is a hook: as Tidegate, Argo CD or Helm say it, the first of them that does.
fn hook(object: &Value, policy: &mut Policy) -> Result<(), Wrong> {
    let note = |key: &str| object.str_at(&["metadata", "annotations", key]);
    let (key, delete, phases) = if let Some(text) = note(annotation::HOOK) {
        let phase = match text {
            "before-sync" => Phase::BeforeSync,
            "after-sync" => Phase::AfterSync,
            "on-failure" => Phase::OnFailure,
            text => return wrong(annotation::HOOK, text, "before-sync, after-sync or on-failure"),
        };
        (annotation::HOOK, annotation::HOOK_DELETE, vec![phase])
    } else if let Some(text) = note(annotation::ARGOCD_HOOK) {
        let mut phases = Vec::new();
        for word in words(text) {
            match word {
                "PreSync" => phases.push(Phase::BeforeSync),
                "Sync" => phases.push(Phase::Sync),
                "PostSync" => phases.push(Phase::AfterSync),
                "SyncFail" => phases.push(Phase::OnFailure),
                "Skip" => {}
                "PreDelete" | "PostDelete" => policy.ignored.push(format!("{}: {word}", annotation::ARGOCD_HOOK)),
                _ => {
                    return wrong(annotation::ARGOCD_HOOK, text, "PreSync, Sync, PostSync, SyncFail or Skip");
                }
            }
        }
        (annotation::ARGOCD_HOOK, annotation::ARGOCD_HOOK_DELETE, phases)
    } else if let Some(text) = note(annotation::HELM_HOOK) {
        let mut phases = Vec::new();
        for word in words(text) {
            match word {
                "pre-install" | "pre-upgrade" | "crd-install" => phases.push(Phase::BeforeSync),
                "post-install" | "post-upgrade" => phases.push(Phase::AfterSync),
                // What is never installed, upgraded or rolled back by Helm has no such moment.
                _ => policy.ignored.push(format!("{}: {word}", annotation::HELM_HOOK)),
            }
        }
        (annotation::HELM_HOOK, annotation::HELM_HOOK_DELETE, phases)
    } else {
        return Ok(());
    };
    let mut phases = phases;
    phases.dedup();
    let phase = match phases.as_slice() {
        // It is a hook for a moment that never comes.
        [] => {
            policy.apply = Apply::Never;
            return Ok(());
        }
        [phase] => *phase,
        _ => {
            let text = note(key).unwrap_or_default();
            return wrong(key, text, "one moment, and another object for each other one");
        }
    };
    let mut delete_on = Vec::new();
    for word in words(note(delete).unwrap_or_default()) {
        match word {
            "succeeded" | "HookSucceeded" | "hook-succeeded" => delete_on.push(Ending::Succeeded),
            "failed" | "HookFailed" | "hook-failed" => delete_on.push(Ending::Failed),
            "before-creation" | "BeforeHookCreation" | "before-hook-creation" => {}
            word => return wrong(delete, word, "before-creation, succeeded or failed"),
        }
    }
    policy.hook = Some(Hook { phase, delete_on });
    Ok(())
}

/// Reads what else Argo CD's annotations ask for; what is not done is noted.
fn argocd(object: &Value, policy: &mut Policy) {
    let read = [
        annotation::ARGOCD_HOOK,
        annotation::ARGOCD_HOOK_DELETE,
        annotation::ARGOCD_WAVE,
        // Argo CD writes these itself.
        "argocd.argoproj.io/tracking-id",
        "argocd.argoproj.io/installation-id",
    ];
    let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_map);
    for (key, value) in annotations.into_iter().flat_map(|map| map.iter()) {
        let text = value.as_str().unwrap_or_default();
        if *key == annotation::ARGOCD_OPTIONS {
            for option in words(text) {
                match option {
                    "Force=true" => policy.replace = policy.replace.or(Some(true)),
                    // This is what is done anyway.
                    "Prune=false"
                    | "Prune=true"
                    | "PruneLast=true"
                    | "ServerSideApply=true"
                    | "SkipDryRunOnMissingResource=true"
                    | "Validate=true"
                    | "Replace=false"
                    | "Force=false" => {}
                    option => policy.ignored.push(format!("{key}: {option}")),
                }
            }
        } else if key.starts_with("argocd.argoproj.io/") && !read.contains(&key.as_str()) {
            policy.ignored.push(format!("{key}: {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn of(notes: &[(&str, &str)]) -> Result<Policy, String> {
        let mut object = value!({"kind": "Job"});
        for (key, text) in notes {
            object.set_at(&["metadata", "annotations", key], *text);
        }
        policy(&object).map_err(|(_, message)| message)
    }

    fn hook(phase: Phase, wave: i64, delete_on: &[Ending]) -> Policy {
        Policy { wave, hook: Some(Hook { phase, delete_on: delete_on.to_vec() }), ..Policy::default() }
    }

    #[test]
    fn hooks_and_waves_of_argo_cd_and_helm_are_read_as_such() {
        for (notes, expected) in [
            (&[("tidegate.dev/hook", "before-sync")][..], hook(Phase::BeforeSync, 0, &[])),
            (&[("tidegate.dev/hook", "after-sync"), ("tidegate.dev/wave", "2")], hook(Phase::AfterSync, 2, &[])),
            (
                &[("tidegate.dev/hook", "on-failure"), ("tidegate.dev/hook-delete-policy", "succeeded, failed")],
                hook(Phase::OnFailure, 0, &[Ending::Succeeded, Ending::Failed]),
            ),
            (
                &[
                    ("argocd.argoproj.io/hook", "PreSync"),
                    ("argocd.argoproj.io/sync-wave", "-1"),
                    ("argocd.argoproj.io/hook-delete-policy", "HookSucceeded"),
                ],
                hook(Phase::BeforeSync, -1, &[Ending::Succeeded]),
            ),
            (&[("argocd.argoproj.io/hook", "Sync")], hook(Phase::Sync, 0, &[])),
            (&[("argocd.argoproj.io/hook", "PostSync")], hook(Phase::AfterSync, 0, &[])),
            (&[("argocd.argoproj.io/hook", "SyncFail")], hook(Phase::OnFailure, 0, &[])),
            (
                &[
                    ("helm.sh/hook", "pre-install,pre-upgrade"),
                    ("helm.sh/hook-weight", "-5"),
                    ("helm.sh/hook-delete-policy", "before-hook-creation,hook-succeeded"),
                ],
                hook(Phase::BeforeSync, -5, &[Ending::Succeeded]),
            ),
            (&[("helm.sh/hook", "post-install, post-upgrade")], hook(Phase::AfterSync, 0, &[])),
            (&[("argocd.argoproj.io/sync-wave", "3")], Policy { wave: 3, ..Policy::default() }),
            (
                &[("tidegate.dev/wave", "1"), ("argocd.argoproj.io/sync-wave", "3")],
                Policy { wave: 1, ..Policy::default() },
            ),
            // A weight orders hooks only.
            (&[("helm.sh/hook-weight", "3")], Policy::default()),
            (&[("helm.sh/resource-policy", "keep")], Policy { keep: true, ..Policy::default() }),
            (&[("argocd.argoproj.io/hook", "Skip")], Policy { apply: Apply::Never, ..Policy::default() }),
        ] {
            assert_eq!(of(notes), Ok(expected), "{notes:?}");
        }
    }

    #[test]
    fn what_is_asked_for_and_not_done_is_named() {
        let ignored = |notes: &[(&str, &str)]| of(notes).unwrap().ignored;
        assert_eq!(
            ignored(&[("argocd.argoproj.io/sync-options", "Prune=false,PruneLast=true, Delete=confirm,Replace=true")]),
            ["argocd.argoproj.io/sync-options: Delete=confirm", "argocd.argoproj.io/sync-options: Replace=true"]
        );
        let compare = ("argocd.argoproj.io/compare-options", "IgnoreExtraneous");
        assert_eq!(ignored(&[compare]), ["argocd.argoproj.io/compare-options: IgnoreExtraneous"]);
        for (key, text) in [("argocd.argoproj.io/hook", "PreDelete"), ("helm.sh/hook", "test")] {
            let policy = of(&[(key, text)]).unwrap();
            assert_eq!((policy.apply, policy.ignored), (Apply::Never, vec![format!("{key}: {text}")]));
        }
        let policy = of(&[("helm.sh/hook", "pre-install,pre-rollback")]).unwrap();
        assert_eq!((policy.hook.unwrap().phase, policy.ignored.len()), (Phase::BeforeSync, 1));
        let options = of(&[("argocd.argoproj.io/sync-options", "Force=true,Prune=false")]).unwrap();
        assert_eq!((options.replace, options.keep, options.ignored), (Some(true), true, vec![]));
        assert_eq!(ignored(&[("argocd.argoproj.io/tracking-id", "x")]), [] as [&str; 0]);
    }

    #[test]
    fn what_cannot_be_read_says_what_to_write() {
        for (key, text, expected) in [
            ("tidegate.dev/hook", "PreSync", "before-sync, after-sync or on-failure"),
            ("argocd.argoproj.io/hook", "Before", "PreSync, Sync, PostSync, SyncFail or Skip"),
            ("argocd.argoproj.io/hook", "PreSync,PostSync", "one moment, and another object for each other one"),
            ("argocd.argoproj.io/sync-wave", "soon", "a whole number"),
            ("tidegate.dev/apply", "maybe", "always, once or ignore"),
        ] {
            assert_eq!(of(&[(key, text)]), Err(format!("{key} is {text:?}; write {expected}")));
        }
        let wrong = of(&[("tidegate.dev/hook", "after-sync"), ("tidegate.dev/hook-delete-policy", "never")]);
        assert!(wrong.unwrap_err().contains("write before-creation, succeeded or failed"));
    }
}

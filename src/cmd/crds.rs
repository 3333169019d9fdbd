//! `tidegate crds`: the definitions of our kinds, to be installed in a cluster.

use std::{fs, path::PathBuf};

use anyhow::{Context, anyhow};

use super::{print::document, remedied};
use crate::{api::crd, kubernetes::value::Value};

/// The arguments of `tidegate crds`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only these kinds, such as `Rollout`, `rollouts` or `ro`; all if none is named.
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// Write one file for each into this folder instead of printing them.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes the definitions.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let chosen = choose(&arguments.kinds)?;
    let Some(folder) = arguments.dir else {
        let texts: Vec<&str> = chosen.iter().map(|(_, text)| text.as_str()).collect();
        return document(&texts.join("---\n"));
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, text) in chosen {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The files of the kinds that were asked for, in the order of installation.
fn choose(kinds: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let all = crd::all();
    for kind in kinds {
        if !all.iter().any(|definition| is_called(definition, kind)) {
            let known: Vec<&str> = all.iter().filter_map(|crd| crd.str_at(&["spec", "names", "kind"])).collect();
            return Err(remedied(anyhow!("there is no kind {kind:?}"), format!("name some of {}", known.join(", "))));
        }
    }
    let chosen = all.iter().filter(|crd| kinds.is_empty() || kinds.iter().any(|kind| is_called(crd, kind)));
    Ok(chosen.map(|crd| (file_name(crd), yaml(crd))).collect())
}

fn is_called(definition: &Value, name: &str) -> bool {
    let names = ["kind", "plural", "singular"].into_iter().filter_map(|key| definition.str_at(&["spec", "names", key]));
    let short = definition.list_at(&["spec", "names", "shortNames"]).iter().filter_map(Value::as_str);
    names.chain(short).any(|known| known.eq_ignore_ascii_case(name))
}

/// `rollout.yaml`
fn file_name(definition: &Value) -> String {
    format!("{}.yaml", definition.str_at(&["spec", "names", "singular"]).unwrap_or_default())
}

/// A definition as its file holds it.
pub fn yaml(definition: &Value) -> String {
    let body = serde_saphyr::to_string(definition).unwrap_or_default();
    format!("# Made from the types by `tidegate crds`; not to be edited.\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_any_of_its_names() {
        #[track_caller]
        fn check(names: &[&str], expected: &[&str]) {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let files: Vec<String> = choose(&names).unwrap().into_iter().map(|(name, _)| name).collect();
            assert_eq!(files, expected);
        }
        check(&["Rollout"], &["rollout.yaml"]);
        check(&["exp", "rollouts", "ROLLOUT"], &["rollout.yaml", "experiment.yaml"]);
        check(&["gitsource"], &["gitsource.yaml"]);
        assert!(choose(&["Rollout".to_owned(), "Deployment".to_owned()]).is_err());
    }

    #[test]
    fn the_files_in_the_tree_are_current() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crds");
        for (name, text) in choose(&[]).unwrap() {
            let file = fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert!(file == text, "crds/{name} is not what `tidegate crds` says: run `tidegate crds --dir crds`");
        }
    }
}

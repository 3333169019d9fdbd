//! Trees in memory, for tests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tidegate_kustomize::{Entry, Tree};

/// Files and links by path; directories are what lies above them.
#[derive(Default, Clone)]
pub struct Memory {
    pub files: BTreeMap<String, Vec<u8>>,
    pub links: BTreeMap<String, String>,
}

impl Memory {
    /// A tree of texts.
    #[allow(dead_code)]
    pub fn of(files: &[(&str, &str)]) -> Memory {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        Memory { files, links: BTreeMap::new() }
    }

    /// Everything below a directory.
    #[allow(dead_code)]
    pub fn read(directory: &Path) -> Memory {
        let mut memory = Memory::default();
        memory.add(directory, "");
        memory
    }

    #[allow(dead_code)]
    fn add(&mut self, directory: &Path, prefix: &str) {
        let mut entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_str().unwrap();
            let inner = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            if path.is_dir() {
                self.add(&path, &inner);
            } else {
                self.files.insert(inner, fs::read(&path).unwrap());
            }
        }
    }
}

impl Tree for Memory {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        if let Some(bytes) = self.files.get(path) {
            return Ok(Some(Entry::File { size: bytes.len() as u64 }));
        }
        if let Some(target) = self.links.get(path) {
            return Ok(Some(Entry::Link { target: target.clone() }));
        }
        let below = format!("{path}/");
        let holds =
            |paths: &mut dyn Iterator<Item = &String>| paths.next().is_some_and(|first| first.starts_with(&below));
        let inside = path.is_empty()
            || holds(&mut self.files.range(below.clone()..).map(|(path, _)| path))
            || holds(&mut self.links.range(below.clone()..).map(|(path, _)| path));
        Ok(inside.then_some(Entry::Directory))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.files.get(path).cloned().ok_or_else(|| "no such file".to_owned())
    }
}

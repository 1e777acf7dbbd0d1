//! The workspace as it lies on disk.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::Home;

/// Every file of the workspace with its content and the time it was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<PathBuf, (Vec<u8>, SystemTime)>);

impl Files {
    pub(super) fn of(home: &Home) -> Self {
        let mut files = BTreeMap::new();
        collect(&home.workspace(), &mut files);
        Self(files)
    }

    /// How many are neither a caller's chain nor one of its fresh files.
    pub(super) fn strays(&self) -> usize {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        self.0
            .keys()
            .map(name)
            .filter(|name| name.starts_with('.') || !name.ends_with(".txt"))
            .count()
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (Vec<u8>, SystemTime)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let written = path.metadata().unwrap().modified().unwrap();
            files.insert(path.clone(), (std::fs::read(&path).unwrap(), written));
        }
    }
}

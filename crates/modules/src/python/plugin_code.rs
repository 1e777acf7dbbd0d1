//! The files that a plugin of an A2E host may read in the folder of the host's file.
//!
//! The host's file holds the host's token, and operators keep other files beside it. So the folder itself is not
//! opened: only single code files, folders of code, and the paths in the plugin's metadata are. They are searched at
//! every start.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use serde_json::{Map, Value};

/// The most paths, since each is a mount of its own.
const MOST: usize = 1_024;
/// The most names of the folder that are read.
const LOOKED_AT: usize = 10_000;
/// The folder of packages in many projects.
const INNER: &str = "src";

/// The paths that a plugin may read and list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PluginSight {
    /// Files, and folders with everything beneath.
    pub(super) readable: Vec<PathBuf>,
    /// Folders that Python lists to find code.
    pub(super) listable: Vec<PathBuf>,
}

impl PluginSight {
    /// The code in `folder`, and the paths in the plugin's `metadata` there or elsewhere, but never `host_file`.
    pub(super) fn of(
        folder: &Path,
        host_file: Option<&Path>,
        metadata: &Map<String, Value>,
    ) -> Self {
        let mut sight = Self {
            readable: code_in(folder),
            listable: vec![folder.to_owned()],
        };
        let inner = folder.join(INNER);
        if !is_code(&inner) {
            sight.readable.extend(code_in(&inner));
            sight.listable.push(inner);
        }
        // Real paths are compared: a name in the metadata may lead there by a link.
        let hidden = [Some(folder), host_file]
            .into_iter()
            .flatten()
            .filter_map(|path| path.canonicalize().ok());
        let hidden: Vec<PathBuf> = hidden.collect();
        let holds_host_file = |path: &Path| hidden.iter().any(|one| one.starts_with(path));
        let named = metadata
            .values()
            .flat_map(texts)
            .filter_map(|text| named_path(folder, text));
        sight
            .readable
            .extend(named.filter(|path| !holds_host_file(path)));
        sight.readable.sort();
        sight.readable.dedup();
        sight.readable.truncate(MOST);
        sight
    }
}

/// The files and folders of code in a folder. Links are left out: they may lead anywhere.
fn code_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(dir) = Dir::open_ambient_dir(folder, ambient_authority()) else {
        return Vec::new();
    };
    let Ok(entries) = dir.entries() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.take(LOOKED_AT).flatten() {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
            continue;
        };
        let path = folder.join(&name);
        if (kind.is_file() && is_python(&name))
            || (kind.is_dir() && is_importable(&name) && is_code(&path))
        {
            found.push(path);
        }
    }
    found
}

fn is_python(name: &OsStr) -> bool {
    let path = Path::new(name);
    path.extension() == Some(OsStr::new("py")) && !is_hidden(name)
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether Python can import a folder by its name.
fn is_importable(name: &OsStr) -> bool {
    let is_of_name = |c: char| c == '_' || c.is_alphanumeric();
    name.to_str().is_some_and(|name| {
        name.chars().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a folder has code right in it, or a package: a folder that only groups packages has no file of its own.
fn is_code(folder: &Path) -> bool {
    let Ok(dir) = Dir::open_ambient_dir(folder, ambient_authority()) else {
        return false;
    };
    let Ok(entries) = dir.entries() else {
        return false;
    };
    entries.take(LOOKED_AT).flatten().any(|entry| {
        let name = entry.file_name();
        let is_package =
            || is_importable(&name) && dir.exists(Path::new(&name).join("__init__.py"));
        is_python(&name) || (folder.file_name() != Some(OsStr::new(INNER)) && is_package())
    })
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The path in a text of the metadata, if it exists: an absolute path, or one in the folder. Within the folder, hidden
/// names and links are refused, also when the text reaches them another way.
fn named_path(folder: &Path, text: &str) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let given = folder.join(text);
    let real = given.canonicalize().ok()?;
    let is_plain = |component: Component<'_>| match component {
        Component::Normal(name) => !is_hidden(name),
        Component::CurDir | Component::RootDir | Component::ParentDir | Component::Prefix(_) => {
            false
        }
    };
    match real.strip_prefix(&folder) {
        Ok(within) => (within.components().all(is_plain) && given == real).then_some(real),
        Err(_) => Path::new(text).is_absolute().then_some(real),
    }
}

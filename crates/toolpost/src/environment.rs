//! The one module that reads the environment and the user's files.
#![expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the environment and files"
)]

mod agent;
mod cassette;
mod children;
mod configuration;
mod credentials;
mod editor;
mod looking;
mod mcp;
mod module_files;
mod saving;
mod scaffold;
mod secrets;
mod terminal;

use std::{
    io::Read,
    path::{Component, Path, PathBuf},
};

use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};
use sha2::{Digest, Sha256};

use crate::exit::UsageError;

pub(crate) use agent::RunningAgent;
pub(crate) use cassette::{create_temporary_data_dir, is_file, read_cassette, write_cassette};
pub(crate) use children::child_variables;
pub(crate) use configuration::{check_user_file, home, policy_file, user_file};
pub(crate) use credentials::credentials;
pub(crate) use editor::edit;
pub(crate) use looking::{blobs_to_look_at, credentials_to_look_at, rules_to_look_at};
pub(crate) use mcp::{mcp_caches, mcp_values, pins_to_look_at};
pub(crate) use module_files::{is_crate_without_manifest, module_path, pyproject_of};
pub(crate) use saving::{AtomicFileWriter, FileReadAccess};
pub(crate) use scaffold::{write_new_file, write_new_folder};
pub(crate) use secrets::secrets;
pub(crate) use terminal::{ControllingTerminal, TerminalInput};

/// The largest token file or argument text that is read.
const MAX_INPUT: u64 = 16 << 20;

/// The workspace of a command: the given folder or the current one, as a real path.
pub(crate) fn workspace(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = match given {
        Some(folder) => folder.to_owned(),
        None => std::env::current_dir().context("the current folder cannot be found")?,
    };
    let real = std::fs::canonicalize(&folder)
        .with_context(|| format!("the workspace `{}` cannot be opened", folder.display()))?;
    if !real.is_dir() {
        return Err(UsageError(format!(
            "the workspace `{}` is not a folder",
            folder.display()
        ))
        .into());
    }
    Ok(real)
}

/// The real path of a file, as far as it can be resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// An absolute path without `..`, with links before a `..` resolved, so that it means the same from any folder. A path
/// in this form stays as it was written.
pub(crate) fn whole_path(path: &Path) -> PathBuf {
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !leads_up {
        return absolute;
    }
    let mut whole = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                whole = real_path(&whole);
                whole.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

/// The default data directory of a workspace.
pub(crate) fn default_data_dir(workspace: &Path) -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| UsageError("neither XDG_STATE_HOME nor HOME is set\nhint: give the folder for the record with `--data-dir DIR`".into()))?;
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    Ok(state.join("toolpost").join(const_hex::encode(&digest[..8])))
}

/// The folder of fetched modules: the given one, or the default.
pub(crate) fn cache_dir(given: Option<&Path>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let usual =
        || absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let cache = match given {
        Some(given) => std::path::absolute(given).unwrap_or_else(|_| given.to_owned()),
        None => usual()?.join("toolpost"),
    };
    Some(cache)
}

/// The value of a variable, for example one in a mount plan.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This binary, for starting further processes of it. The path is the kernel's link: the file may be replaced while
/// the host runs, and its processes must be of the same build.
pub(crate) fn this_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        Some(link)
    } else {
        std::env::current_exe().ok()
    }
}

/// The path of this program for other programs.
pub(crate) fn program_path() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// Every stream of events is an open file, and the usual limit is a thousand. The limit is raised to the system's
/// maximum.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::info!(%error, "the limit of open files cannot be raised");
    }
}

/// The log filter, in the form of `RUST_LOG`.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var("TOOLPOST_LOG").ok()
}

/// A token from a file, without the line end.
pub(crate) fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the token file `{}` cannot be read", path.display()))?;
    let token = text.trim();
    if token.len() < 16 || token.contains(char::is_whitespace) {
        let message = format!(
            "`{}` must contain one token of at least 16 characters without spaces",
            path.display()
        );
        return Err(UsageError(message).into());
    }
    Ok(token.to_owned())
}

/// A token of another host, of any length.
fn read_any_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the token file `{}` cannot be read", path.display()))?;
    match text.trim() {
        "" => Err(UsageError(format!("`{}` contains no token", path.display())).into()),
        token => Ok(token.to_owned()),
    }
}

/// The token for a host elsewhere: from a file, or from the environment.
pub(crate) fn given_token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    match file {
        Some(path) => read_any_token(path).map(Some),
        None => Ok(std::env::var("TOOLPOST_TOKEN")
            .ok()
            .filter(|token| !token.is_empty())),
    }
}

/// Arguments from a file, or from standard input for `-`.
pub(crate) fn read_arguments(from: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    if from == "-" {
        std::io::stdin()
            .take(MAX_INPUT)
            .read_to_string(&mut text)
            .context("standard input cannot be read")?;
    } else {
        let file =
            std::fs::File::open(from).with_context(|| format!("`{from}` cannot be opened"))?;
        file.take(MAX_INPUT)
            .read_to_string(&mut text)
            .with_context(|| format!("`{from}` cannot be read"))?;
    }
    Ok(text)
}

/// A file, or standard input if there is none or it is `-`.
pub(crate) fn open_input(path: Option<&Path>) -> anyhow::Result<Box<dyn Read>> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        return Ok(Box::new(std::io::stdin().lock()));
    };
    let file = std::fs::File::open(path)
        .with_context(|| format!("`{}` cannot be opened", path.display()))?;
    anyhow::ensure!(
        !file.metadata()?.is_dir(),
        "`{}` is a folder",
        path.display()
    );
    Ok(Box::new(file))
}

/// The current time, for remaining times.
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The nearest folder above `path` that exists, for `doctor`.
pub(crate) fn home_of(path: &Path) -> PathBuf {
    path.ancestors()
        .find(|part| part.exists())
        .unwrap_or(Path::new("/"))
        .to_owned()
}

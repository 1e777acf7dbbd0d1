//! The paths of configuration files of the machine and the user, and the check for write access of other users.

use std::{
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rustix::process::geteuid;

use crate::exit::UsageError;

/// The policy of the machine's owner.
const POLICY_FILE: &str = "/etc/toolpost/policy.yaml";

/// The user's home folder, if it is set.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// The path of the user's own configuration, which may not exist.
pub(crate) fn user_file() -> Option<PathBuf> {
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")))?;
    Some(folder.join("toolpost/toolpost.yaml"))
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// The required owner of a file, and its permitted writers.
enum FileOwnerRequirement {
    /// Owned by root and writable for its owner alone.
    Root,
    /// Owned by root or this user, and writable for its owner alone.
    RootOrMe,
    /// Owned by root or this user. The owner's group may write it: on many systems it has no other members.
    MyGroup,
}

/// The policy file and whether it exists. A file that other users could have written is refused, and so is one that
/// cannot be checked: its denials must not depend on luck.
pub(crate) fn policy_file(given: Option<&Path>) -> anyhow::Result<(PathBuf, bool)> {
    let path = given.unwrap_or(Path::new(POLICY_FILE)).to_owned();
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && given.is_none() => {
            return Ok((path, false));
        }
        Err(error) => {
            let message = format!("the policy `{}` cannot be read: {error}", path.display());
            return Err(UsageError(message).into());
        }
        Ok(_) => {}
    }
    match given {
        Some(_) => check(&path, "the policy", &FileOwnerRequirement::RootOrMe)?,
        None => {
            check(&path, "the policy", &FileOwnerRequirement::Root)?;
            // A user with write access to the folder can replace the file.
            check(
                path.parent().unwrap_or(&path),
                "the folder of the policy",
                &FileOwnerRequirement::Root,
            )?;
        }
    }
    Ok((path, true))
}

/// Refuses a file of the user's that another user could have written.
pub(crate) fn check_user_file(path: &Path) -> anyhow::Result<()> {
    check(path, "your configuration", &FileOwnerRequirement::MyGroup)
}

fn check(path: &Path, file: &str, guarded: &FileOwnerRequirement) -> anyhow::Result<()> {
    let shown = path.display();
    let metadata =
        std::fs::metadata(path).with_context(|| format!("{file} `{shown}` cannot be read"))?;
    let owner = metadata.uid();
    let others = metadata.mode();
    let (mine, writers) = match guarded {
        FileOwnerRequirement::Root => (false, 0o022),
        FileOwnerRequirement::RootOrMe => (true, 0o022),
        FileOwnerRequirement::MyGroup => (true, 0o002),
    };
    if owner != 0 && !(mine && owner == geteuid().as_raw()) {
        let wanted = if mine {
            "not to root or you"
        } else {
            "not to root"
        };
        let message = format!(
            "{file} `{shown}` belongs to user {owner}, {wanted}\nhint: change its owner with `chown`"
        );
        return Err(UsageError(message).into());
    }
    if others & writers != 0 {
        let message = format!(
            "{file} `{shown}` is writable for other users (mode {:03o})\nhint: chmod go-w '{shown}'",
            others & 0o777
        );
        return Err(UsageError(message).into());
    }
    Ok(())
}

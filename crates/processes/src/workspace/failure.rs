//! Errors of the way to a file, for all file tools, with their messages.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::fs::FileType;
use toolpost_model::{ErrorClass, ToolFailure};

use super::{
    PathRefusal,
    names::{shown, shown_path, similar},
};

/// Why a path could not be resolved or opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PathError {
    /// The text was refused.
    #[error(transparent)]
    Refused(#[from] PathRefusal),
    /// A link, or `..` after one, leads out.
    #[error("`{}` leaves the workspace{}", shown(.given), .link.as_ref().map(FollowedLink::told).unwrap_or_default())]
    Leaves {
        given: String,
        link: Option<FollowedLink>,
    },
    /// A circle of links, or names that are swapped all the time.
    #[error("`{}` leads through too many links or levels", shown(.given))]
    TooManySteps { given: String },
    /// A file where a directory is needed.
    #[error("`{}` cannot be reached: `{}` is not a directory", shown(.given), shown_path(.at))]
    NotADirectory { given: String, at: PathBuf },
    /// No file of that name.
    #[error("`{}` does not exist{}", shown(.given), .within.as_ref().map(|at| format!(": there is no `{}`", shown(at))).unwrap_or_default())]
    NotFound {
        given: String,
        within: Option<String>,
        similar: Vec<String>,
    },
    /// A directory where a file is needed.
    #[error("`{}` is a directory", shown(.given))]
    IsDirectory { given: String },
    /// A pipe, a socket or a device.
    #[error("`{}` is {kind}, not a regular file", shown(.given))]
    Special { given: String, kind: &'static str },
    /// The path is a root, or a directory that contains one.
    #[error("`{}` cannot be moved or deleted: the root `{}` is {}", shown(.given), shown(&.root.to_string_lossy()), .relation)]
    HoldsRoot {
        given: String,
        root: PathBuf,
        relation: &'static str,
    },
    /// `a/..` has no name that could be moved or deleted.
    #[error("`{}` does not name an entry of its directory", shown(.given))]
    NoName { given: String },
    /// Another file has the name than a moment before.
    #[error("`{}` was replaced while it was being opened", shown(.given))]
    Swapped { given: String },
    /// A rule closes the path to the call.
    #[error("a rule denies this call access to `{}`", shown(.given))]
    Kept { given: String },
    /// A directory to be moved or deleted contains paths that rules close to the call.
    #[error("`{}` contains paths that a rule denies to this call", shown(.given))]
    HoldsKept { given: String },
    /// Path rules exist, and the directory has too many names to check them all.
    #[error("`{}` is too large to check for paths that rules deny to this call", shown(.given))]
    TooManyToAsk { given: String },
    /// The system's error.
    #[error("cannot open `{}`: {source}", shown(.given))]
    Io { given: String, source: io::Error },
}

/// A link on the way of the lookup.
#[derive(Debug)]
pub struct FollowedLink {
    /// The link's path.
    pub(crate) link: PathBuf,
    /// The link's target.
    pub(crate) target: PathBuf,
}

impl FollowedLink {
    fn told(&self) -> String {
        format!(
            ": the link `{}` points to `{}`",
            shown_path(&self.link),
            shown_path(&self.target)
        )
    }
}

/// The path is a pipe, a socket or a device.
pub fn special(given: &str, file_type: FileType) -> PathError {
    let kind = match file_type {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        FileType::RegularFile | FileType::Directory | FileType::Unknown => "of unknown type",
    };
    PathError::Special {
        given: given.to_owned(),
        kind,
    }
}

impl PathError {
    /// The error for `rest`, which is missing in `parent` at `at`. Suggests similar names that the caller `may_see`.
    pub fn not_found(
        given: String,
        (parent, at): (&Dir, &Path),
        rest: &[OsString],
        may_see: impl Fn(&Path) -> bool,
    ) -> Self {
        let wanted = rest
            .first()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let similar = similar(parent, &wanted, |name| may_see(&at.join(name)));
        let similar = similar
            .into_iter()
            .map(|name| shown_path(&at.join(name)))
            .collect();
        let within = (rest.len() > 1).then(|| at.join(&*wanted).to_string_lossy().into_owned());
        Self::NotFound {
            given,
            within,
            similar,
        }
    }

    /// The error as the failure of a call. Nothing was changed on the way to a file.
    pub fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::of(self.class(), self.to_string()).untouched();
        match self {
            Self::Refused(PathRefusal::ReadOnlyRoot { .. }) => failure
                .code("read_only_root")
                .hint("files in this root can only be read"),
            Self::Refused(_) => failure,
            Self::Leaves { .. } => failure
                .code("leaves_workspace")
                .hint("links are followed only inside the workspace"),
            Self::TooManySteps { .. } => failure.code("too_many_links"),
            Self::NotADirectory { .. } => failure.code("not_a_directory"),
            Self::NotFound { similar, .. } => {
                let hint = match similar.as_slice() {
                    [] => "use `list_directory` to see the names".to_owned(),
                    names => format!("did you mean `{}`?", names.join("` or `")),
                };
                failure.code("not_found").hint(hint)
            }
            Self::IsDirectory { .. } => failure
                .code("is_directory")
                .hint("use `list_directory` to see its content"),
            Self::Special { .. } => failure.code("not_a_regular_file"),
            Self::HoldsRoot { .. } => failure.code("holds_root"),
            Self::NoName { .. } => failure
                .code("no_name")
                .hint("give the path without `..` at its end"),
            Self::Swapped { .. } => failure.code("swapped").hint("call again"),
            Self::Kept { .. } => failure.code("kept_by_rule"),
            Self::HoldsKept { .. } => failure
                .code("kept_by_rule")
                .hint("move or delete its entries one by one"),
            Self::TooManyToAsk { .. } => failure
                .code("kept_by_rule")
                .hint("move or delete smaller parts of it"),
            Self::Io { source, .. } => failure.code(io_code(&source)),
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Leaves { .. } | Self::HoldsRoot { .. } => ErrorClass::SandboxViolation,
            Self::Kept { .. } | Self::HoldsKept { .. } | Self::TooManyToAsk { .. } => {
                ErrorClass::PermissionDenied
            }
            Self::TooManySteps { .. }
            | Self::NotADirectory { .. }
            | Self::NotFound { .. }
            | Self::IsDirectory { .. }
            | Self::Special { .. }
            | Self::NoName { .. }
            | Self::Swapped { .. }
            | Self::Io { .. } => ErrorClass::ExecutionFailed,
        }
    }
}

/// The code of a system error. Callers branch on the code; the message has the details.
pub fn io_code(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission_denied",
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk_full",
        io::ErrorKind::ReadOnlyFilesystem => "read_only",
        io::ErrorKind::InvalidFilename => "name_too_long",
        _ => "io",
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use toolpost_model::ErrorClass;

    use super::PathError;

    #[test]
    fn system_errors_get_codes_that_callers_can_branch_on() {
        let check = |errno: rustix::io::Errno, code: &str| {
            let failure = PathError::Io {
                given: "a.txt".to_owned(),
                source: io::Error::from(errno),
            }
            .into_failure();
            assert_eq!(failure.class, ErrorClass::ExecutionFailed);
            assert_eq!(failure.code.as_deref(), Some(code));
            assert_eq!(failure.untouched, Some(true));
            assert!(
                failure.message.starts_with("cannot open `a.txt`: "),
                "{}",
                failure.message
            );
        };
        check(rustix::io::Errno::ACCESS, "permission_denied");
        check(rustix::io::Errno::PERM, "permission_denied");
        check(rustix::io::Errno::NOSPC, "disk_full");
        check(rustix::io::Errno::DQUOT, "disk_full");
        check(rustix::io::Errno::ROFS, "read_only");
        check(rustix::io::Errno::NAMETOOLONG, "name_too_long");
        check(rustix::io::Errno::MFILE, "io");
    }
}

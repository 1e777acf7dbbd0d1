//! The files that a call would run, as an approval covers them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::visible_line;

/// How many digits of a digest are shown to a person.
const SHOWN_DIGITS: usize = 12;

/// A file inside the roots that a call names as its program or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFile {
    /// The name in the command.
    pub name: String,
    /// The absolute path with links resolved.
    pub path: String,
    /// Its content when it was looked at.
    pub content: ProgramContent,
}

/// The identity of a file's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum ProgramContent {
    /// The digest of all its bytes.
    Digest {
        /// SHA-256, in hexadecimal digits.
        sha256: String,
        /// Its size.
        bytes: u64,
    },
    /// The file is too large to be hashed for each question, so its inode and the time of its last change stand for it.
    Identity {
        /// Its size.
        bytes: u64,
        /// The device and the inode.
        inode: String,
        /// The time of its last change, as the file system keeps it (`ctime`).
        changed_at: String,
    },
    /// There is no such file.
    Absent,
    /// A link leads out of the roots.
    Outside {
        /// Where the link leads.
        target: String,
    },
    /// It cannot be read.
    Unreadable {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for ProgramContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digest { sha256, bytes } => {
                write!(
                    f,
                    "sha256 {}, {bytes} bytes",
                    sha256.get(..SHOWN_DIGITS).unwrap_or(sha256)
                )
            }
            Self::Identity {
                bytes,
                inode,
                changed_at,
            } => {
                write!(f, "{bytes} bytes, inode {inode}, changed at {changed_at}")
            }
            Self::Absent => f.write_str("not there"),
            Self::Outside { target } => {
                write!(f, "a link out of the roots to `{}`", visible_line(target))
            }
            Self::Unreadable { reason } => write!(f, "cannot be read: {}", visible_line(reason)),
        }
    }
}

/// A file that changed after a person was asked about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// The name in the command.
    pub name: String,
    /// The file at the time of the question. `None`: the call did not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ProgramFile>,
    /// The file now. `None`: the call no longer names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<ProgramFile>,
}

impl ProgramChange {
    /// The files that differ between two looks at one call.
    pub fn between(before: &[ProgramFile], now: &[ProgramFile]) -> Vec<Self> {
        let named = |files: &[ProgramFile], name: &str| {
            files.iter().find(|file| file.name == name).cloned()
        };
        let gone = before
            .iter()
            .filter(|file| named(now, &file.name).is_none());
        let all = now.iter().chain(gone).map(|file| file.name.as_str());
        let pairs = all.map(|name| Self {
            name: name.to_owned(),
            before: named(before, name),
            now: named(now, name),
        });
        pairs.filter(|change| change.before != change.now).collect()
    }
}

impl fmt::Display for ProgramChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moved = match (&self.before, &self.now) {
            (Some(before), Some(now)) => before.path != now.path,
            (Some(_), None) | (None, Some(_)) | (None, None) => false,
        };
        let told = |file: &Option<ProgramFile>| match file {
            None => "not named".to_owned(),
            Some(file) if moved => format!("{} ({})", visible_line(&file.path), file.content),
            Some(file) => file.content.to_string(),
        };
        write!(
            f,
            "`{}`: {} -> {}",
            visible_line(&self.name),
            told(&self.before),
            told(&self.now)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{ProgramChange, ProgramContent, ProgramFile};

    fn file(name: &str, path: &str, digest: &str) -> ProgramFile {
        let content = ProgramContent::Digest {
            sha256: digest.repeat(64),
            bytes: 3,
        };
        ProgramFile {
            name: name.to_owned(),
            path: path.to_owned(),
            content,
        }
    }

    #[test]
    fn a_change_tells_what_was_and_what_is() {
        let before = [
            file("a", "/w/a", "1"),
            file("b", "/w/b", "2"),
            file("c", "/w/c", "3"),
        ];
        let absent = ProgramFile {
            content: ProgramContent::Absent,
            ..file("d", "/w/d", "")
        };
        let now = [
            file("a", "/w/a", "1"),
            file("b", "/w/b", "4"),
            file("c", "/w/x\u{202e}", "3"),
            absent,
        ];
        let told: Vec<String> = ProgramChange::between(&before, &now)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "`b`: sha256 222222222222, 3 bytes -> sha256 444444444444, 3 bytes",
                "`c`: /w/c (sha256 333333333333, 3 bytes) -> /w/x\\u{202e} (sha256 333333333333, 3 bytes)",
                "`d`: not named -> not there",
            ]
        );
        assert_eq!(
            ProgramChange::between(&now[..1], &now)[0].now,
            Some(now[1].clone())
        );
        assert_eq!(ProgramChange::between(&before, &before), []);
        assert_eq!(
            ProgramChange::between(&before, &before[1..])[0].to_string(),
            "`a`: sha256 111111111111, 3 bytes -> not named"
        );
    }
}

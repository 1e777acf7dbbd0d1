//! Errors of writing.

use std::io;

use toolpost_model::ToolFailure;
use toolpost_processes::{CallStopError, PathError, io_code, shown};

use super::CONTENT_BYTES;

/// Why nothing was written, or why that is uncertain.
#[derive(Debug, thiserror::Error)]
pub(in crate::files) enum WriteError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("the directory `{}` does not exist", shown(.path))]
    NoDirectory { path: String },
    #[error("`{}` has changed: its content has sha256 {}, expected {}", shown(.path), start(.found), start(.expected))]
    Changed {
        path: String,
        found: String,
        expected: String,
    },
    #[error("`{}` does not exist, expected content with sha256 {}", shown(.path), start(.expected))]
    Gone { path: String, expected: String },
    #[error("another program changed `{}` while it was being written", shown(.path))]
    ChangedMeanwhile { path: String },
    #[error("`{}` has {size} bytes, and files up to {CONTENT_BYTES} can be edited", shown(.path))]
    TooLarge { path: String, size: u64 },
    #[error("`{}` is not UTF-8 text", shown(.path))]
    NotText { path: String },
    #[error("cannot write `{}`: {source}", shown(.path))]
    Io { path: String, source: io::Error },
    #[error("`{}` was written, but could not be synced to disk: {source}", shown(.path))]
    NotDurable { path: String, source: io::Error },
}

/// The first characters of a digest, enough to tell two apart.
fn start(digest: &str) -> String {
    digest.chars().take(12).collect()
}

impl WriteError {
    pub(in crate::files) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Path(error @ PathError::IsDirectory { .. }) => {
                error.into_failure().hint("name the file to write in it")
            }
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NoDirectory { .. } => failure
                .code("not_found")
                .hint("set `create_directories: true` to create it")
                .untouched(),
            Self::Changed { .. } | Self::Gone { .. } | Self::ChangedMeanwhile { .. } => failure
                .code("changed")
                .hint("read the file again before writing")
                .untouched(),
            Self::TooLarge { .. } => failure.code("too_large").untouched(),
            Self::NotText { .. } => failure
                .code("not_text")
                .hint("edits need text; `write_file` can replace the whole file")
                .untouched(),
            Self::Io { source, .. } => failure.code(io_code(&source)).untouched(),
            Self::NotDurable { .. } => failure.code("not_durable"),
        }
    }
}

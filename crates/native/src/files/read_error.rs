//! Errors of the file tools that only read.

use std::io;

use toolpost_model::{ErrorClass, ToolFailure};
use toolpost_processes::{CallStopError, FileWorkInterruption, PathError, io_code, shown};

use super::read_file::{SCAN_BYTES, lines};

/// Why a file tool has nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileReadError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("`{}` is not a directory", shown(.given))]
    NotADirectory { given: String },
    #[error("`{}` has only {}, so there is no line {offset}", shown(.path), lines(*.total))]
    PastTheEnd {
        path: String,
        total: u64,
        offset: u64,
    },
    #[error("line {offset} of `{}` is beyond the first {} MiB, the limit of a scan", shown(.path), SCAN_BYTES >> 20)]
    TooFar { path: String, offset: u64 },
    #[error("cannot {doing} `{}`: {source}", shown(.path))]
    Io {
        doing: &'static str,
        path: String,
        source: io::Error,
    },
}

impl FileReadError {
    pub(super) fn unreadable(path: &str, error: impl Into<FileWorkInterruption>) -> Self {
        Self::interrupted("read", path, error)
    }

    pub(super) fn interrupted(
        doing: &'static str,
        path: &str,
        error: impl Into<FileWorkInterruption>,
    ) -> Self {
        match error.into() {
            FileWorkInterruption::Stopped(stopped) => Self::Stopped(stopped),
            FileWorkInterruption::Io(source) => Self::Io {
                doing,
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(super) fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NotADirectory { .. } => failure
                .code("not_a_directory")
                .hint("use `read_file` to read a file"),
            Self::PastTheEnd { .. } => {
                ToolFailure::of(ErrorClass::InvalidArguments, failure.message).code("past_the_end")
            }
            Self::TooFar { .. } => failure.code("too_large"),
            Self::Io { source, .. } => failure.code(io_code(&source)),
        }
        .untouched()
    }
}

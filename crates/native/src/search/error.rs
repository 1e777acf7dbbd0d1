//! Errors of a search.

use toolpost_model::ToolFailure;
use toolpost_processes::{CallStopError, PathError, shown};

use super::{
    grep::{ExpressionError, FileTypeError},
    pattern::GlobPatternError,
};

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SearchError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("`{}` is a file, not a directory", shown(.given))]
    IsFile { given: String },
    #[error(transparent)]
    Pattern(#[from] GlobPatternError),
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error(transparent)]
    FileType(#[from] FileTypeError),
    #[error("the call was canceled before the search was done")]
    Stopped(#[from] CallStopError),
    #[error("cannot encode the result: {0}")]
    Result(#[source] serde_json::Error),
}

impl SearchError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::Path(error) => error.into_failure(),
            Self::IsFile { .. } => ToolFailure::new(message)
                .code("not_a_directory")
                .hint("use `grep` to search a single file, `file_info` to describe it"),
            // `check` refuses these already, so they only occur if a tool is called without it.
            Self::Pattern(_) | Self::Expression(_) | Self::FileType(_) => {
                ToolFailure::invalid(message)
            }
            Self::Stopped(stopped) => ToolFailure {
                message,
                ..stopped.into_failure()
            },
            Self::Result(_) => ToolFailure::new(message),
        }
        .untouched()
    }
}

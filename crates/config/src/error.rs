//! Errors in configuration files, with their places.

use std::{fmt, io, sync::Arc};

use crate::{ByteSize, located::FilePosition, snippet, yaml::MAX_BYTES};

/// An error in a configuration file.
///
/// Its `Display` is the text for people: the message, the place, the line with a caret, the hint.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ConfigError {
    /// The file, by the name that the caller gave.
    pub file: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The column in characters, from 1; 0 for the whole file.
    pub column: u32,
    /// The message.
    pub message: String,
    /// A suggestion to fix it.
    pub hint: Option<String>,
    snippet: Option<SourceSnippet>,
    cause: Option<Arc<io::Error>>,
}

/// A source line that is safe to print.
#[derive(Clone, Debug)]
struct SourceSnippet {
    line: String,
    caret: usize,
}

impl ConfigError {
    /// An error about the file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Self {
        let nowhere = FilePosition::default();
        ConfigSourceText {
            name: file,
            text: "",
        }
        .error(ConfigComplaint::new(nowhere, message))
    }

    /// The file could not be read.
    pub(crate) fn unreadable(file: &str, cause: io::Error) -> Self {
        Self {
            cause: Some(Arc::new(cause)),
            ..Self::of_file(file, "the file cannot be read")
        }
    }

    /// The file exceeds the size limit.
    pub(crate) fn too_large(file: &str) -> Self {
        Self::of_file(
            file,
            format!(
                "the file is larger than the limit of {}",
                ByteSize::new(MAX_BYTES as u64)
            ),
        )
    }

    /// Whether the file does not exist, which is no error for some callers.
    pub fn is_missing_file(&self) -> bool {
        self.cause
            .as_ref()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        let gutter = self.line.to_string().len();
        write!(f, "\n{:gutter$}--> {}", "", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if let Some(SourceSnippet { line, caret }) = &self.snippet {
            write!(
                f,
                "\n{:gutter$} |\n{} | {line}\n{:gutter$} | {:caret$}^",
                "", self.line, "", ""
            )?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The most errors of one output: more are not read before the next run of the command.
pub(crate) const MAX_ERRORS: usize = 20;

/// All errors that were found; never empty.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    left_out: usize,
}

impl ConfigErrors {
    /// All errors of one operation; never empty.
    pub(crate) fn of(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        Self {
            errors,
            left_out: 0,
        }
    }

    /// All errors of one file. Only the first ones get a snippet: a hostile file could cause thousands.
    pub(crate) fn of_source(
        errors: Vec<ConfigError>,
        mut complaints: Vec<ConfigComplaint>,
        source: ConfigSourceText<'_>,
    ) -> Self {
        complaints.sort_by_key(|complaint| complaint.at);
        let left_out = complaints.len().saturating_sub(MAX_ERRORS);
        complaints.truncate(MAX_ERRORS);
        let found = complaints
            .into_iter()
            .map(|complaint| source.error(complaint));
        Self {
            left_out,
            ..Self::of(errors.into_iter().chain(found).collect())
        }
    }

    /// The errors, in the order of their lines.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.errors.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self::of(vec![error])
    }
}

impl IntoIterator for ConfigErrors {
    type Item = ConfigError;
    type IntoIter = std::vec::IntoIter<ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n\n" };
            write!(f, "{separator}{error}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

/// An error before its file is known.
#[derive(Clone, Debug)]
pub(crate) struct ConfigComplaint {
    at: FilePosition,
    message: String,
    hint: Option<String>,
}

impl ConfigComplaint {
    pub(crate) fn new(at: FilePosition, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn line(&self) -> u32 {
        self.at.line
    }

    pub(crate) fn hint(self, hint: impl Into<Option<String>>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }
}

/// The text that complaints refer to.
#[derive(Clone, Copy)]
pub(crate) struct ConfigSourceText<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl ConfigSourceText<'_> {
    /// A place in records and notices: `toolpost.yaml:4`.
    pub(crate) fn place(self, at: FilePosition) -> String {
        if at.line == 0 {
            self.name.to_owned()
        } else {
            format!("{}:{}", self.name, at.line)
        }
    }

    pub(crate) fn error(self, complaint: ConfigComplaint) -> ConfigError {
        let ConfigComplaint { at, message, hint } = complaint;
        ConfigError {
            file: self.name.to_owned(),
            line: at.line,
            column: at.column,
            message,
            hint,
            snippet: snippet::source_line(self.text, at)
                .map(|(line, caret)| SourceSnippet { line, caret }),
            cause: None,
        }
    }
}

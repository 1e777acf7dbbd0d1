//! Texts with references to values elsewhere: `${NAME}`, `${file:PATH}`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use toolpost_model::{Secret, holds_secret};

/// Variables with publicly known values. If they counted as secrets, every path would be redacted.
const PLAIN: [&str; 12] = [
    "HOME", "USER", "LOGNAME", "PATH", "PWD", "LANG", "SHELL", "TMPDIR", "TZ", "TERM", "HOSTNAME",
    "DISPLAY",
];

/// A text with references. Its literal parts may be secrets, so it does not print them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpText(Vec<McpPiece>);

/// A part of a text.
#[derive(Clone, PartialEq, Eq)]
pub enum McpPiece {
    /// Literal text.
    Plain(String),
    /// A variable of the host's environment.
    Variable {
        /// Its name.
        name: String,
        /// The value if the variable is not set.
        default: Option<String>,
    },
    /// The content of a file.
    File(PathBuf),
    /// The workspace: `${workspaceFolder}`.
    Workspace,
    /// The user's home directory: `${userHome}`.
    Home,
}

/// Why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpTextError {
    /// An editor's input variable, which would prompt its user.
    #[error("`${{input:{0}}}` is a prompt of an editor, and the host does not prompt")]
    Input(String),
    /// An unknown reference.
    #[error("`${{{0}}}` is an unknown reference")]
    Unknown(String),
    /// The end of the reference is missing.
    #[error("a reference begins with `${{` and is not closed")]
    Open,
}

impl McpTextError {
    /// A suggestion to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Input(_) => {
                "keep the value in a variable or a file, and write `${env:NAME}` or `${file:PATH}` instead"
            }
            Self::Unknown(_) => {
                "write `${NAME}`, `${NAME:-default}`, `${env:NAME}` or `${file:PATH}` with an absolute path or one beside \
                 this file, and `$${` for `${` itself"
            }
            Self::Open => "write `$${` for `${` itself",
        }
    }
}

/// The values behind references. They are not part of any file: the caller looks them up, since a library reads no
/// environment.
#[derive(Clone, Debug, Default)]
pub struct McpValues {
    /// Variables of the host's environment, as far as texts refer to them.
    pub variables: BTreeMap<String, Secret>,
    /// The contents of files, or the reason for a failure.
    pub files: BTreeMap<PathBuf, Result<Secret, String>>,
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

/// Why a text cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpUnresolved {
    /// A variable is missing.
    #[error("the variable `{0}` is not set in the host's environment")]
    Variable(String),
    /// A file cannot be used.
    #[error("`{}` {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// There is no such folder.
    #[error("there is no {0}")]
    Folder(&'static str),
}

/// A resolved text.
#[derive(Clone, Debug)]
pub struct ResolvedMcpText {
    /// The whole text.
    pub text: Secret,
    /// The resolved parts of it, which may be secrets.
    pub secrets: Vec<Secret>,
}

impl McpText {
    /// A text without references.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(vec![McpPiece::Plain(text.into())])
    }

    /// One reference and nothing else.
    pub(crate) fn of(piece: McpPiece) -> Self {
        Self(vec![piece])
    }

    /// Parses the references of a text. Their relative files begin in `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, McpTextError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, reference) = rest.split_at(at);
            if let Some(before) = before.strip_suffix('$') {
                plain.push_str(before);
                plain.push_str("${");
                rest = &reference[2..];
                continue;
            }
            plain.push_str(before);
            let (inner, after) = reference[2..].split_once('}').ok_or(McpTextError::Open)?;
            if !plain.is_empty() {
                pieces.push(McpPiece::Plain(std::mem::take(&mut plain)));
            }
            pieces.push(reference_of(inner, folder)?);
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() || pieces.is_empty() {
            pieces.push(McpPiece::Plain(plain));
        }
        Ok(Self(pieces))
    }

    /// Its parts.
    pub fn pieces(&self) -> &[McpPiece] {
        &self.0
    }

    /// The text, if it has no reference.
    pub fn as_plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [McpPiece::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// The same with its relative files resolved from a folder.
    #[must_use]
    pub(crate) fn beneath(mut self, folder: &Path) -> Self {
        for piece in &mut self.0 {
            if let McpPiece::File(path) = piece {
                *path = folder.join(&*path);
            }
        }
        self
    }

    /// Resolves the text.
    pub fn resolve(&self, values: &McpValues) -> Result<ResolvedMcpText, McpUnresolved> {
        let mut text = String::new();
        let mut secrets = Vec::new();
        let folder = |path: &Option<PathBuf>, what| {
            path.as_ref()
                .map(|path| path.display().to_string())
                .ok_or(McpUnresolved::Folder(what))
        };
        for piece in &self.0 {
            match piece {
                McpPiece::Plain(plain) => text.push_str(plain),
                McpPiece::Variable { name, default } => {
                    match (
                        values
                            .variables
                            .get(name)
                            .filter(|value| !value.reveal().is_empty()),
                        default,
                    ) {
                        (Some(value), _) => {
                            text.push_str(value.reveal());
                            if !PLAIN.contains(&name.as_str()) {
                                secrets.push(value.clone());
                            }
                        }
                        (None, Some(default)) => text.push_str(default),
                        (None, None) => return Err(McpUnresolved::Variable(name.clone())),
                    }
                }
                McpPiece::File(path) => {
                    let missing = || Err("was not read".to_owned());
                    let value = values.files.get(path).cloned().unwrap_or_else(missing);
                    let value = value.map_err(|why| McpUnresolved::File {
                        path: path.clone(),
                        why,
                    })?;
                    text.push_str(value.reveal());
                    secrets.push(value);
                }
                McpPiece::Workspace => text.push_str(&folder(&values.workspace, "workspace")?),
                McpPiece::Home => text.push_str(&folder(&values.home, "home directory")?),
            }
        }
        Ok(ResolvedMcpText {
            text: Secret::new(text),
            secrets,
        })
    }

    /// The secret in the file itself, if the name of the variable or header shows that its value is one.
    pub fn plain_secret(&self, name: &str) -> Option<&str> {
        let named =
            holds_secret(&name.replace('-', "_")) || name.eq_ignore_ascii_case("authorization");
        self.as_plain()
            .filter(|_| named)
            .map(secret_part)
            .filter(|text| text.len() >= 8)
    }
}

/// The secret part of a header's value, without a scheme such as `Bearer`.
fn secret_part(text: &str) -> &str {
    let text = text.trim();
    match text.split_once(' ') {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            rest.trim()
        }
        _ => text,
    }
}

fn reference_of(inner: &str, folder: &Path) -> Result<McpPiece, McpTextError> {
    let unknown = || McpTextError::Unknown(shown(inner));
    let variable = |text: &str| {
        let (name, default) = match text.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (text, None),
        };
        let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.len() <= 256
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        good.then(|| McpPiece::Variable {
            name: name.to_owned(),
            default,
        })
        .ok_or_else(unknown)
    };
    match inner {
        "workspaceFolder" => return Ok(McpPiece::Workspace),
        "userHome" => return Ok(McpPiece::Home),
        _ => {}
    }
    if let Some(name) = inner.strip_prefix("env:") {
        return variable(name);
    }
    if let Some(path) = inner.strip_prefix("file:") {
        let home = path == "~" || path.starts_with("~/");
        return match path {
            "" => Err(unknown()),
            _ if home => Err(unknown()),
            path => Ok(McpPiece::File(folder.join(path))),
        };
    }
    if let Some(name) = inner.strip_prefix("input:") {
        return Err(McpTextError::Input(shown(name)));
    }
    variable(inner)
}

fn shown(text: &str) -> String {
    crate::snippet::shown(text)
}

impl fmt::Debug for McpText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                McpPiece::Plain(_) => f.write_str("…")?,
                McpPiece::Variable { name, .. } => write!(f, "${{{name}}}")?,
                McpPiece::File(path) => write!(f, "${{file:{}}}", path.display())?,
                McpPiece::Workspace => f.write_str("${workspaceFolder}")?,
                McpPiece::Home => f.write_str("${userHome}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for McpPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        McpText::of(self.clone()).fmt(f)
    }
}

//! The source of a module, as plans write it: a text of one of several forms, or a table with a `type`.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use serde_json::Value;

use crate::ModuleSource;

/// Why a text or table is no source of a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleSourceError {
    /// It is empty.
    #[error("the source is empty")]
    Empty,
    /// Neither a text nor a table.
    #[error("a source must be a text, or a table with a `type`")]
    Type,
    /// The table lacks a key.
    #[error("a source of type `{of}` needs a text under `{key}`")]
    Missing {
        /// Its type.
        of: String,
        /// The missing key.
        key: &'static str,
    },
    /// An unknown type.
    #[error("the source type `{0}` is unknown; the types are git, file, zip, http and package")]
    UnknownType(String),
    /// An unsupported scheme.
    #[error("sources of the form `{0}` are not supported; {1}")]
    Scheme(String, &'static str),
    /// The password would be stored in the plan and shown in messages.
    #[error("the address contains a password, which is not allowed in a plan")]
    Password,
    /// It is no address.
    #[error("`{0}` does not name a repository or file")]
    NoAddress(String),
    /// A character that no address, reference or folder can have.
    #[error("the {what} `{text}` is invalid")]
    Malformed {
        /// The part.
        what: &'static str,
        /// As written.
        text: String,
    },
}

impl ModuleSource {
    /// Reads a source as plans write it. Relative paths begin in `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, ModuleSourceError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ModuleSourceError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(malformed("source", text));
        }
        if let Some(rest) = text.strip_prefix("git+") {
            return git(rest, base);
        }
        if let Some(rest) = text.strip_prefix("zip+") {
            return archive(rest, base);
        }
        if text.starts_with("https://") || text.starts_with("http://") {
            return archive(text, base);
        }
        if text.starts_with("file://") {
            let (address, subdirectory) = split_fragment(text)?;
            let path = file_path(address, base)?;
            return Ok(Self::Path(
                subdirectory.map_or(path.clone(), |inner| path.join(inner)),
            ));
        }
        if text.starts_with("\\\\") || is_drive(text) {
            return Err(ModuleSourceError::Scheme(
                text.to_owned(),
                "it is a path of another system",
            ));
        }
        if text.starts_with('~') {
            return Err(ModuleSourceError::Scheme(
                "~".to_owned(),
                "write the whole path",
            ));
        }
        if text.starts_with(['/', '.']) {
            return Ok(Self::Path(tidy(&base.join(text))));
        }
        if text.contains("://") {
            let hint = "write git+https, git+ssh, git+file, zip+https, https, a path or the name of a package";
            return Err(ModuleSourceError::Scheme(text.to_owned(), hint));
        }
        package(text)
    }

    /// Reads a source that may also be a table. Relative paths begin in `base`.
    pub fn of_value(value: &Value, base: &Path) -> Result<Self, ModuleSourceError> {
        let table = match value {
            Value::String(text) => return Self::parse(text, base),
            Value::Object(table) => table,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err(ModuleSourceError::Type);
            }
        };
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        let kind = text("type").ok_or(ModuleSourceError::Type)?;
        let needed = |key: &'static str| {
            text(key).ok_or_else(|| ModuleSourceError::Missing {
                of: kind.to_owned(),
                key,
            })
        };
        let subdirectory = text("subdirectory").map(inner_folder).transpose()?;
        match kind {
            "git" => {
                let url = needed("url")?;
                let url = git_address(url.strip_prefix("git+").unwrap_or(url), base)?;
                let reference = reference(text("ref").unwrap_or("main"))?;
                Ok(Self::Git {
                    url,
                    reference: Some(reference),
                    subdirectory,
                })
            }
            "file" => {
                let written = needed("path")?;
                // Without a dot it would be read as the name of a package.
                let dotted = format!("./{written}");
                let plain =
                    written.starts_with(|c: char| c.is_alphanumeric()) && !written.contains("://");
                match Self::parse(
                    if plain && !is_drive(written) {
                        &dotted
                    } else {
                        written
                    },
                    base,
                )? {
                    Self::Path(path) => Ok(Self::Path(
                        subdirectory.map_or(path.clone(), |inner| path.join(inner)),
                    )),
                    Self::Git { .. }
                    | Self::Archive { .. }
                    | Self::Package(_)
                    | Self::Unspoken { .. } => Err(malformed("path", written)),
                }
            }
            "zip" | "http" => {
                let url = needed("url")?;
                match archive(url.strip_prefix("zip+").unwrap_or(url), base)? {
                    Self::Archive {
                        url,
                        subdirectory: inner,
                    } => Ok(Self::Archive {
                        url,
                        subdirectory: subdirectory.or(inner),
                    }),
                    other => Ok(other),
                }
            }
            "package" => package(needed("name")?),
            other => Err(ModuleSourceError::UnknownType(other.to_owned())),
        }
    }
}

/// In the form of plans.
impl fmt::Display for ModuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = |subdirectory: &Option<String>| {
            subdirectory
                .as_ref()
                .map(|inner| format!("#subdirectory={inner}"))
                .unwrap_or_default()
        };
        match self {
            Self::Git {
                url,
                reference,
                subdirectory,
            } => {
                let reference = reference
                    .as_ref()
                    .map(|reference| format!("@{reference}"))
                    .unwrap_or_default();
                write!(f, "git+{url}{reference}{}", inner(subdirectory))
            }
            Self::Path(path) => path.display().fmt(f),
            Self::Archive { url, subdirectory } => write!(f, "zip+{url}{}", inner(subdirectory)),
            Self::Package(name) => f.write_str(name),
            Self::Unspoken { text, .. } => f.write_str(text),
        }
    }
}

fn malformed(what: &'static str, text: &str) -> ModuleSourceError {
    ModuleSourceError::Malformed {
        what,
        text: text.to_owned(),
    }
}

/// Parses the text after `git+`: address, `@reference`, `#subdirectory=…`.
fn git(rest: &str, base: &Path) -> Result<ModuleSource, ModuleSourceError> {
    let (address, subdirectory) = split_fragment(rest)?;
    // The user of `ssh://git@host/…` comes before the path, so only an `@` in the path begins a reference. An `@` at
    // the start of a name, as in `/@scope/repository`, belongs to the name. A reference may contain a `/` itself.
    let path_at = address
        .find("://")
        .and_then(|at| address[at + 3..].find('/').map(|path| at + 3 + path));
    let begins = |path: usize| {
        let mut marks = address[path..].rmatch_indices('@').map(|(at, _)| path + at);
        marks.find(|at| !address[..*at].ends_with('/'))
    };
    let at = path_at.and_then(begins);
    let (address, given) = match at {
        Some(at) => (&address[..at], Some(&address[at + 1..])),
        None => (address, None),
    };
    let reference = given.map(reference).transpose()?;
    Ok(ModuleSource::Git {
        url: git_address(address, base)?,
        reference,
        subdirectory,
    })
}

fn git_address(address: &str, base: &Path) -> Result<String, ModuleSourceError> {
    if address.starts_with("file://") {
        return Ok(format!("file://{}", file_path(address, base)?.display()));
    }
    let Some((scheme, rest)) = address.split_once("://") else {
        return Err(ModuleSourceError::Scheme(
            format!("git+{address}"),
            "write git+https, git+ssh or git+file",
        ));
    };
    if !matches!(scheme, "https" | "ssh") {
        return Err(ModuleSourceError::Scheme(
            format!("git+{scheme}"),
            "write git+https, git+ssh or git+file; other schemes can be changed in transit",
        ));
    }
    checked_address(address, rest)?;
    Ok(address.to_owned())
}

/// An address with a host and a path, without blanks and without a password.
fn checked_address(address: &str, rest: &str) -> Result<(), ModuleSourceError> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || path.is_empty() {
        return Err(ModuleSourceError::NoAddress(address.to_owned()));
    }
    // Programs would read such a host as an option.
    if address.contains(char::is_whitespace) || host.starts_with('-') {
        return Err(malformed("address", address));
    }
    match host.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => Err(ModuleSourceError::Password),
        Some((user, _)) if user.starts_with('-') => Err(malformed("address", address)),
        Some(_) | None => Ok(()),
    }
}

/// A name of a branch, tag or commit that git accepts and that is harmless on a command line.
fn reference(text: &str) -> Result<String, ModuleSourceError> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    if text.is_empty() || text.starts_with('-') || text.contains("..") || text.contains(odd) {
        return Err(malformed("reference", text));
    }
    Ok(text.to_owned())
}

fn archive(address: &str, base: &Path) -> Result<ModuleSource, ModuleSourceError> {
    let (address, subdirectory) = split_fragment(address)?;
    let url = match address.split_once("://") {
        Some(("file", _)) => format!("file://{}", file_path(address, base)?.display()),
        Some(("https" | "http", rest)) => {
            checked_address(address, rest)?;
            address.to_owned()
        }
        Some((scheme, _)) => {
            return Err(ModuleSourceError::Scheme(
                format!("zip+{scheme}"),
                "write zip+https or zip+file",
            ));
        }
        None => {
            let hint = "write zip+https://… or zip+file:///…";
            return Err(ModuleSourceError::Scheme(format!("zip+{address}"), hint));
        }
    };
    Ok(ModuleSource::Archive { url, subdirectory })
}

fn package(text: &str) -> Result<ModuleSource, ModuleSourceError> {
    // A name, extras and versions, as an installer takes them; nothing that it could take for an option or a path.
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-[],<>=!~* ".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(legal) {
        return Ok(ModuleSource::Package(text.to_owned()));
    }
    Err(malformed("source", text))
}

/// The part before `#`, and the subdirectory behind it.
fn split_fragment(text: &str) -> Result<(&str, Option<String>), ModuleSourceError> {
    let Some((address, fragment)) = text.split_once('#') else {
        return Ok((text, None));
    };
    let inner = fragment
        .split('&')
        .find_map(|part| part.strip_prefix("subdirectory="));
    Ok((address, inner.map(inner_folder).transpose()?))
}

/// A folder inside of another.
fn inner_folder(text: &str) -> Result<String, ModuleSourceError> {
    let inside = Path::new(text).components().all(|part| match part {
        Component::Normal(_) | Component::CurDir => true,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => false,
    });
    let named = Path::new(text)
        .components()
        .any(|part| matches!(part, Component::Normal(_)));
    if inside && named {
        Ok(text.trim_matches('/').to_owned())
    } else {
        Err(malformed("subdirectory", text))
    }
}

fn file_path(address: &str, base: &Path) -> Result<PathBuf, ModuleSourceError> {
    let written = address.strip_prefix("file://").unwrap_or(address);
    let written = written
        .strip_prefix("localhost")
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(written);
    if written.is_empty() {
        return Err(ModuleSourceError::NoAddress(address.to_owned()));
    }
    let path = decoded(written).ok_or_else(|| malformed("path", written))?;
    Ok(tidy(&base.join(path)))
}

/// The path without `.` and `..`, by its text alone: links are not followed here.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if tidied.components().next_back().is_some_and(is_name) => {
                tidied.pop();
            }
            Component::ParentDir
            | Component::Prefix(_)
            | Component::RootDir
            | Component::Normal(_) => {
                tidied.push(part);
            }
        }
    }
    tidied
}

fn is_name(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

/// The text with `%20` and the like decoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

fn is_drive(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && chars.next().is_some_and(|c| c == '\\' || c == '/')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, expected: Result<&str, &str>) {
        let read = ModuleSource::of_value(value, Path::new("/plans"));
        match (read, expected) {
            (Ok(source), Ok(text)) => assert_eq!(source.to_string(), text, "{value}"),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{value}: {error}");
            }
            (read, expected) => panic!("{value}: {read:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn texts_of_every_form() {
        for (text, expected) in [
            ("git+https://h/o/r", Ok("git+https://h/o/r")),
            ("git+https://h/o/r@main", Ok("git+https://h/o/r@main")),
            (
                "git+https://h/o/r@feature/x#subdirectory=a/b",
                Ok("git+https://h/o/r@feature/x#subdirectory=a/b"),
            ),
            ("git+ssh://git@h/o/r.git", Ok("git+ssh://git@h/o/r.git")),
            (
                "git+ssh://git@h/o/r.git@v1",
                Ok("git+ssh://git@h/o/r.git@v1"),
            ),
            ("git+file:///a/b@main", Ok("git+file:///a/b@main")),
            ("git+https://h/@scope/r", Ok("git+https://h/@scope/r")),
            ("git+https://h/@scope/r@v1", Ok("git+https://h/@scope/r@v1")),
            (
                "git+ssh://git@h/@scope/r@feature/x",
                Ok("git+ssh://git@h/@scope/r@feature/x"),
            ),
            ("git+file://./b", Ok("git+file:///plans/b")),
            ("git+http://h/o/r", Err("git+https")),
            ("git+https://u:p@h/o/r", Err("password")),
            ("git+https://h", Err("does not name a repository")),
            ("git+https://h/o/r@--upload-pack=x", Err("reference")),
            ("git+https://h/o/r@a..b", Err("reference")),
            ("git+https://h/o/r#subdirectory=../x", Err("subdirectory")),
            ("git+https://h/o/r#subdirectory=/x", Err("subdirectory")),
            ("git+ext::sh -c x", Err("not supported")),
            ("git+ssh://-oProxyCommand=x/y", Err("address")),
            ("file:///a/b%20c", Ok("/a/b c")),
            ("file:///a#subdirectory=b", Ok("/a/b")),
            ("/a/b", Ok("/a/b")),
            ("./b", Ok("/plans/b")),
            ("../b/./c", Ok("/b/c")),
            ("~/b", Err("whole path")),
            ("C:\\x", Err("another system")),
            ("\\\\server\\x", Err("another system")),
            (
                "zip+https://h/a.zip#subdirectory=x",
                Ok("zip+https://h/a.zip#subdirectory=x"),
            ),
            ("zip+file:///a.zip", Ok("zip+file:///a.zip")),
            ("zip+ftp://h/a.zip", Err("not supported")),
            ("https://h/a.zip", Ok("zip+https://h/a.zip")),
            ("ftp://h/a.zip", Err("not supported")),
            ("amplifier-module-tool-web", Ok("amplifier-module-tool-web")),
            ("tool-web[all]>=1.0,<2", Ok("tool-web[all]>=1.0,<2")),
            ("--index-url=x", Err("is invalid")),
            ("a;b", Err("is invalid")),
            ("a\nb", Err("is invalid")),
            ("  ", Err("empty")),
        ] {
            check(&json!(text), expected);
        }
    }

    #[test]
    fn tables_of_every_type() {
        check(
            &json!({ "type": "git", "url": "https://h/o/r" }),
            Ok("git+https://h/o/r@main"),
        );
        check(
            &json!({ "type": "git", "url": "git+ssh://git@h/o/r", "ref": "v1", "subdirectory": "x/" }),
            Ok("git+ssh://git@h/o/r@v1#subdirectory=x"),
        );
        check(
            &json!({ "type": "file", "path": "mods/a" }),
            Ok("/plans/mods/a"),
        );
        check(&json!({ "type": "file", "path": "/a" }), Ok("/a"));
        check(&json!({ "type": "package", "name": "x" }), Ok("x"));
        check(
            &json!({ "type": "zip", "url": "https://h/a.zip", "subdirectory": "b" }),
            Ok("zip+https://h/a.zip#subdirectory=b"),
        );
        check(&json!({ "type": "package" }), Err("`name`"));
        check(&json!({ "type": "svn" }), Err("`svn` is unknown"));
        check(&json!({ "url": "x" }), Err("`type`"));
        check(&json!(5), Err("`type`"));
    }
}

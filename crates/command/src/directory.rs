//! The directory that a command runs in, as far as the `cd`s of a text determine it.

use serde::Serialize;

/// The directory that a command runs in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandDirectory {
    /// The directory that the text was started in.
    #[default]
    Start,
    /// This path, relative to the start unless it is absolute. Lexically normal: `..` only in front, no `.`.
    Beneath(String),
    /// It is known only when the command runs.
    Unknown,
}

impl CommandDirectory {
    /// The directory after `cd target`.
    pub(crate) fn enter(&self, target: &str) -> Self {
        let base = match self {
            Self::Start => "",
            Self::Beneath(base) => base,
            Self::Unknown if target.starts_with('/') => "",
            Self::Unknown => return Self::Unknown,
        };
        let path = if target.starts_with('/') {
            target.to_owned()
        } else {
            format!("{base}/{target}")
        };
        let absolute = target.starts_with('/') || base.starts_with('/');
        let path = normal(&path, absolute);
        if path.is_empty() {
            Self::Start
        } else {
            Self::Beneath(path)
        }
    }

    /// The directory after two alternatives come together again.
    pub(crate) fn or(self, other: &Self) -> Self {
        if self == *other { self } else { Self::Unknown }
    }
}

/// Resolves `.` and `..` by name, as the shell's own `cd` does. Symbolic links are resolved by the code that opens
/// files.
fn normal(path: &str, absolute: bool) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if absolute { format!("/{path}") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entering_is_lexical() {
        for (from, target, to) in [
            ("", "a", "a"),
            ("", "./a//b/", "a/b"),
            ("a", "..", ""),
            ("a", "../..", ".."),
            ("..", "..", "../.."),
            ("..", "a", "../a"),
            ("a/b", "/c/./d", "/c/d"),
            ("/c", "../../e", "/e"),
            ("/c", "..", "/"),
        ] {
            let directory = |path: &str| match path {
                "" => CommandDirectory::Start,
                path => CommandDirectory::Beneath(path.to_owned()),
            };
            assert_eq!(
                directory(from).enter(target),
                directory(to),
                "{from} {target}"
            );
        }
        assert_eq!(
            CommandDirectory::Unknown.enter("a"),
            CommandDirectory::Unknown
        );
        assert_eq!(
            CommandDirectory::Unknown.enter("/a"),
            CommandDirectory::Beneath("/a".to_owned())
        );
    }
}

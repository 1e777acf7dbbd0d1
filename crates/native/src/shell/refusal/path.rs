//! Finds the paths in an error message.

use std::{
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

use crate::literal;

/// A text in quotes that does not begin in the middle of a word, as an apostrophe does.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    literal(Regex::new(
        r#"(?:^|[\s(:=\[])['"`‘“]([^'"`‘’“”]{1,1024})['"`’”]"#,
    ))
});

/// The names in a line, likeliest first: text in quotes, text before the error as in `cat: x: Permission denied`, then
/// every word with a slash.
pub(super) fn named_in(line: &str) -> Vec<String> {
    let mut found: Vec<String> = QUOTED
        .captures_iter(line)
        .map(|part| part[1].to_owned())
        .collect();
    let parts: Vec<&str> = line.split(": ").collect();
    let before = parts.len().checked_sub(2).and_then(|at| parts.get(at));
    found.extend(
        before
            .and_then(|part| part.split_whitespace().last())
            .map(trimmed),
    );
    let words = line
        .split(|c: char| c.is_whitespace() || c == ':')
        .filter(|word| word.contains('/'));
    found.extend(words.map(trimmed));
    found.retain(|text| !text.is_empty());
    found
}

fn trimmed(word: &str) -> String {
    word.trim_matches(|c| {
        matches!(
            c,
            '\'' | '"' | '`' | '(' | ')' | '[' | ']' | ',' | ';' | '‘' | '’'
        )
    })
    .to_owned()
}

/// The path as an absolute one, as if there were no links. `None` if it goes above the root directory.
pub(super) fn absolute(directory: &Path, named: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in directory.join(named).components() {
        match part {
            Component::RootDir => path.push("/"),
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop().then_some(())?;
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(path)
}

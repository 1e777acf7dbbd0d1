//! File names for people and models: shown safely, and suggested when misspelled.

use std::{borrow::Cow, ffi::OsStr, path::Path};

use cap_std::fs::Dir;
use strsim::osa_distance;
use toolpost_model::visible_line;

/// The longest text that a message quotes, in characters.
const QUOTED_CHARS: usize = 300;
/// The most names of a directory that are compared for a suggestion.
const COMPARED_NAMES: usize = 2000;
/// The most suggestions.
const SUGGESTIONS: usize = 3;

/// A path or name for a message: escaped, and cut if it is very long.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        None => visible_line(text).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&text[..end])),
    }
}

/// A path inside the workspace for a message; the root is `.`.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(&relative(path).0)
}

/// The text of a path inside the workspace, and whether bytes had to be replaced.
pub fn relative(path: &Path) -> (Cow<'_, str>, bool) {
    match path.to_str() {
        Some("") => (".".into(), false),
        Some(text) => (text.into(), false),
        None => (path.to_string_lossy(), true),
    }
}

/// Names in `dir` that resemble `wanted`, best first, of those that the caller `may_see`. Only a hint: entries that
/// cannot be read are left out silently.
pub(crate) fn similar(dir: &Dir, wanted: &str, may_see: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = dir.entries() else {
        return Vec::new();
    };
    let wanted = wanted.to_lowercase();
    let mut candidates: Vec<(usize, String)> = entries
        .take(COMPARED_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name)))
        .collect();
    candidates.sort();
    candidates.retain(|(_, name)| may_see(name));
    candidates
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, name)| name)
        .collect()
}

/// The distance of two names, if they are close enough to be confused.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let stem = |text: &str| Path::new(text).file_stem().map(OsStr::to_owned);
    let same_stem = stem(wanted) == stem(name);
    let letters = wanted.chars().count();
    let allowed = letters.max(3) / 3;
    if !same_stem && letters.abs_diff(name.chars().count()) > allowed {
        return None;
    }
    let edits = osa_distance(wanted, name);
    (same_stem || edits <= allowed).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::{distance, shown};

    #[test]
    fn names_that_could_be_meant_are_close() {
        let check = |wanted: &str, name: &str, close: bool| {
            assert_eq!(
                distance(wanted, name).is_some(),
                close,
                "{wanted} and {name}"
            );
        };
        check("main.rs", "mian.rs", true);
        check("config.yaml", "config.yml", true);
        check("readme", "readme.md", true);
        check("notes.md", "notes.txt", true);
        check("ab", "abc", true);
        check("scr", "src", true);
        check("main.rs", "lib.rs", false);
        check("a", "b.txt", false);
    }

    #[test]
    fn texts_cannot_break_lines_or_turn_around() {
        assert_eq!(
            shown("a\nb\u{202e}c\u{1b}[0m\u{200b}\0"),
            "a\\nb\\u{202e}c\\u{1b}[0m\\u{200b}\\u{0}"
        );
        assert_eq!(shown("größe 文.txt"), "größe 文.txt");
        assert_eq!(shown(&"é".repeat(400)), format!("{}…", "é".repeat(300)));
    }
}

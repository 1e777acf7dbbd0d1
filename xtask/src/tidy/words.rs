//! Plain English in pages and comments: few sentences about "what" and "who" instead of the things of the domain, and none
//! of the phrases that stood for a plain word. Code fences, string literals and generated pages are not looked at.

use super::{Repo, TidyViolation, repo::RepoFile};

/// Words that take the place of a subject.
const EMPTY_SUBJECTS: &[&str] = &[
    "what",
    "whatever",
    "who",
    "whoever",
    "whose",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
];

/// Each phrase with the words to write instead.
const PHRASES: &[(&str, &str)] = &[
    (
        "whoever",
        "the caller, the operator, the reader: name the role",
    ),
    ("nobody hears", "the caller is gone"),
    ("where no rule speaks", "when no rule matches"),
    ("stops to speak", "expires"),
    ("the word to stop", "the cancellation"),
    ("comes to nothing", "fails"),
    ("has the say", "decides"),
    ("talk to stderr", "messages to stderr"),
    ("takes this way", "goes through this pipeline"),
];

/// A file may have this many in any case, so that a short one is not measured by a single word.
const PAGE_FLOOR: usize = 3;
const COMMENT_FLOOR: usize = 6;
const PAGE_RATE: usize = 4;
const COMMENT_RATE: usize = 12;

const HINT: &str =
    "give the sentence a subject of the domain: the call, the rule, the host, the operator";

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    repo.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &RepoFile) -> Vec<TidyViolation> {
    let is_page = file.path.ends_with(".md") && !file.path.starts_with("docs/reference/");
    let is_source = file.path.ends_with(".rs") && format!("/{}", file.path).contains("/src/");
    // This file names the phrases.
    if !(is_page || is_source) || file.path.ends_with("tidy/words.rs") {
        return Vec::new();
    }
    let prose = if is_page {
        page_lines(&file.text)
    } else {
        comment_lines(&file.text)
    };
    let mut found = Vec::new();
    let mut words = 0;
    let mut empty = 0;
    for (number, line) in prose {
        let lower = line.to_lowercase();
        for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| lower.contains(phrase)) {
            found.push(TidyViolation::new(
                &file.path,
                number,
                format!("`{phrase}`"),
                format!("write: {instead}"),
            ));
        }
        for word in lower.split(|letter: char| !letter.is_alphabetic() && letter != '\'') {
            words += usize::from(word.len() > 1);
            empty += usize::from(EMPTY_SUBJECTS.contains(&word));
        }
    }
    let (floor, rate) = if is_page {
        (PAGE_FLOOR, PAGE_RATE)
    } else {
        (COMMENT_FLOOR, COMMENT_RATE)
    };
    if empty > floor.max(words * rate / 1000) {
        let message =
            format!("{empty} of {words} words are `what`, `who`, `nobody` and their like");
        found.push(TidyViolation::new(&file.path, 1, message, HINT));
    }
    found
}

/// The lines of a page outside of code fences.
fn page_lines(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The comments that have lines of their own.
fn comment_lines(text: &str) -> Vec<(usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_start()))
        .filter(|(_, line)| line.starts_with("//"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    fn check_one(path: &str, text: &str) -> Vec<String> {
        places(&check(&Repo::of(&[(path, text)])))
    }

    #[test]
    fn phrases_are_found_in_pages_and_comments_and_not_in_code() {
        let phrase = "The host lets go of whoever waits.";
        assert_eq!(check_one("docs/a.md", phrase), ["docs/a.md:1"]);
        assert_eq!(
            check_one("crates/a/src/lib.rs", &format!("mod a;\n/// {phrase}")),
            ["crates/a/src/lib.rs:2"]
        );
        for (path, text) in [
            ("docs/a.md", "```text\nwhoever\n```\n"),
            ("docs/reference/cli.md", phrase),
            ("crates/a/src/lib.rs", "const A: &str = \"whoever\";"),
            ("crates/a/tests/it/main.rs", "// whoever"),
        ] {
            assert!(check_one(path, text).is_empty(), "{path}: {text}");
        }
    }

    #[test]
    fn a_page_may_have_few_empty_subjects() {
        let sentence = "The rule decides what the call may do. ";
        assert!(check_one("docs/a.md", &sentence.repeat(3)).is_empty());
        assert_eq!(check_one("docs/a.md", &sentence.repeat(4)), ["docs/a.md:1"]);
        let long = format!("{} {}", "word ".repeat(1500), sentence.repeat(4));
        assert!(check_one("docs/a.md", &long).is_empty());
    }
}

//! Plain English in pages, comments, messages and references: few sentences about "what" and "who" instead of the things
//! of the domain, and none of the phrases that stood for a plain word. Code fences and inline code are skipped.

use std::borrow::Cow;

use super::{Repo, TidyViolation, repo::RepoFile, rust_code::shipped_literals};

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

const HINT: &str =
    "give the sentence a subject of the domain: the call, the rule, the host, the operator";

/// The texts that readers meet, with the share of empty subjects that a file may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProseKind {
    Page,
    Comment,
    /// String literals of more than one word: messages, hints, descriptions.
    Message,
    /// Pages that are generated from the help and the comments of settings.
    Reference,
}

impl ProseKind {
    const ALL: [(Self, &str); 4] = [
        (Self::Page, "pages"),
        (Self::Comment, "comments"),
        (Self::Message, "messages"),
        (Self::Reference, "references"),
    ];

    /// Of 1,000 words.
    fn rate(self) -> usize {
        match self {
            Self::Page | Self::Reference => 4,
            Self::Message => 8,
            Self::Comment => 12,
        }
    }

    /// A file may have this many in any case, so that a short one is not measured by a single word.
    fn floor(self) -> usize {
        match self {
            Self::Page | Self::Message | Self::Reference => 3,
            Self::Comment => 6,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct WordCount {
    words: usize,
    empty: usize,
}

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    repo.files.iter().flat_map(check_file).collect()
}

/// The empty subjects per 1,000 words of each kind of prose.
pub(crate) fn rates(repo: &Repo) -> String {
    let rate = |(kind, name): (ProseKind, &str)| {
        let mut total = WordCount::default();
        for file in &repo.files {
            for (_, line) in prose(file, kind) {
                let count = count_words(&line);
                total.words += count.words;
                total.empty += count.empty;
            }
        }
        let tenths = total.empty * 10_000 / total.words.max(1);
        format!("{name} {}.{}", tenths / 10, tenths % 10)
    };
    format!(
        "`what`, `who`, `nobody` and similar words per 1,000: {}",
        ProseKind::ALL.map(rate).join(", ")
    )
}

fn check_file(file: &RepoFile) -> Vec<TidyViolation> {
    let mut found = Vec::new();
    for (kind, _) in ProseKind::ALL {
        let mut total = WordCount::default();
        for (number, line) in prose(file, kind) {
            let lower = line.to_lowercase();
            for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| lower.contains(phrase)) {
                found.push(TidyViolation::new(
                    &file.path,
                    number,
                    format!("`{phrase}`"),
                    format!("write: {instead}"),
                ));
            }
            let count = count_words(&lower);
            total.words += count.words;
            total.empty += count.empty;
        }
        if total.empty > kind.floor().max(total.words * kind.rate() / 1000) {
            let message = format!(
                "{} of {} words are `what`, `who`, `nobody` or similar words",
                total.empty, total.words
            );
            found.push(TidyViolation::new(&file.path, 1, message, HINT));
        }
    }
    found
}

fn count_words(line: &str) -> WordCount {
    let mut count = WordCount::default();
    for word in line.split(|letter: char| !letter.is_alphabetic() && letter != '\'') {
        count.words += usize::from(word.len() > 1);
        count.empty += usize::from(
            EMPTY_SUBJECTS
                .iter()
                .any(|one| one.eq_ignore_ascii_case(word)),
        );
    }
    count
}

/// The lines of one kind in a file, without inline code and placeholders.
fn prose(file: &RepoFile, kind: ProseKind) -> Vec<(usize, Cow<'_, str>)> {
    let is_page = file.path.ends_with(".md");
    let is_reference = is_page && file.path.starts_with("docs/reference/");
    let is_source = file.path.ends_with(".rs") && format!("/{}", file.path).contains("/src/");
    let is_test = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
    // This file names the phrases.
    let is_list = file.path.ends_with("tidy/words.rs");
    let lines: Vec<(usize, &str)> = match kind {
        ProseKind::Page if is_page && !is_reference => page_lines(&file.text),
        ProseKind::Reference if is_reference => numbered(&file.text).collect(),
        ProseKind::Comment if is_source && !is_list => comment_lines(&file.text),
        ProseKind::Message if is_source && !is_list && !is_test => shipped_literals(&file.text)
            .into_iter()
            .filter(|(_, text)| text.contains(' '))
            .collect(),
        ProseKind::Page | ProseKind::Reference | ProseKind::Comment | ProseKind::Message => {
            Vec::new()
        }
    };
    lines
        .into_iter()
        .map(|(number, line)| (number, without_code(line)))
        .collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Without the spans between backticks, the placeholders between braces and the escapes of line breaks.
fn without_code(line: &str) -> Cow<'_, str> {
    if !line.contains(['`', '{', '\\']) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    for (index, span) in line.replace("\\n", " ").split('`').enumerate() {
        if index % 2 == 1 {
            continue;
        }
        for (place, part) in span.split('{').enumerate() {
            let part = match part.split_once('}') {
                Some((_, after)) if place > 0 => after,
                _ => part,
            };
            text.push_str(part);
        }
    }
    Cow::Owned(text)
}

/// The lines of a page outside of code fences.
fn page_lines(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((number, line));
        }
    }
    lines
}

/// The comments that have lines of their own.
fn comment_lines(text: &str) -> Vec<(usize, &str)> {
    numbered(text)
        .map(|(number, line)| (number, line.trim_start()))
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
    fn phrases_are_found_in_prose_and_not_in_code() {
        let phrase = "The host lets go of whoever waits.";
        assert_eq!(check_one("docs/a.md", phrase), ["docs/a.md:1"]);
        assert_eq!(
            check_one("crates/a/src/lib.rs", &format!("mod a;\n/// {phrase}")),
            ["crates/a/src/lib.rs:2"]
        );
        assert_eq!(
            check_one("docs/reference/cli.md", phrase),
            ["docs/reference/cli.md:1"]
        );
        assert_eq!(
            check_one(
                "crates/a/src/lib.rs",
                &format!("mod a;\nconst A: &str = \"{phrase}\";")
            ),
            ["crates/a/src/lib.rs:2"]
        );
        for (path, text) in [
            ("docs/a.md", "```text\nwhoever\n```\n"),
            ("docs/a.md", "Held by `whoever_waits`."),
            ("crates/a/src/lib.rs", "const A: &str = \"whoever\";"),
            ("crates/a/src/lib.rs", "fn whoever() {}"),
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
        let message = format!("const A: &str = \"{}\";", sentence.repeat(4));
        assert_eq!(
            check_one("crates/a/src/lib.rs", &message),
            ["crates/a/src/lib.rs:1"]
        );
        let placeholder = message.replace("what", "{what}");
        assert!(check_one("crates/a/src/lib.rs", &placeholder).is_empty());
        let long = format!("{} {}", "word ".repeat(1500), sentence.repeat(4));
        assert!(check_one("docs/a.md", &long).is_empty());
    }
}

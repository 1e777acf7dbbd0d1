//! Links between the repository's own pages, and the README's length of one page.

use super::repo::RepoFile;
use super::{Repo, TidyViolation};

const README_LINES: usize = 120;

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let mut found: Vec<TidyViolation> = repo
        .files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .flat_map(|page| check_page(repo, page))
        .collect();
    if let Some(readme) = repo.file("README.md") {
        let lines = readme.text.lines().count();
        if lines > README_LINES {
            let message = format!("README of {lines} lines, the limit is {README_LINES}");
            let hint = "move detail into docs/ and link it";
            found.push(TidyViolation::new(&readme.path, 1, message, hint));
        }
    }
    found
}

fn check_page(repo: &Repo, page: &RepoFile) -> Vec<TidyViolation> {
    let broken = |(line, target): (usize, String)| {
        let message = match resolve(&page.path, &target) {
            Some(path) if exists(repo, &path) => return None,
            Some(path) => format!("link to `{target}`: `{path}` does not exist"),
            None => format!("link to `{target}` leaves the repository"),
        };
        let hint = "fix the link or add the file to git";
        Some(TidyViolation::new(&page.path, line, message, hint))
    };
    relative_links(&page.text)
        .into_iter()
        .filter_map(broken)
        .collect()
}

fn exists(repo: &Repo, path: &str) -> bool {
    let folder = format!("{path}/");
    path.is_empty()
        || repo
            .files
            .iter()
            .any(|file| file.path == path || file.path.starts_with(&folder))
}

/// The path from the root for `target` on the page `from`, `None` above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let start = if target.starts_with('/') { "" } else { folder };
    let mut parts = Vec::new();
    for part in start.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Links with their lines, from 1, without those to the web and those within the page.
fn relative_links(markdown: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in markdown.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let text = without_code(line);
                let paths = targets(&text).into_iter().filter_map(relative);
                links.extend(paths.map(|path| (index + 1, path)));
            }
        }
    }
    links
}

/// `line` without the text between backticks. A lone backtick is text.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let is_text = |index: usize| index.is_multiple_of(2) || index + 1 == parts.len();
    parts
        .iter()
        .enumerate()
        .filter(|(index, _)| is_text(*index))
        .map(|(_, part)| *part)
        .collect()
}

/// Every target in a line: `[text](target)`, `[label]: target`, and HTML's `src` and `href`.
fn targets(line: &str) -> Vec<&str> {
    let between = |open: &str, close: char| -> Vec<&str> {
        let starts = line
            .match_indices(open)
            .map(|(at, _)| &line[at + open.len()..]);
        starts
            .filter_map(|rest| Some(rest.split_once(close)?.0))
            .collect()
    };
    let mut found = between("](", ')');
    found.extend(between("src=\"", '"'));
    found.extend(between("href=\"", '"'));
    if line.starts_with('[') && !line.starts_with("[^") {
        found.extend(line.split_once("]: ").map(|(_, target)| target));
    }
    found
}

/// The path in a target such as `<docs/a.md#part>` or `a.md "title"`.
fn relative(raw: &str) -> Option<String> {
    let raw = raw.trim();
    let target = match raw.strip_prefix('<') {
        Some(angled) => angled.split('>').next()?,
        None => raw.split_whitespace().next()?,
    };
    let path = target.split(['#', '?']).next()?;
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    (!path.is_empty() && !is_elsewhere).then(|| path.replace("%20", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found() {
        for (text, expected) in [
            (
                "see [a](a.md) and ![b](img/b.png \"title\")",
                vec![(1, "a.md"), (1, "img/b.png")],
            ),
            (
                "\n[a](a.md#part) [b](#part) [c](https://x.org/c.md) [d](mailto:x@y)",
                vec![(2, "a.md")],
            ),
            ("[label]: ../a.md\n[^1]: note.md", vec![(1, "../a.md")]),
            ("`[a](a.md)` [b](b.md) `", vec![(1, "b.md")]),
            ("```\n[a](a.md)\n~~~\n```\n[b](b.md)", vec![(5, "b.md")]),
            (
                "[a](<a b.md>) [c](c%20d.md)",
                vec![(1, "a b.md"), (1, "c d.md")],
            ),
            (
                "<a href=\"x.md\"><img src=\"y.svg\"></a>",
                vec![(1, "y.svg"), (1, "x.md")],
            ),
            ("a list[0] (not a link) and [x] (y.md)", vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(line, path)| (line, path.to_owned()))
                .collect();
            assert_eq!(relative_links(text), expected, "{text}");
        }
    }

    #[test]
    fn links_resolve_from_their_page() {
        for (link, broken) in [
            ("guide.md", false),
            ("./guide.md", false),
            ("reference", false),
            ("reference/", false),
            ("../README.md", false),
            ("..", false),
            ("/README.md", false),
            ("README.md", true),
            ("../../README.md", true),
            ("refer", true),
        ] {
            let page = format!("[x]({link})");
            let files = [
                ("docs/page.md", &*page),
                ("docs/guide.md", ""),
                ("docs/reference/cli.md", ""),
                ("README.md", ""),
            ];
            assert_eq!(!check(&Repo::of(&files)).is_empty(), broken, "{link}");
        }
    }

    #[test]
    fn the_readme_is_one_page() {
        for (lines, refused) in [(120, false), (121, true)] {
            let readme = "a\n".repeat(lines);
            assert_eq!(
                !check(&Repo::of(&[("README.md", &readme)])).is_empty(),
                refused,
                "{lines}"
            );
        }
    }
}

//! The path patterns of both tools: `*`, `**`, `?`, `[…]`, `{a,b}`.
//!
//! As in ignore files, a pattern without `/` matches names at any depth, and one with `/` matches whole paths.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolpost_model::InputRefusal;
use toolpost_processes::shown;

/// The longest pattern, in bytes.
const MAX_BYTES: usize = 2_000;

/// Why a pattern was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum GlobPatternError {
    #[error("the pattern is empty; use `**` for every file")]
    Empty,
    #[error("the pattern has {bytes} bytes, the limit is {MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("`{}` has `..` after a wildcard; give the directory as `path`", shown(.pattern))]
    GoesUp { pattern: String },
    #[error("`{}` is not a pattern: {}", shown(.pattern), .source.kind())]
    Malformed {
        pattern: String,
        source: globset::Error,
    },
}

impl GlobPatternError {
    pub(super) fn into_refusal(self, at: &str) -> InputRefusal {
        InputRefusal::invalid(at, self.to_string())
    }
}

/// A pattern for files beneath a directory.
#[derive(Debug)]
pub(super) struct GlobPathPattern {
    /// The leading names without wildcards, where the search can start. Absolute if the pattern is.
    pub(super) directory: String,
    /// For the rest of the path.
    set: GlobSet,
    /// The most levels of the rest.
    pub(super) depth: usize,
}

impl GlobPathPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, GlobPatternError> {
        check(pattern)?;
        if !pattern.contains('/') {
            let set = compile(pattern, &[&format!("**/{pattern}")])?;
            return Ok(Self {
                directory: String::new(),
                set,
                depth: usize::MAX,
            });
        }
        let mut names: Vec<&str> = pattern.split('/').collect();
        let last = match names.pop() {
            None | Some("") => "**",
            Some(last) => last,
        };
        names.retain(|name| !name.is_empty() && *name != ".");
        let plain = names
            .iter()
            .take_while(|name| !name.contains(['*', '?', '[', ']', '{', '}', '\\', ',']))
            .count();
        let mut rest = names.split_off(plain);
        rest.push(last);
        if rest.contains(&"..") {
            return Err(GlobPatternError::GoesUp {
                pattern: pattern.to_owned(),
            });
        }
        let root = if pattern.starts_with('/') { "/" } else { "" };
        let rest = rest.join("/");
        let depth = if rest.contains("**") {
            usize::MAX
        } else {
            rest.matches('/').count() + 1
        };
        Ok(Self {
            directory: format!("{root}{}", names.join("/")),
            set: compile(pattern, &[&rest])?,
            depth,
        })
    }

    /// Whether a path, relative to `directory`, matches.
    pub(super) fn fits(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }
}

/// A filter for the files of a search; with a leading `!` it excludes matches.
#[derive(Debug)]
pub(super) struct PathFilter {
    set: GlobSet,
    leaves_out: bool,
}

impl PathFilter {
    pub(super) fn parse(pattern: &str) -> Result<Self, GlobPatternError> {
        let (leaves_out, pattern) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        check(pattern)?;
        let rest = pattern.trim_start_matches("./").trim_start_matches('/');
        let whole = if pattern.contains('/') {
            rest.to_owned()
        } else {
            format!("**/{rest}")
        };
        let set = match whole.strip_suffix('/') {
            Some(directory) => compile(pattern, &[&format!("{directory}/**")])?,
            // The name may be a directory; then everything in it is excluded, as in ignore files.
            None if leaves_out => compile(pattern, &[&whole, &format!("{whole}/**")])?,
            None => compile(pattern, &[&whole])?,
        };
        Ok(Self { set, leaves_out })
    }

    /// `from_start` and `place` are the file's path from the searched directory and from the workspace. Callers write
    /// the pattern for either.
    pub(super) fn fits(&self, from_start: &Path, place: &Path) -> bool {
        (self.set.is_match(from_start) || self.set.is_match(place)) != self.leaves_out
    }
}

/// Whether a pattern names a hidden file, such as `.github/**`: then hidden names are included.
pub(super) fn spells_hidden(pattern: &str) -> bool {
    let mut before = '/';
    let mut names = pattern.char_indices().filter_map(|(at, c)| {
        let begins = matches!(before, '/' | '{' | ',' | '!') && c == '.';
        before = c;
        begins.then(|| pattern[at..].trim_start_matches('.'))
    });
    names.any(|rest| !matches!(rest.chars().next(), None | Some('/')))
}

fn check(pattern: &str) -> Result<(), GlobPatternError> {
    match pattern.len() {
        0 => Err(GlobPatternError::Empty),
        1..=MAX_BYTES => Ok(()),
        bytes => Err(GlobPatternError::TooLong { bytes }),
    }
}

/// `pattern` is the caller's text, `globs` are compiled for it.
fn compile(pattern: &str, globs: &[&str]) -> Result<GlobSet, GlobPatternError> {
    let malformed = |source| GlobPatternError::Malformed {
        pattern: pattern.to_owned(),
        source,
    };
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = GlobBuilder::new(glob)
            .literal_separator(true)
            .empty_alternates(true)
            .build();
        set.add(glob.map_err(malformed)?);
    }
    set.build().map_err(malformed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{GlobPathPattern, PathFilter, spells_hidden};

    #[test]
    fn the_part_without_wildcards_becomes_the_directory() {
        let check = |pattern: &str, directory: &str, depth: usize, fits: &str, fits_not: &str| {
            let parsed = GlobPathPattern::parse(pattern).unwrap();
            assert_eq!(
                (parsed.directory.as_str(), parsed.depth),
                (directory, depth),
                "{pattern}"
            );
            assert!(parsed.fits(Path::new(fits)), "{pattern} {fits}");
            assert!(!parsed.fits(Path::new(fits_not)), "{pattern} {fits_not}");
        };
        check("*.rs", "", usize::MAX, "a/b/c.rs", "a.rsx");
        check("Makefile", "", usize::MAX, "deep/Makefile", "Makefile/x");
        check("./*.rs", "", 1, "a.rs", "a/b.rs");
        check("src/*.rs", "src", 1, "a.rs", "a/b.rs");
        check("src/a/main.rs", "src/a", 1, "main.rs", "lib.rs");
        check(
            "src/**/*.{rs,toml}",
            "src",
            usize::MAX,
            "a/b.toml",
            "a/b.md",
        );
        check("/w/src/*/t?.rs", "/w/src", 2, "a/t1.rs", "t1.rs");
        check("**/tests/*", "", usize::MAX, "a/tests/b", "a/tests/b/c");
        check("{a/b,c}/*.rs", "", 3, "a/b/x.rs", "b/x.rs");
        check("../x/*", "../x", 1, "y", "y/z");
    }

    #[test]
    fn patterns_that_mean_nothing_say_so() {
        let check = |pattern: &str, part: &str| {
            let message = GlobPathPattern::parse(pattern).unwrap_err().to_string();
            assert!(message.contains(part), "{pattern}: {message}");
        };
        check("", "is empty");
        check("a{b", "`a{b` is not a pattern: ");
        check("a/[z-a]", "is not a pattern: ");
        check("*/../x", "after a wildcard");
        check(&"a".repeat(2001), "2001 bytes, the limit is 2000");
        // Alternatives are not multiplied out, and a pattern that compiles to too much is refused.
        assert!(GlobPathPattern::parse(&"{a,b}".repeat(400)).is_ok());
        assert!(
            GlobPathPattern::parse(&format!("{}a{}", "{".repeat(900), "}".repeat(900))).is_err()
        );
    }

    #[test]
    fn a_filter_takes_both_spellings_and_can_leave_out() {
        let check = |pattern: &str, path: &str, fits: bool| {
            let filter = PathFilter::parse(pattern).unwrap();
            assert_eq!(
                filter.fits(Path::new(path), &Path::new("src").join(path)),
                fits,
                "{pattern} {path}"
            );
        };
        check("*.rs", "a/b.rs", true);
        check("src/**/*.rs", "a/b.rs", true);
        check("a/*.rs", "a/b.rs", true);
        check("/a/*.rs", "a/b.rs", true);
        check("b/*.rs", "a/b.rs", false);
        check("!*.min.js", "x.min.js", false);
        check("!*.min.js", "x.js", true);
        check("!vendor", "vendor/x.js", false);
        check("a/", "a/b/c", true);
    }

    #[test]
    fn hidden_names_are_seen_where_they_are_spelled() {
        for (pattern, hidden) in [
            (".github/**", true),
            ("**/.env", true),
            ("{.env,x}", true),
            ("!.env", true),
            ("a.b", false),
            ("./a", false),
            ("../a", false),
            ("..", false),
            ("*.rs", false),
        ] {
            assert_eq!(spells_hidden(pattern), hidden, "{pattern}");
        }
    }
}

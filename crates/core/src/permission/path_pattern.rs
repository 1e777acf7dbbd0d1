//! Path patterns of rules, in the language of gitignore, matched against resolved absolute paths.
//!
//! A pattern is matched component by component, so `*` never crosses a `/` and rules can be indexed by their first
//! folders. Braces are expanded at parsing.

use globset::{GlobBuilder, GlobMatcher};
use toolpost_model::{ResourceAccess, matches_any};

use super::places::{PathBaseFolders, PlainPath};

/// The limit of brace alternatives in one pattern.
const MAX_ALTERNATIVES: usize = 256;

/// A path pattern.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    pub(super) alternatives: Vec<PathAlternative>,
}

/// One alternative of a pattern, without braces.
#[derive(Clone, Debug)]
pub(super) struct PathAlternative {
    segments: Vec<PathSegment>,
    /// Whether the pattern ends in `/**`.
    beneath: bool,
    /// Whether the base folder is unknown. Such a pattern matches for a deny or an ask wherever it fits, and never for
    /// an allow.
    adrift: bool,
}

#[derive(Clone, Debug)]
enum PathSegment {
    Literal(Box<str>),
    /// A text with `*` for any characters, and no other wildcards.
    Stars(Box<str>),
    Glob(Box<GlobMatcher>),
    /// `**`: any number of folders.
    AnyDepth,
}

/// Why a text is no valid path pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathPatternError {
    #[error("`{0}` contains `..`; write the resulting folder")]
    GoesUp(String),
    #[error("`{0}` has an unmatched brace")]
    Braces(String),
    #[error("`{0}` expands to more than {MAX_ALTERNATIVES} patterns")]
    TooMany(String),
    #[error("`{pattern}` is not a pattern: {reason}")]
    Glob { pattern: String, reason: String },
}

/// The components of a path that may follow a match.
#[derive(Clone, Copy)]
enum PathTail {
    /// None: the path ends with the pattern.
    Ends,
    /// At least this number of further components.
    AtLeast(usize),
}

impl PathPattern {
    pub(super) fn parse(text: &str, places: &PathBaseFolders) -> Result<Self, PathPatternError> {
        let written = text.trim();
        let base =
            |folder: &Option<std::path::PathBuf>| folder.as_deref().and_then(PlainPath::of_path);
        // The base is found before braces are expanded: `{src/a,b}` means two paths of one folder.
        let (from, rest) = if let Some(rest) = written.strip_prefix("ws:") {
            (PathPatternAnchor::Folder(base(&places.workspace)), rest)
        } else if let Some(rest) = written.strip_prefix("~/") {
            (PathPatternAnchor::Folder(base(&places.home)), rest)
        } else if written == "~" {
            (PathPatternAnchor::Folder(base(&places.home)), "")
        } else if written.starts_with('/') {
            (PathPatternAnchor::Root, written)
        } else if !written.trim_end_matches('/').contains('/') || written.starts_with("**/") {
            (PathPatternAnchor::Anywhere, written)
        } else {
            (PathPatternAnchor::Folder(base(&places.workspace)), written)
        };
        let mut expanded = vec![String::new()];
        expand(rest, &mut expanded).map_err(|problem| problem.of(text))?;
        let alternatives = expanded
            .iter()
            .map(|one| PathAlternative::parse(one, &from, text));
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// Whether an allow matches a path: the path itself, and for reading also the folder of `folder/**`.
    pub(super) fn covers(&self, path: &PlainPath, access: ResourceAccess) -> bool {
        let least = usize::from(access == ResourceAccess::Write);
        self.alternatives
            .iter()
            .filter(|one| !one.adrift)
            .any(|one| {
                one.fits(
                    path,
                    if one.beneath {
                        PathTail::AtLeast(least)
                    } else {
                        PathTail::Ends
                    },
                )
            })
    }

    /// Whether a deny or an ask matches a path: the path and everything beneath it. Reading the folder of `folder/**`
    /// does not read its content, but writing the folder changes its content.
    pub(super) fn catches(&self, path: &PlainPath, access: ResourceAccess) -> bool {
        self.alternatives.iter().any(|one| {
            let least = usize::from(one.beneath && access == ResourceAccess::Read);
            one.fits(path, PathTail::AtLeast(least))
        })
    }
}

/// The base of a pattern.
enum PathPatternAnchor {
    Root,
    /// A folder. `None` if it is unknown.
    Folder(Option<PlainPath>),
    Anywhere,
}

impl PathAlternative {
    fn parse(text: &str, from: &PathPatternAnchor, whole: &str) -> Result<Self, PathPatternError> {
        let mut segments = Vec::new();
        let adrift = match from {
            PathPatternAnchor::Root => false,
            PathPatternAnchor::Folder(Some(folder)) => {
                segments.extend(
                    folder
                        .components()
                        .map(|part| PathSegment::Literal(part.into())),
                );
                false
            }
            PathPatternAnchor::Folder(None) => {
                segments.push(PathSegment::AnyDepth);
                true
            }
            PathPatternAnchor::Anywhere => {
                segments.push(PathSegment::AnyDepth);
                false
            }
        };
        for part in text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
        {
            let next = PathSegment::parse(part, whole)?;
            if !matches!(
                (segments.last(), &next),
                (Some(PathSegment::AnyDepth), PathSegment::AnyDepth)
            ) {
                segments.push(next);
            }
        }
        let beneath = matches!(segments.last(), Some(PathSegment::AnyDepth));
        if beneath {
            segments.pop();
        }
        Ok(Self {
            segments,
            beneath,
            adrift,
        })
    }

    fn fits(&self, path: &PlainPath, tail: PathTail) -> bool {
        if !self
            .segments
            .iter()
            .any(|segment| matches!(segment, PathSegment::AnyDepth))
        {
            let mut components = path.components();
            return self
                .segments
                .iter()
                .all(|segment| components.next().is_some_and(|part| segment.fits(part)))
                && tail.takes(components.count());
        }
        let components: Vec<&str> = path.components().collect();
        // The prefixes of the path that the segments so far can match. This is linear in both lengths for any pattern,
        // while a backtracking match could take exponential time.
        let mut reached = vec![false; components.len() + 1];
        reached[0] = true;
        for segment in &self.segments {
            if let PathSegment::AnyDepth = segment {
                let first = reached.iter().position(|&yes| yes).unwrap_or(reached.len());
                reached[first..].fill(true);
                continue;
            }
            for place in (0..components.len()).rev() {
                reached[place + 1] = reached[place] && segment.fits(components[place]);
            }
            reached[0] = false;
        }
        reached
            .iter()
            .enumerate()
            .any(|(used, &yes)| yes && tail.takes(components.len() - used))
    }

    /// The folder that contains or is each path of the pattern, as far as it is written without wildcards.
    pub(super) fn beginning(&self) -> Option<String> {
        let literal = |segment: &PathSegment| match segment {
            PathSegment::Literal(part) => Some(part.clone()),
            PathSegment::Stars(_) | PathSegment::Glob(_) | PathSegment::AnyDepth => None,
        };
        let parts: Vec<Box<str>> = self.segments.iter().map_while(literal).collect();
        (!parts.is_empty()).then(|| format!("/{}", parts.join("/")))
    }

    /// A name that each path of the pattern has as a component.
    pub(super) fn name(&self) -> Option<&str> {
        self.segments
            .iter()
            .rev()
            .find_map(|segment| match segment {
                PathSegment::Literal(part) => Some(&**part),
                PathSegment::Stars(_) | PathSegment::Glob(_) | PathSegment::AnyDepth => None,
            })
    }
}

impl PathTail {
    fn takes(self, further: usize) -> bool {
        match self {
            Self::Ends => further == 0,
            Self::AtLeast(least) => further >= least,
        }
    }
}

impl PathSegment {
    fn parse(part: &str, whole: &str) -> Result<Self, PathPatternError> {
        if part == ".." {
            return Err(PathPatternError::GoesUp(whole.to_owned()));
        }
        if part == "**" {
            return Ok(Self::AnyDepth);
        }
        if part.contains(['?', '[', ']', '\\']) {
            let glob = GlobBuilder::new(part)
                .literal_separator(true)
                .backslash_escape(true)
                .build();
            let glob = glob.map_err(|error| PathPatternError::Glob {
                pattern: whole.to_owned(),
                reason: error.kind().to_string(),
            })?;
            return Ok(Self::Glob(Box::new(glob.compile_matcher())));
        }
        Ok(match part.contains('*') {
            true => Self::Stars(part.into()),
            false => Self::Literal(part.into()),
        })
    }

    fn fits(&self, part: &str) -> bool {
        match self {
            Self::Literal(literal) => **literal == *part,
            Self::Stars(pattern) => matches_any(pattern, part),
            Self::Glob(glob) => glob.is_match(part),
            Self::AnyDepth => true,
        }
    }
}

enum BraceProblem {
    Unclosed,
    TooMany,
}

impl BraceProblem {
    fn of(self, text: &str) -> PathPatternError {
        match self {
            Self::Unclosed => PathPatternError::Braces(text.to_owned()),
            Self::TooMany => PathPatternError::TooMany(text.to_owned()),
        }
    }
}

/// Appends each expansion of `text` to each of `stems`.
fn expand(text: &str, stems: &mut Vec<String>) -> Result<(), BraceProblem> {
    let Some((before, choices, after)) = first_braces(text)? else {
        stems.iter_mut().for_each(|stem| stem.push_str(text));
        return Ok(());
    };
    let mut grown = Vec::new();
    for choice in choices {
        let mut branch: Vec<String> = stems.iter().map(|stem| format!("{stem}{before}")).collect();
        expand(choice, &mut branch)?;
        grown.append(&mut branch);
        if grown.len() > MAX_ALTERNATIVES {
            return Err(BraceProblem::TooMany);
        }
    }
    *stems = grown;
    expand(after, stems)
}

type BraceSplit<'a> = (&'a str, Vec<&'a str>, &'a str);

/// The first pair of braces: the text before it, its choices, and the text after it.
fn first_braces(text: &str) -> Result<Option<BraceSplit<'_>>, BraceProblem> {
    let mut open = None;
    let mut depth = 0_usize;
    let mut from = 0;
    let mut escaped = false;
    let mut choices = Vec::new();
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '{' => {
                depth += 1;
                if depth == 1 {
                    (open, from) = (Some(at), at + 1);
                }
            }
            ',' if depth == 1 => {
                choices.push(&text[from..at]);
                from = at + 1;
            }
            '}' => {
                depth = depth.checked_sub(1).ok_or(BraceProblem::Unclosed)?;
                if let (0, Some(open)) = (depth, open) {
                    choices.push(&text[from..at]);
                    return Ok(Some((&text[..open], choices, &text[at + 1..])));
                }
            }
            _ => {}
        }
    }
    if open.is_some() {
        Err(BraceProblem::Unclosed)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use toolpost_model::ResourceAccess;

    use super::{PathBaseFolders, PathPattern, PlainPath};

    fn places() -> PathBaseFolders {
        PathBaseFolders {
            workspace: Some("/w".into()),
            home: Some("/home/me".into()),
            roots: Vec::new(),
        }
    }

    #[test]
    fn patterns_mean_paths() {
        for (pattern, path, covers, catches) in [
            (".env", "/w/a/.env", true, true),
            (".env", "/other/.env", true, true),
            (".env*", "/w/.env.local", true, true),
            (".env", "/w/.env/x", false, true),
            ("**/.env", "/w/a/b/.env", true, true),
            ("src/*.rs", "/w/src/a.rs", true, true),
            ("src/*.rs", "/w/src/b/a.rs", false, false),
            ("src/*.rs", "/src/a.rs", false, false),
            ("ws:Cargo.toml", "/w/Cargo.toml", true, true),
            ("ws:Cargo.toml", "/w/a/Cargo.toml", false, false),
            ("~/.ssh/**", "/home/me/.ssh/id", true, true),
            ("/etc/*", "/etc/passwd", true, true),
            ("/etc/*", "/etc/ssh/key", false, true),
            ("src/**", "/w/src/a/b", true, true),
            ("src/**/x", "/w/src/x", true, true),
            ("src/**/x", "/w/src/a/b/x", true, true),
            ("src/**/x", "/w/src/a/b/y", false, false),
            ("a?c/[xy]", "/w/abc/x", true, true),
            ("a?c/[xy]", "/w/abc/z", false, false),
            ("{src,docs}/**", "/w/docs/a", true, true),
            ("{src/a,docs}/x", "/w/src/a/x", true, true),
            ("*.{pem,key}", "/w/k/a.key", true, true),
            ("*", "/any/thing", true, true),
            ("**", "/any/thing", true, true),
            ("/**", "/any/thing", true, true),
            ("build/", "/w/x/build", true, true),
            ("a/**/b/**/c", "/w/a/x/b/y/z/c", true, true),
            ("a/**/b/**/c", "/w/a/x/y/z/c", false, false),
            ("a\\*b", "/w/a*b", true, true),
            ("a\\*b", "/w/axb", false, false),
        ] {
            let parsed = PathPattern::parse(pattern, &places()).unwrap();
            let plain = PlainPath::of(path).unwrap();
            let found = (
                parsed.covers(&plain, ResourceAccess::Read),
                parsed.catches(&plain, ResourceAccess::Read),
            );
            assert_eq!(found, (covers, catches), "{pattern} on {path}");
        }
    }

    #[test]
    fn the_folder_itself_may_be_looked_at_and_not_changed() {
        let pattern = PathPattern::parse("secret/**", &places()).unwrap();
        let folder = PlainPath::of("/w/secret").unwrap();
        assert!(
            pattern.covers(&folder, ResourceAccess::Read)
                && !pattern.covers(&folder, ResourceAccess::Write)
        );
        assert!(
            !pattern.catches(&folder, ResourceAccess::Read)
                && pattern.catches(&folder, ResourceAccess::Write)
        );
    }

    #[test]
    fn a_folder_that_is_not_known_is_caught_everywhere_and_covered_nowhere() {
        let pattern = PathPattern::parse("src/a", &PathBaseFolders::default()).unwrap();
        let path = PlainPath::of("/w/src/a").unwrap();
        assert!(
            !pattern.covers(&path, ResourceAccess::Read)
                && pattern.catches(&path, ResourceAccess::Read)
        );
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in [
            "../x",
            "a/../b",
            "{a,b",
            "a}b",
            "[a",
            "{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}",
        ] {
            assert!(PathPattern::parse(bad, &places()).is_err(), "{bad}");
        }
    }
}

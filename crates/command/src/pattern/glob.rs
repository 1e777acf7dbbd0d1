//! One word of a pattern.

/// Alternatives; each is a text with stars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WordGlob {
    /// The pieces of each alternative between its stars. A single piece is a plain text.
    alternatives: Vec<Vec<String>>,
}

impl WordGlob {
    pub(super) fn new(alternatives: Vec<Vec<String>>) -> Self {
        Self { alternatives }
    }

    pub(super) fn is_any(&self) -> bool {
        self.alternatives
            .iter()
            .any(|pieces| matches!(pieces.as_slice(), [first, last] if first.is_empty() && last.is_empty()))
    }

    /// The plain texts it matches; alternatives with stars are left out.
    pub(super) fn plain(&self) -> impl Iterator<Item = &str> {
        self.alternatives
            .iter()
            .filter_map(|pieces| match pieces.as_slice() {
                [plain] => Some(plain.as_str()),
                _ => None,
            })
    }

    pub(super) fn begins_like_option(&self) -> bool {
        let is_option = |pieces: &Vec<String>| {
            pieces.first().is_some_and(|first| {
                first.starts_with('-') && (first.len() > 1 || pieces.len() > 1)
            })
        };
        self.alternatives.iter().all(is_option)
    }

    pub(super) fn matches(&self, word: &str) -> bool {
        self.alternatives
            .iter()
            .any(|pieces| pieces_match(pieces, word))
    }

    /// Matches a program's name. A star does not match a `/`, so that `cargo-*` does not match a path to another
    /// folder.
    pub(super) fn matches_program(&self, word: &str) -> bool {
        let slashes = |text: &str| text.matches('/').count();
        self.is_any()
            || self.alternatives.iter().any(|pieces| {
                let written: usize = pieces.iter().map(|piece| slashes(piece)).sum();
                written == slashes(word) && pieces_match(pieces, word)
            })
    }

    /// Matches a program's name regardless of the folders on both sides.
    pub(super) fn matches_base_name(&self, word: &str) -> bool {
        let named = |pieces: &Vec<String>| {
            let base = base_pieces(pieces);
            // A pattern that ends with `/` has no base name to compare.
            let has_name = base.iter().any(|piece| !piece.is_empty());
            has_name && pieces_match(&base, base_name(word))
        };
        self.matches(word) || self.alternatives.iter().any(named)
    }
}

/// The pieces after the last `/` of the pattern.
fn base_pieces(pieces: &[String]) -> Vec<String> {
    let from = pieces
        .iter()
        .rposition(|piece| piece.contains('/'))
        .unwrap_or(0);
    let mut base = pieces[from..].to_vec();
    if let Some(first) = base.first_mut() {
        *first = base_name(first).to_owned();
    }
    base
}

/// The name without its folder.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn pieces_match(pieces: &[String], word: &str) -> bool {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return false;
    };
    if pieces.len() == 1 {
        return first == word;
    }
    let Some(mut rest) = word.strip_prefix(first.as_str()) else {
        return false;
    };
    // The earliest match of each piece leaves the most text for the pieces after it.
    for piece in &pieces[1..pieces.len() - 1] {
        match rest.find(piece.as_str()) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(pieces: &[&str]) -> WordGlob {
        WordGlob::new(vec![
            pieces.iter().map(|piece| (*piece).to_owned()).collect(),
        ])
    }

    #[test]
    fn gaps() {
        for (pieces, word, expected) in [
            (&["a"][..], "a", true),
            (&["a"], "ab", false),
            (&["a", ""], "ab", true),
            (&["", "b"], "ab", true),
            (&["a", "a"], "a", false),
            (&["a", "b", "c"], "a-b-b-c", true),
            (&["a", "b", "c"], "a-c", false),
            (&["", ""], "", true),
        ] {
            assert_eq!(glob(pieces).matches(word), expected, "{pieces:?} {word}");
        }
    }

    #[test]
    fn programs_keep_their_folder() {
        for (pieces, word, as_written, by_name) in [
            (&["git"][..], "git", true, true),
            (&["git"], "./git", false, true),
            (&["git"], "/usr/bin/git", false, true),
            (&["/usr/bin/git"], "git", false, true),
            (&["/usr/bin/git"], "/usr/bin/git", true, true),
            (&["cargo-", ""], "cargo-x/../../sh", false, true),
            (&["./bin/", ""], "./bin/x", true, true),
            (&["./bin/", ""], "ls", false, false),
            (&["", ""], "./x", true, true),
        ] {
            let glob = glob(pieces);
            assert_eq!(
                (glob.matches_program(word), glob.matches_base_name(word)),
                (as_written, by_name),
                "{pieces:?} {word}"
            );
        }
    }
}

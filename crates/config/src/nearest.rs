//! The nearest known word to a misspelled one.

/// The known word nearest to `word`, if it is near enough for a suggestion.
pub(crate) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // A third of the letters may be wrong. Beyond that a suggestion is more often noise than help.
    let letters = word.chars().count();
    let allowed = (letters / 3).max(1);
    let slip = known
        .clone()
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate);
    // `shown` for `require_shown`: a part of the name.
    slip.or_else(|| {
        known
            .into_iter()
            .find(|candidate| letters >= 4 && candidate.contains(word))
    })
}

/// `did you mean …?` if a word is near, and otherwise the list of known words.
pub(crate) fn suggestion(word: &str, known: &[&str], what: &str) -> Option<String> {
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    (!known.is_empty()).then(|| format!("{what}: {}", known.join(", ")))
}

/// The number of inserted, missing, replaced or swapped letters between two words.
fn distance(from: &str, to: &str) -> usize {
    let letters = |word: &str| {
        word.chars()
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let from = letters(from);
    let to = letters(to);
    // Words of such different lengths are never suggested, and a key from a hostile file may be very long.
    if from.chars().count().abs_diff(to.chars().count()) > 8 {
        return usize::MAX;
    }
    strsim::osa_distance(&from, &to)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_single_slips() {
        let pairs = [
            ("", "", 0),
            ("mode", "mode", 0),
            ("mdoe", "mode", 1),
            ("lmits", "limits", 1),
            ("Rules", "rules", 0),
        ];
        for (from, to, expected) in pairs {
            assert_eq!(distance(from, to), expected, "{from} to {to}");
        }
        assert_eq!(distance("abc", ""), 3);
    }

    #[test]
    fn only_near_words_are_suggested() {
        assert_eq!(nearest("limts", ["mode", "limits"]), Some("limits"));
        assert_eq!(
            nearest("shown", ["mode", "require_shown"]),
            Some("require_shown")
        );
        assert_eq!(nearest("by", ["mode", "plan"]), None);
        assert_eq!(nearest("colour", ["mode", "limits"]), None);
    }
}

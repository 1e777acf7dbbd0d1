//! Previews: a part of a result that shows the nature of the whole.

mod shape;

use serde_json::Value;

/// The limit of parsed values. Each takes up to a hundred bytes in memory, although it can be two bytes of text.
const MOST_VALUES: usize = 400_000;

pub(super) enum Preview {
    /// Its beginning and its end.
    Ends { head: String, tail: String },
    /// Its shape and first items: JSON again.
    Shape(String),
}

impl Preview {
    pub(super) fn shown(&self) -> usize {
        match self {
            Self::Ends { head, tail } => head.chars().count() + tail.chars().count(),
            Self::Shape(json) => json.chars().count(),
        }
    }

    /// The pieces of content of the preview, with a note at the cut.
    pub(super) fn with_note(self, note: &str) -> Vec<String> {
        match self {
            Self::Ends { head, tail } => {
                let gap = |text: &str| {
                    if text.is_empty() || text.ends_with('\n') {
                        ""
                    } else {
                        "\n"
                    }
                };
                vec![format!("{head}{}[… {note} …]\n{tail}", gap(&head))]
            }
            // In a piece of its own, so that a program can still parse the first one.
            Self::Shape(json) => vec![json, format!("[… {note} …]")],
        }
    }
}

/// The value, if the text is a JSON object or array of at most `largest` bytes and not too many values.
pub(super) fn as_json(text: &str, largest: usize) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    if begins && text.len() <= largest && value_bound(text) <= MOST_VALUES {
        serde_json::from_str(text).ok()
    } else {
        None
    }
}

/// An upper bound of the values in a JSON text: each but the first follows a comma, a colon or a bracket.
fn value_bound(json: &str) -> usize {
    json.bytes()
        .filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{'))
        .count()
}

/// Two thirds of the room for the beginning, the rest for the end, because logs report success or failure at their end.
/// Whole lines, unless lines are much longer than the room.
pub(super) fn of_text(text: &str, room: usize) -> Preview {
    let first = room - room / 3;
    let last = room / 3;
    let head_end = text
        .char_indices()
        .nth(first)
        .map_or(text.len(), |(byte, _)| byte);
    let tail_start = match last {
        0 => text.len(),
        last => text
            .char_indices()
            .rev()
            .nth(last - 1)
            .map_or(0, |(byte, _)| byte),
    };
    let head = &text[..head_end];
    let tail = &text[tail_start.max(head_end)..];
    let whole_head = head
        .rfind('\n')
        .map(|at| &head[..=at])
        .filter(|whole| whole.len() * 2 >= head.len());
    let whole_tail = tail
        .find('\n')
        .map(|at| &tail[at + 1..])
        .filter(|whole| whole.len() * 2 >= tail.len());
    Preview::Ends {
        head: whole_head.unwrap_or(head).to_owned(),
        tail: whole_tail.unwrap_or(tail).to_owned(),
    }
}

/// Keys, types, lengths and first items, as many as fit into the room.
pub(super) fn of_json(value: &Value, room: usize) -> Preview {
    Preview::Shape(shape::of(value, room))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Preview, as_json, of_text};

    fn ends(text: &str, room: usize) -> (String, String) {
        match of_text(text, room) {
            Preview::Ends { head, tail } => (head, tail),
            Preview::Shape(_) => unreachable!("text is shown by its ends"),
        }
    }

    #[test]
    fn lines_are_not_cut_in_two() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (head, tail) = ends(&text, 60);
        assert_eq!(head, "line 0\nline 1\nline 2\nline 3\nline 4\n");
        assert_eq!(tail, "line 98\nline 99\n");
        assert_eq!(ends(&"x".repeat(50), 9), ("x".repeat(6), "x".repeat(3)));
        assert_eq!(ends("äöü", 0), (String::new(), String::new()));
    }

    #[test]
    fn a_text_of_too_many_values_is_not_read_in() {
        assert!(
            as_json("[1, 2]", 100).is_some()
                && as_json("[1, 2]", 5).is_none()
                && as_json("1", 9).is_none()
        );
        let values = |count: usize| format!("[{}]", vec!["[]"; count].join(","));
        assert!(as_json(&values(100_000), 8 << 20).is_some());
        assert!(as_json(&values(300_000), 8 << 20).is_none());
    }

    proptest! {
        #[test]
        fn ends_are_ends_and_fit(text in "[aé\n]{0,80}", room in 0_usize..90) {
            let (head, tail) = ends(&text, room);
            prop_assert!(text.starts_with(&head) && text.ends_with(&tail));
            prop_assert!(head.len() + tail.len() <= text.len());
            prop_assert!(head.chars().count() + tail.chars().count() <= room);
        }
    }
}

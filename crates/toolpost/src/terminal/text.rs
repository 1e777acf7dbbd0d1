//! Text of foreign origin on a terminal, through the functions of all faces.

use std::fmt::Display;

use toolpost_model::{visible, visible_line};

/// Text from tools and files, made harmless for a terminal: line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    visible(text).into_owned()
}

/// One line of text that an operator decides by.
pub(crate) fn spelled_out(text: &str) -> String {
    visible_line(text).into_owned()
}

/// A count with its noun: `1 tool`, `2 tools`, `2 properties`.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {noun}s"),
    }
}

/// The time of a record or an answer, to the second.
pub(crate) fn moment(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, _)) => format!("{}Z", spelled_out(seconds)),
        None => spelled_out(text),
    }
}

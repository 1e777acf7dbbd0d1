//! The line protocol of AI SDK 4: a code, a colon and a JSON value. Not part of A2A; bridges decode it at the edge.

use serde::de::IgnoredAny;

use crate::UnreadableEventText;

/// A line, split into its code and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V4Line<'a> {
    /// The code.
    pub code: V4Code,
    /// The JSON after the colon. It is checked for [`V4Code::Other`] and unchecked for the other codes.
    pub json: &'a str,
}

/// The code of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V4Code {
    /// `9`: a call with `args`.
    Call,
    /// `a`: the `result` of a call.
    Result,
    /// `b`: a call is announced; its arguments follow.
    Start,
    /// `c`: a piece of the arguments, `argsTextDelta`.
    Delta,
    /// `3`: an error as a string, without the id of a call.
    Error,
    /// Text, reasoning, the ends of steps and everything else that concerns no call.
    Other,
}

impl V4Code {
    fn of(code: &str) -> Option<Self> {
        Some(match code {
            "9" => Self::Call,
            "a" => Self::Result,
            "b" => Self::Start,
            "c" => Self::Delta,
            "3" => Self::Error,
            "0" | "2" | "8" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" => Self::Other,
            _ => return None,
        })
    }
}

impl<'a> V4Line<'a> {
    /// Whether a text begins with a known code and a colon. No JSON text and no field of server-sent events does.
    pub(crate) fn is_line(text: &str) -> bool {
        text.split_once(':')
            .is_some_and(|(code, _)| V4Code::of(code).is_some())
    }

    /// Splits a line.
    ///
    /// # Errors
    /// If the line has no known code, or no JSON after the code of [`V4Code::Other`].
    pub fn read(line: &'a str) -> Result<Self, UnreadableEventText> {
        let (word, json) = line.split_once(':').ok_or(UnreadableEventText::NoCode)?;
        let code = V4Code::of(word)
            .ok_or_else(|| UnreadableEventText::UnknownCode(word.chars().take(16).collect()))?;
        if code == V4Code::Other {
            serde_json::from_str::<IgnoredAny>(json)?;
        }
        Ok(Self { code, json })
    }
}

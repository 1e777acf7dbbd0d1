//! The line protocol of AI SDK 4: a code, a colon and a JSON value. Not part of A2A; bridges decode it at the edge.

use serde::de::IgnoredAny;

use crate::UnreadableEventText;

/// A line, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V4Line<'a> {
    /// What it tells.
    pub code: V4Code,
    /// The JSON after the colon. Well formed where the code is [`V4Code::Other`], not looked at yet elsewhere.
    pub json: &'a str,
}

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V4Code {
    /// `9`: a call with `args`.
    Call,
    /// `a`: its `result`.
    Result,
    /// `b`: arguments will follow.
    Start,
    /// `c`: a piece of them, `argsTextDelta`.
    Delta,
    /// `3`: an error as a string, of no call in particular.
    Error,
    /// Text, reasoning, the ends of steps and the rest, which tell of no call.
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

    /// Takes a line apart.
    ///
    /// # Errors
    /// Where it has no known code or, after the code of another kind of line, no JSON.
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

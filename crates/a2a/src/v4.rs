//! The line protocol of AI SDK 4: a code, a colon and a JSON value. Not part of A2A; bridges decode it at the edge.

use serde::de::{Error as _, IgnoredAny};

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

impl<'a> V4Line<'a> {
    /// Takes a line apart.
    ///
    /// # Errors
    /// Where it has no known code or, after the code of another kind of line, no JSON.
    pub fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        let Some((code, json)) = line.split_once(':') else {
            return Err(serde_json::Error::custom("a line of AI SDK 4 begins with a code and a colon"));
        };
        let code = match code {
            "9" => V4Code::Call,
            "a" => V4Code::Result,
            "b" => V4Code::Start,
            "c" => V4Code::Delta,
            "3" => V4Code::Error,
            "0" | "2" | "8" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" => V4Code::Other,
            other => {
                let shown: String = other.chars().take(16).collect();
                return Err(serde_json::Error::custom(format!("`{shown}` is no code of AI SDK 4's lines")));
            }
        };
        if code == V4Code::Other {
            serde_json::from_str::<IgnoredAny>(json)?;
        }
        Ok(Self { code, json })
    }
}

//! The answer of a hook's program: its exit code, then its output.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolpost_core::{HookError, HookOutput, HookVote};
use toolpost_model::{Behavior, HookEvent, ResultContent};

use super::process::HookProcessOutput;

/// The exit code for an objection.
const OBJECTION: i32 = 2;
/// How much of its standard error a failure quotes.
const QUOTED: usize = 500;

/// The JSON answer. An unknown key is a failure: if a misspelled key were ignored, an objection could count as consent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HookProgramAnswer {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    decision: Option<Behavior>,
    reason: Option<String>,
    arguments: Option<Map<String, Value>>,
    output: Option<String>,
    structured: Option<Value>,
    context: Option<HookContextText>,
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum HookContextText {
    One(String),
    Several(Vec<String>),
}

/// The answer of a program that ended by itself.
pub(crate) enum HookProgramReply<'a> {
    /// Its standard output.
    Answered(&'a str),
    /// An objection, with the reason from standard error.
    Objected(&'a str),
}

/// Reads a program's exit code, then its output.
pub(crate) fn spoken(ran: &HookProcessOutput) -> Result<HookProgramReply<'_>, HookError> {
    match (ran.ended.code, ran.ended.signal) {
        (Some(0), _) => Ok(HookProgramReply::Answered(text(
            &ran.stdout,
            "standard output",
        )?)),
        (Some(OBJECTION), _) => Ok(HookProgramReply::Objected(text(
            &ran.stderr,
            "standard error",
        )?)),
        (Some(code), _) => Err(complaint(
            &format!("it ended with exit code {code}"),
            &ran.stderr,
        )),
        (None, _) if ran.ended.out_of_memory => Err(complaint("it ran out of memory", &ran.stderr)),
        (None, Some(signal)) => Err(complaint(
            &format!("it was ended by signal {signal}"),
            &ran.stderr,
        )),
        (None, None) => Err(complaint("it was ended", &ran.stderr)),
    }
}

/// Reads a program's answer.
pub(super) fn read(event: HookEvent, ran: &HookProcessOutput) -> Result<HookOutput, HookError> {
    match spoken(ran)? {
        HookProgramReply::Answered(text) => said(event, text),
        HookProgramReply::Objected(reason) => objected(event, reason),
    }
}

fn text<'a>(bytes: &'a [u8], stream: &str) -> Result<&'a str, HookError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| HookError(format!("its {stream} is not UTF-8")))?;
    Ok(text.trim())
}

fn complaint(how: &str, stderr: &[u8]) -> HookError {
    let words = String::from_utf8_lossy(stderr);
    let words: String = words.trim().chars().take(QUOTED).collect();
    HookError(if words.is_empty() {
        how.to_owned()
    } else {
        format!("{how}: {words}")
    })
}

fn objected(event: HookEvent, reason: &str) -> Result<HookOutput, HookError> {
    Ok(match event {
        HookEvent::Before if reason.is_empty() => HookOutput::stop("it gave no reason"),
        HookEvent::Before => HookOutput::stop(reason),
        HookEvent::After | HookEvent::Failure if reason.is_empty() => HookOutput::proceed(),
        HookEvent::After | HookEvent::Failure => HookOutput::proceed().with_context(reason),
    })
}

fn said(event: HookEvent, text: &str) -> Result<HookOutput, HookError> {
    if text.is_empty() {
        return Ok(HookOutput::proceed());
    }
    if text.starts_with('{') {
        let answer = serde_json::from_str::<HookProgramAnswer>(text);
        return answer
            .map_err(|error| HookError(format!("its answer cannot be read: {error}")))
            .and_then(HookProgramAnswer::into_output);
    }
    match event {
        HookEvent::Before => {
            let head: String = text.chars().take(QUOTED).collect();
            Err(HookError(format!(
                "its answer is not a JSON object: {head}"
            )))
        }
        HookEvent::After | HookEvent::Failure => Ok(HookOutput::proceed().with_context(text)),
    }
}

impl HookProgramAnswer {
    fn into_output(self) -> Result<HookOutput, HookError> {
        let why = || {
            self.reason
                .clone()
                .unwrap_or_else(|| "it gave no reason".to_owned())
        };
        let stop = (self.goes_on == Some(false)).then(why);
        if stop.is_some() && self.decision == Some(Behavior::Allow) {
            return Err(HookError(
                "its answer has both `allow` and `\"continue\": false`".to_owned(),
            ));
        }
        Ok(HookOutput {
            opinion: self.decision.map(|behavior| HookVote {
                behavior,
                reason: why(),
            }),
            stop,
            arguments: self.arguments.map(Value::Object),
            output: self.output.map(|text| vec![ResultContent::text(text)]),
            structured: self.structured,
            context: match self.context {
                None => Vec::new(),
                Some(HookContextText::One(text)) => vec![text],
                Some(HookContextText::Several(texts)) => texts,
            },
            message: self.message,
            reason: self.reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_core::HookOutput;
    use toolpost_model::{Behavior, HookEvent};
    use toolpost_sandbox::CommandExit;

    use super::{HookProcessOutput, read};

    use HookEvent::{After, Before, Failure};

    fn check(
        event: HookEvent,
        code: i32,
        stdout: &str,
        stderr: &str,
        expected: Result<HookOutput, &str>,
    ) {
        let ended = CommandExit {
            code: Some(code),
            signal: None,
            out_of_memory: false,
        };
        let ran = HookProcessOutput {
            ended,
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        match (read(event, &ran), expected) {
            (Err(error), Err(part)) => assert!(error.0.contains(part), "{stdout}: {error}"),
            (got, want) => assert_eq!(got.ok(), want.ok(), "{event:?} {code} {stdout}"),
        }
    }

    #[test]
    fn the_exit_code_comes_first() {
        check(Before, 0, "", "only chatter", Ok(HookOutput::proceed()));
        check(Before, 0, " \n", "", Ok(HookOutput::proceed()));
        check(
            Before,
            2,
            r#"{"decision":"allow"}"#,
            " no such folder \n",
            Ok(HookOutput::stop("no such folder")),
        );
        check(Before, 2, "", "", Ok(HookOutput::stop("it gave no reason")));
        check(
            After,
            2,
            "",
            "mind the tests",
            Ok(HookOutput::proceed().with_context("mind the tests")),
        );
        check(Failure, 2, "", "", Ok(HookOutput::proceed()));
        check(
            Before,
            1,
            "{}",
            "Traceback …",
            Err("it ended with exit code 1: Traceback …"),
        );
        check(Before, 127, "", "", Err("it ended with exit code 127"));
        let long = "x".repeat(10_000);
        check(After, 1, "", &long, Err("xxx"));
    }

    #[test]
    fn json_says_everything_and_text_is_for_after_the_call() {
        let opinion = |behavior, reason: &str| HookOutput {
            reason: (reason != "it gave no reason").then(|| reason.to_owned()),
            ..HookOutput::opinion(behavior, reason)
        };
        for (text, expected) in [
            ("{}", HookOutput::proceed()),
            (r#"{"continue":true}"#, HookOutput::proceed()),
            (
                r#"{"decision":"ask","reason":"r"}"#,
                opinion(Behavior::Ask, "r"),
            ),
            (
                r#"{"decision":"allow"}"#,
                opinion(Behavior::Allow, "it gave no reason"),
            ),
            (
                r#"{"arguments":{"a":1},"reason":"r"}"#,
                HookOutput::rewrite(json!({ "a": 1 }), "r"),
            ),
            (
                r#"{"output":"o","reason":"r"}"#,
                HookOutput::replace("o", "r"),
            ),
            (
                r#"{"structured":[1]}"#,
                HookOutput::proceed().with_structured(json!([1])),
            ),
            (
                r#"{"context":"c"}"#,
                HookOutput::proceed().with_context("c"),
            ),
            (
                r#"{"context":["c","d"]}"#,
                HookOutput::proceed().with_context("c").with_context("d"),
            ),
            (
                r#"{"message":"m"}"#,
                HookOutput::proceed().with_message("m"),
            ),
        ] {
            check(Before, 0, text, "", Ok(expected));
        }
        let stop = HookOutput {
            reason: Some("r".to_owned()),
            ..HookOutput::stop("r")
        };
        check(
            Before,
            0,
            r#"{"continue":false,"reason":"r"}"#,
            "",
            Ok(stop),
        );
        check(
            After,
            0,
            "looks fine\n",
            "",
            Ok(HookOutput::proceed().with_context("looks fine")),
        );
        check(
            Failure,
            0,
            "[1]",
            "",
            Ok(HookOutput::proceed().with_context("[1]")),
        );
    }

    #[test]
    fn what_cannot_be_meant_is_a_failure() {
        for (text, part) in [
            ("fine", "is not a JSON object: fine"),
            ("true", "is not a JSON object"),
            ("{", "cannot be read"),
            (r#"{"descision":"deny"}"#, "unknown field `descision`"),
            (r#"{"decision":"no"}"#, "unknown variant `no`"),
            (
                r#"{"decision":"deny","decision":"allow"}"#,
                "duplicate field",
            ),
            (r#"{"continue":"false"}"#, "cannot be read"),
            (r#"{"arguments":[1]}"#, "cannot be read"),
            (r#"{"output":1}"#, "cannot be read"),
            (r#"{"context":1}"#, "cannot be read"),
            (r#"{} {}"#, "cannot be read"),
            (r#"{"continue":false,"decision":"allow"}"#, "has both"),
        ] {
            check(Before, 0, text, "", Err(part));
        }
        let ended = CommandExit {
            code: Some(0),
            signal: None,
            out_of_memory: false,
        };
        let ran = HookProcessOutput {
            ended,
            stdout: vec![0xff, 0xfe],
            stderr: Vec::new(),
        };
        assert!(read(After, &ran).unwrap_err().0.contains("not UTF-8"));
        let ran = HookProcessOutput {
            ended: CommandExit {
                code: None,
                signal: Some(9),
                ..ended
            },
            ..ran
        };
        assert_eq!(read(After, &ran).unwrap_err().0, "it was ended by signal 9");
    }
}

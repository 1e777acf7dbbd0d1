//! One call as a card: the tool, the arguments, the state, the result. A pure function of a part and a width.

use std::time::Duration;

use anstyle::Style;
use serde_json::Value;
use toolpost_a2a::ToolCallPart;

use super::{preview, row::StyledLine};
use crate::terminal::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, spelled_out};

/// The most lines of arguments,
const ARGUMENTS: usize = 5;
/// and of a result.
const RESULT: usize = 8;
/// The most characters of a tool's name.
const NAME: usize = 120;
/// The length of a shortened id: its last characters, since ids that are made from the time begin alike.
const SHORT_ID: usize = 8;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The state of a call on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallCardStatus {
    /// It has not ended. The elapsed time is `None` if the start is unknown; the number turns the spinner.
    Running {
        elapsed: Option<Duration>,
        turn: usize,
    },
    /// The same, while it waits for an approval.
    Waiting {
        elapsed: Option<Duration>,
        turn: usize,
    },
    /// It has ended.
    Ended,
    /// The stream of the call ended before the call did.
    LeftOpen,
    /// The host of the call is gone, and the call has no recorded end.
    Lost,
}

/// The card of a call without its first line. It is built when the call changes; the first line is built anew for each
/// frame.
#[derive(Clone, Debug, Default)]
pub(super) struct CallCardBody {
    /// The arguments in one line.
    short: StyledLine,
    rows: Vec<StyledLine>,
}

impl CallCardBody {
    pub(super) fn of(part: &ToolCallPart) -> Self {
        let arguments = part.args.to_value();
        let mut rows = Vec::new();
        for row in preview::lines(&arguments, DIM, ARGUMENTS) {
            rows.push(("  ", row));
        }
        let outcome = match (&part.error, &part.result) {
            (Some(error), _) => {
                preview::lines(&Value::String(error.message.clone()), RED_TEXT, RESULT)
            }
            (None, Some(result)) => preview::outcome(&result.to_value(), Style::new(), RESULT),
            (None, None) => Vec::new(),
        };
        for (number, row) in outcome.into_iter().enumerate() {
            rows.push((if number == 0 { "  → " } else { "    " }, row));
        }
        let rows = rows
            .into_iter()
            .map(|(before, row)| row.after(DIM, before))
            .collect();
        Self {
            short: preview::line(&arguments, StyledLine::new(), DIM),
            rows,
        }
    }
}

/// Not bold, since errors are longer texts.
const RED_TEXT: Style = anstyle::AnsiColor::Red.on_default();

/// The first line of a card.
pub(super) fn head(part: &ToolCallPart, standing: CallCardStatus) -> StyledLine {
    let (style, mark) = match (standing, &part.error) {
        (CallCardStatus::Running { turn, .. }, _) => (CYAN, SPINNER[turn % SPINNER.len()]),
        (CallCardStatus::Waiting { turn, .. }, _) => (YELLOW, SPINNER[turn % SPINNER.len()]),
        (CallCardStatus::LeftOpen | CallCardStatus::Lost, _) => (YELLOW, "?"),
        (CallCardStatus::Ended, Some(_)) => (RED, "✗"),
        (CallCardStatus::Ended, None) => (GREEN, "✓"),
    };
    let row = StyledLine::new()
        .own(style, mark)
        .own(Style::new(), " ")
        .foreign(BOLD, &part.name, NAME);
    row.own(DIM, format!("  {}", standing_words(part, standing)))
}

/// A whole card.
pub(super) fn card(
    part: &ToolCallPart,
    body: &CallCardBody,
    standing: CallCardStatus,
) -> Vec<StyledLine> {
    let mut rows = vec![head(part, standing)];
    rows.extend(body.rows.iter().cloned());
    rows
}

/// A card in one line, if there is no room for more.
pub(super) fn compact(
    part: &ToolCallPart,
    body: &CallCardBody,
    standing: CallCardStatus,
) -> StyledLine {
    head(part, standing).own(DIM, "  ").and(&body.short)
}

/// A call in one line for output without cards: its new state, and its id.
pub(super) fn news(part: &ToolCallPart, standing: CallCardStatus) -> StyledLine {
    let word = match (standing, &part.error) {
        (CallCardStatus::Running { .. }, _) => "running",
        (CallCardStatus::Waiting { .. }, _) => "waiting",
        (CallCardStatus::LeftOpen, _) => "open",
        (CallCardStatus::Lost, _) => "lost",
        (CallCardStatus::Ended, Some(_)) => "failed",
        (CallCardStatus::Ended, None) => "done",
    };
    let row = StyledLine::new().own(Style::new(), format!("{word:<7}  {}  ", short_id(&part.id)));
    let mut row = row.foreign(Style::new(), &part.name, NAME);
    if let (CallCardStatus::Ended, Some(took)) = (standing, took(part)) {
        row = row.own(Style::new(), format!("  in {}", span(took)));
    }
    match standing {
        CallCardStatus::Waiting { .. } | CallCardStatus::Lost => {
            row = row.own(
                Style::new(),
                format!("  ({})", standing_words(part, standing)),
            );
        }
        CallCardStatus::Running { .. } | CallCardStatus::Ended | CallCardStatus::LeftOpen => {}
    }
    let arguments = part.args.to_value();
    if arguments
        .as_object()
        .is_none_or(|members| !members.is_empty())
    {
        row = preview::line(&arguments, row.own(Style::new(), "  "), Style::new());
    }
    match (&part.error, &part.result) {
        (Some(error), _) => preview::line(
            &Value::String(error.message.clone()),
            row.own(Style::new(), "  → "),
            Style::new(),
        ),
        (None, Some(result)) => match result.to_value() {
            Value::Null => row,
            result => preview::outcome_line(&result, row.own(Style::new(), "  → "), Style::new()),
        },
        (None, None) => row,
    }
}

fn standing_words(part: &ToolCallPart, standing: CallCardStatus) -> String {
    match standing {
        CallCardStatus::Running { elapsed, .. } => {
            let elapsed = elapsed
                .map(|elapsed| format!(" {}", span(elapsed)))
                .unwrap_or_default();
            let so_far = if part.result.is_some() {
                ", so far:"
            } else {
                ""
            };
            format!("running{elapsed}{so_far}")
        }
        CallCardStatus::Waiting { elapsed, .. } => {
            let elapsed = elapsed
                .map(|elapsed| format!(" {}", span(elapsed)))
                .unwrap_or_default();
            format!("waiting for approval{elapsed}")
        }
        CallCardStatus::LeftOpen => "no end was seen".to_owned(),
        CallCardStatus::Lost => "no result: the host that ran it is gone".to_owned(),
        CallCardStatus::Ended => match (&part.error, took(part)) {
            (Some(_), Some(took)) => format!("failed after {}", span(took)),
            (Some(_), None) => "failed".to_owned(),
            (None, Some(took)) => format!("done in {}", span(took)),
            (None, None) => "done".to_owned(),
        },
    }
}

fn took(part: &ToolCallPart) -> Option<Duration> {
    let milliseconds = part.duration_ms.as_ref()?.as_f64()?;
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok()
}

/// A time for people.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_millis() as f64 / 1_000.0),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn short_id(id: &str) -> String {
    let skipped = id.chars().count().saturating_sub(SHORT_ID);
    spelled_out(&id.chars().skip(skipped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use toolpost_a2a::{JsonText, PartError, ToolCallPart};

    use super::*;

    fn part(args: &Value) -> ToolCallPart {
        ToolCallPart {
            id: "019a8d6e-0000-7000-8000-00007f3a9c01".to_owned(),
            name: "shell".to_owned(),
            args: JsonText::from(args),
            result: None,
            error: None,
            duration_ms: None,
            started_at: None,
        }
    }

    fn done(args: &Value, result: &Value, milliseconds: u64) -> ToolCallPart {
        ToolCallPart {
            result: Some(JsonText::from(result)),
            duration_ms: Some(milliseconds.into()),
            ..part(args)
        }
    }

    fn failed(args: &Value, message: &str) -> ToolCallPart {
        ToolCallPart {
            error: Some(PartError {
                message: message.to_owned(),
            }),
            ..part(args)
        }
    }

    const RUNNING: CallCardStatus = CallCardStatus::Running {
        elapsed: Some(Duration::from_millis(4_240)),
        turn: 2,
    };

    fn check(part: &ToolCallPart, standing: CallCardStatus, columns: usize, expected: &str) {
        let rows = card(part, &CallCardBody::of(part), standing);
        let shown: Vec<String> = rows.iter().map(|row| row.plain(columns)).collect();
        assert_eq!(shown.join("\n"), expected);
        assert!(rows.iter().all(|row| row.fit(columns).columns <= columns));
    }

    #[test]
    fn cards() {
        let args = json!({ "command": "cargo test --workspace" });
        check(
            &part(&args),
            RUNNING,
            60,
            "⠹ shell  running 4.2 s\n  command = cargo test --workspace",
        );
        check(&part(&json!({})), RUNNING, 60, "⠹ shell  running 4.2 s");
        check(
            &part(&json!("{\"comm")),
            RUNNING,
            60,
            "⠹ shell  running 4.2 s\n  {\"comm",
        );
        check(
            &done(&args, &json!("ok\n231 passed"), 12),
            CallCardStatus::Ended,
            60,
            "✓ shell  done in 12 ms\n  command = cargo test --workspace\n  → ok\n    231 passed",
        );
        check(
            &done(&json!({}), &json!(null), 65_000),
            CallCardStatus::Ended,
            60,
            "✓ shell  done in 1 min 5 s",
        );
        check(
            &done(&args, &json!({ "exit_code": 0, "stdout": "a\nb\n" }), 1_500),
            CallCardStatus::Ended,
            24,
            "✓ shell  done in 1.5 s\n  command = cargo test …\n  → exit_code = 0\n    stdout = a (1 more …",
        );
        check(
            &failed(&args, "denied by `deny shell(*)`\nhint: ask"),
            CallCardStatus::Ended,
            60,
            "✗ shell  failed\n  command = cargo test --workspace\n  → denied by `deny shell(*)`\n    hint: ask",
        );
        check(
            &part(&json!({})),
            CallCardStatus::LeftOpen,
            60,
            "? shell  no end was seen",
        );
        check(
            &part(&json!({})),
            CallCardStatus::Lost,
            60,
            "? shell  no result: the host that ran it is gone",
        );
        let waiting = CallCardStatus::Waiting {
            elapsed: Some(Duration::from_millis(4_240)),
            turn: 2,
        };
        check(
            &part(&json!({})),
            waiting,
            60,
            "⠹ shell  waiting for approval 4.2 s",
        );
        let so_far = done(&json!({}), &json!("half"), 1);
        check(
            &so_far,
            RUNNING,
            60,
            "⠹ shell  running 4.2 s, so far:\n  → half",
        );
    }

    #[test]
    fn hostile_texts_stay_text() {
        let mut evil = failed(
            &json!({ "a": "\u{1b}[2J" }),
            "\u{1b}]0;title\u{7}\r✓ shell  done",
        );
        evil.name = "she\u{202e}ll\n✓ other".to_owned();
        check(
            &evil,
            CallCardStatus::Ended,
            80,
            "✗ she\\u{202e}ll\\n✓ other  failed\n  a = \\u{1b}[2J\n  → \\u{1b}]0;title\\u{7}\\r✓ shell  done",
        );
    }

    #[test]
    fn one_line() {
        let args = json!({ "command": "ls", "timeout": 3 });
        let compacted = compact(&part(&args), &CallCardBody::of(&part(&args)), RUNNING);
        assert_eq!(
            compacted.plain(80),
            "⠹ shell  running 4.2 s  command = ls, timeout = 3"
        );
        for (part, standing, expected) in [
            (
                part(&args),
                RUNNING,
                "running  7f3a9c01  shell  command = ls, timeout = 3",
            ),
            (part(&json!({})), RUNNING, "running  7f3a9c01  shell"),
            (
                done(&args, &json!("a\nb"), 3),
                CallCardStatus::Ended,
                "done     7f3a9c01  shell  in 3 ms  command = ls, timeout = 3  → a (1 more line)",
            ),
            (
                done(&json!({}), &json!(null), 3),
                CallCardStatus::Ended,
                "done     7f3a9c01  shell  in 3 ms",
            ),
            (
                failed(&json!({}), "no"),
                CallCardStatus::Ended,
                "failed   7f3a9c01  shell  → no",
            ),
            (
                part(&json!({})),
                CallCardStatus::LeftOpen,
                "open     7f3a9c01  shell",
            ),
            (
                part(&args),
                CallCardStatus::Waiting {
                    elapsed: None,
                    turn: 0,
                },
                "waiting  7f3a9c01  shell  (waiting for approval)  command = ls, timeout = 3",
            ),
            (
                part(&json!({})),
                CallCardStatus::Lost,
                "lost     7f3a9c01  shell  (no result: the host that ran it is gone)",
            ),
        ] {
            assert_eq!(news(&part, standing).plain(200), expected);
        }
    }

    #[test]
    fn times() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_940, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_725_000, "1 h 2 min"),
        ] {
            assert_eq!(span(Duration::from_millis(milliseconds)), expected);
        }
    }
}

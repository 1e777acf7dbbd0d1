//! A few lines of a value: its members, its text, or its JSON.

use anstyle::Style;
use serde_json::{Map, Value};

use super::row::StyledLine;
use crate::terminal::DIM;

/// The most characters of one line that are read. No terminal is wider.
const LOOKED_AT: usize = 2_000;

/// The first `most` lines of a value.
pub(super) fn lines(value: &Value, style: Style, most: usize) -> Vec<StyledLine> {
    match value {
        Value::Null => Vec::new(),
        Value::Object(members) => match cut_short(members) {
            Some(cut) => cut_lines(&cut, style, most),
            None => member_lines(members, style, most),
        },
        Value::String(text) => text_lines(text, style, most),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            vec![StyledLine::new().foreign(style, &value.to_string(), LOOKED_AT)]
        }
    }
}

/// The first `most` lines of a call's result. If it is a text with further members, the text comes first.
pub(super) fn outcome(value: &Value, style: Style, most: usize) -> Vec<StyledLine> {
    let Some((text, rest)) = text_and_rest(value) else {
        return lines(value, style, most);
    };
    let has_rest = rest.as_object().is_some_and(|rest| !rest.is_empty());
    let mut rows = text_lines(text, style, most - usize::from(has_rest));
    if has_rest {
        rows.push(line(&rest, StyledLine::new(), DIM));
    }
    rows
}

/// The same on one line.
pub(super) fn outcome_line(value: &Value, row: StyledLine, style: Style) -> StyledLine {
    match text_and_rest(value) {
        Some((text, _)) => in_a_line(text, row, style),
        None => line(value, row, style),
    }
}

/// A member `text` with content, and the other members.
fn text_and_rest(value: &Value) -> Option<(&str, Value)> {
    let members = value.as_object()?;
    let text = members
        .get("text")?
        .as_str()
        .filter(|text| !text.trim().is_empty())?;
    let rest: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| *name != "text")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Some((text, Value::Object(rest)))
}

/// Any value on one line.
pub(super) fn line(value: &Value, row: StyledLine, style: Style) -> StyledLine {
    match value {
        Value::Null => row,
        Value::Object(members) => match cut_short(members) {
            Some(cut) => {
                in_a_line(cut.preview, row, style).own(DIM, format!(" ({})", cut.remark()))
            }
            None => {
                let mut row = row;
                for (number, (name, value)) in members.iter().enumerate() {
                    let between = if number == 0 { "" } else { ", " };
                    row = member(name, value, row.own(style, between), style);
                }
                row
            }
        },
        Value::String(text) => in_a_line(text, row, style),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            row.foreign(style, &value.to_string(), LOOKED_AT)
        }
    }
}

/// The placeholder of a value that was too large to be sent.
struct CutShort<'a> {
    bytes: Option<u64>,
    preview: &'a str,
    artifact: Option<&'a str>,
}

fn cut_short(members: &Map<String, Value>) -> Option<CutShort<'_>> {
    if members.get("truncated") != Some(&Value::Bool(true)) {
        return None;
    }
    let artifact = members.get("artifact").and_then(|kept| match kept {
        Value::String(id) => Some(id.as_str()),
        Value::Object(about) => about.get("id").and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    });
    Some(CutShort {
        bytes: members.get("bytes").and_then(Value::as_u64),
        preview: members
            .get("preview")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        artifact,
    })
}

impl CutShort<'_> {
    fn remark(&self) -> String {
        let bytes = self
            .bytes
            .map(|bytes| format!(", {bytes} bytes in all"))
            .unwrap_or_default();
        let kept = self
            .artifact
            .map(|id| format!(", kept as {}", crate::terminal::spelled_out(id)));
        format!("cut short{bytes}{}", kept.unwrap_or_default())
    }
}

fn cut_lines(cut: &CutShort<'_>, style: Style, most: usize) -> Vec<StyledLine> {
    let mut rows = text_lines(cut.preview, style, most.saturating_sub(1));
    rows.push(StyledLine::new().own(DIM, cut.remark()));
    rows
}

fn member_lines(members: &Map<String, Value>, style: Style, most: usize) -> Vec<StyledLine> {
    let shown = if members.len() <= most {
        members.len()
    } else {
        most.saturating_sub(1)
    };
    let one = |(name, value): (&String, &Value)| member(name, value, StyledLine::new(), style);
    let mut rows: Vec<StyledLine> = members.iter().take(shown).map(one).collect();
    if shown < members.len() {
        rows.push(StyledLine::new().own(DIM, format!("… {} more", members.len() - shown)));
    }
    rows
}

fn member(name: &str, value: &Value, row: StyledLine, style: Style) -> StyledLine {
    let row = row.foreign(style, name, LOOKED_AT).own(DIM, " = ");
    match value {
        Value::String(text) => in_a_line(text, row, style),
        other => row.foreign(style, &other.to_string(), LOOKED_AT),
    }
}

/// The first line of a text with content, and the number of further lines.
fn in_a_line(text: &str, row: StyledLine, style: Style) -> StyledLine {
    let text = text.trim_end();
    let mut lines = text.lines();
    let first = lines
        .by_ref()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let row = row.foreign(style, first, LOOKED_AT);
    match lines.count() {
        0 => row,
        1 => row.own(DIM, " (1 more line)"),
        more => row.own(DIM, format!(" ({more} more lines)")),
    }
}

fn text_lines(text: &str, style: Style, most: usize) -> Vec<StyledLine> {
    let text = text.trim_end();
    let all = text.lines().count();
    let shown = if all <= most {
        all
    } else {
        most.saturating_sub(1)
    };
    let mut rows: Vec<StyledLine> = text
        .lines()
        .take(shown)
        .map(|line| StyledLine::new().foreign(style, line, LOOKED_AT))
        .collect();
    if shown < all {
        rows.push(StyledLine::new().own(DIM, format!("… {} more lines", all - shown)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use anstyle::Style;
    use serde_json::{Value, json};

    use super::*;

    fn check(value: &Value, most: usize, expected: &[&str]) {
        let rows = lines(value, Style::new(), most);
        let shown: Vec<String> = rows.iter().map(|row| row.plain(80)).collect();
        assert_eq!(shown, expected, "{value}");
    }

    #[test]
    fn values_in_a_few_lines() {
        check(&json!(null), 3, &[]);
        check(&json!({}), 3, &[]);
        check(
            &json!({ "path": "a.txt", "limit": 3 }),
            3,
            &["path = a.txt", "limit = 3"],
        );
        check(
            &json!({ "a": 1, "b": [1, { "c": 2 }], "c": null, "d": 4 }),
            3,
            &["a = 1", r#"b = [1,{"c":2}]"#, "… 2 more"],
        );
        check(
            &json!({ "content": "\none\ntwo\nthree\n" }),
            3,
            &["content = one (2 more lines)"],
        );
        check(
            &json!({ "a\u{1b}": "b\u{1b}[1m" }),
            3,
            &["a\\u{1b} = b\\u{1b}[1m"],
        );
        check(&json!("one\ntwo\n\n"), 3, &["one", "two"]);
        check(&json!("1\n2\n3\n4"), 3, &["1", "2", "… 2 more lines"]);
        check(&json!([1, "two"]), 3, &[r#"[1,"two"]"#]);
        check(&json!(false), 3, &["false"]);
        let kept = json!({ "truncated": true, "bytes": 300_000, "preview": "{\"a\":\n1", "artifact": "art-1" });
        check(
            &kept,
            3,
            &[
                "{\"a\":",
                "1",
                "cut short, 300000 bytes in all, kept as art-1",
            ],
        );
        check(&json!({ "truncated": true }), 3, &["cut short"]);
    }

    #[test]
    fn a_text_comes_before_what_is_said_about_it() {
        let value = json!({ "exit_code": 0, "text": "1\n2\n3\n4", "lines": 4 });
        for (most, expected) in [
            (6, &["1", "2", "3", "4", "exit_code = 0, lines = 4"][..]),
            (3, &["1", "… 3 more lines", "exit_code = 0, lines = 4"]),
        ] {
            let rows = outcome(&value, Style::new(), most);
            assert_eq!(
                rows.iter().map(|row| row.plain(80)).collect::<Vec<_>>(),
                expected
            );
        }
        let alone = json!({ "text": "1\n2" });
        assert_eq!(outcome(&alone, Style::new(), 3).len(), 2);
        assert_eq!(
            outcome_line(&value, StyledLine::new(), Style::new()).plain(80),
            "1 (3 more lines)"
        );
        assert_eq!(
            outcome_line(&json!({ "text": "" }), StyledLine::new(), Style::new()).plain(80),
            "text = "
        );
    }

    #[test]
    fn values_in_one_line() {
        for (value, expected) in [
            (
                json!({ "path": "a.txt", "limit": 3 }),
                "path = a.txt, limit = 3",
            ),
            (json!("one\ntwo"), "one (1 more line)"),
            (json!(null), ""),
            (json!([1]), "[1]"),
            (
                json!({ "truncated": true, "bytes": 9, "preview": "x" }),
                "x (cut short, 9 bytes in all)",
            ),
        ] {
            assert_eq!(
                line(&value, StyledLine::new(), Style::new()).plain(80),
                expected
            );
        }
    }
}

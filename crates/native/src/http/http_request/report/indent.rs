//! Indents JSON without other changes: printing the parsed value would sort keys and round numbers.

/// The deepest level with further indentation.
const MAX_LEVELS: usize = 32;

/// How many times its size a large text may grow. Beyond that most of it would be blanks.
const MOST_GROWTH: usize = 4;
/// A text that stays below this size may grow without that limit.
const SMALL_TEXT: usize = 256 << 10;

/// Indents valid JSON. A text that already has several lines keeps its layout, and so does one that would grow too
/// much; the size is computed before anything is written.
pub(super) fn indented(json: String) -> String {
    let trimmed = json.trim();
    if trimmed.contains('\n') {
        return json;
    }
    let mut size = 0_usize;
    lay_out(trimmed, |piece| size += piece.len());
    if size > SMALL_TEXT.max(json.len().saturating_mul(MOST_GROWTH)) {
        return json;
    }
    let mut out = String::with_capacity(size);
    lay_out(trimmed, |piece| out.push_str(piece));
    out
}

/// Passes the pieces of the indented text to `put`.
fn lay_out(json: &str, mut put: impl FnMut(&str)) {
    const BLANKS: &str = "\n                                                                ";
    let mut level = 0_usize;
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let (piece, after) = match c {
            '"' => rest.split_at(string_end(rest)),
            _ => rest.split_at(c.len_utf8()),
        };
        rest = after;
        let line = |level: usize| &BLANKS[..=2 * level.min(MAX_LEVELS)];
        match c {
            '{' | '[' => {
                put(piece);
                rest = rest.trim_ascii_start();
                if rest.starts_with(['}', ']']) {
                    let (end, after) = rest.split_at(1);
                    put(end);
                    rest = after;
                } else {
                    level += 1;
                    put(line(level));
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                put(line(level));
                put(piece);
            }
            ',' => {
                put(piece);
                put(line(level));
            }
            ':' => put(": "),
            c if c.is_ascii_whitespace() => {}
            _ => put(piece),
        }
    }
}

/// The end of the string at the beginning of `json`.
fn string_end(json: &str) -> usize {
    let mut escaped = false;
    let closes = |byte: u8| match (byte, std::mem::take(&mut escaped)) {
        (b'\\', false) => {
            escaped = true;
            false
        }
        (b'"', false) => true,
        _ => false,
    };
    json.bytes()
        .skip(1)
        .position(closes)
        .map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn only_white_space_changes() {
        let check = |json: &str, expected: &str| assert_eq!(indented(json.to_owned()), expected);
        check(
            r#"{"b":1.0,"a":[1,{}, []],"s":"a,{\"}"}"#,
            "{\n  \"b\": 1.0,\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n  \"s\": \"a,{\\\"}\"\n}",
        );
        check(
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        );
        check("{\n \"a\":1}", "{\n \"a\":1}");
        check("[ ]", "[]");
    }
    #[test]
    fn text_that_would_be_mostly_blanks_stays() {
        let numbers = ["1"; 10_000].join(",");
        let deep = format!("{}{numbers}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(indented(deep.clone()), deep);
        assert_eq!(indented(format!("[[{numbers}]]")).lines().count(), 10_004);
    }
}

//! JSON with line breaks, otherwise exactly as it came: to print the parsed value would sort keys and round numbers.

/// The deepest level that is indented further.
const MAX_LEVELS: usize = 32;

/// Valid JSON, indented. Text that already has several lines is somebody's own layout and stays.
pub(super) fn indented(json: &str) -> String {
    if json.trim().contains('\n') {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() * 2);
    let mut level = 0_usize;
    let mut in_string = false;
    let mut characters = json.trim().chars().peekable();
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            match c {
                '\\' => out.extend(characters.next()),
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = characters.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    level += 1;
                    line(&mut out, level);
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                line(&mut out, level);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, level);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level.min(MAX_LEVELS)));
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn only_white_space_changes() {
        let check = |json: &str, expected: &str| assert_eq!(indented(json), expected);
        check(
            r#"{"b":1.0,"a":[1,{}, []],"s":"a,{\"}"}"#,
            "{\n  \"b\": 1.0,\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n  \"s\": \"a,{\\\"}\"\n}",
        );
        check("123456789012345678901234567890", "123456789012345678901234567890");
        check("{\n \"a\":1}", "{\n \"a\":1}");
        check("[ ]", "[]");
    }
}

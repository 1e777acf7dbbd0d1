//! The name and the media type of an artifact. Both come from tools, and end up in headers and on terminals.

/// Longer names are cut.
const LONGEST_NAME: usize = 120;
const LONGEST_TYPE: usize = 120;
/// The type of bytes without a usable type.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// The name, without characters that could pass for something other than a name.
pub(super) fn name(wanted: &str) -> String {
    let plain: String = wanted
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_NAME)
        .collect();
    if plain.trim().is_empty() {
        "artifact".to_owned()
    } else {
        plain
    }
}

/// The media type, if it is valid.
pub(super) fn media_type(wanted: &str) -> String {
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let is_parameter = |parameter: &str| {
        let value = |text: &str| {
            is_token(
                text.strip_prefix('"')
                    .and_then(|t| t.strip_suffix('"'))
                    .unwrap_or(text),
            )
        };
        parameter
            .trim()
            .split_once('=')
            .is_some_and(|(key, text)| is_token(key) && value(text))
    };
    let mut parts = wanted.split(';');
    let is_type = parts
        .next()
        .and_then(|essence| essence.trim().split_once('/'))
        .is_some_and(|(main, sub)| is_token(main) && is_token(sub));
    if is_type && wanted.len() <= LONGEST_TYPE && parts.all(is_parameter) {
        wanted.trim().to_owned()
    } else {
        UNKNOWN_TYPE.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{media_type, name};

    #[test]
    fn only_names_and_types_get_through() {
        for (wanted, expected) in [
            ("text/plain", "text/plain"),
            ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
            (
                "application/vnd.api+json;profile=\"x\"",
                "application/vnd.api+json;profile=\"x\"",
            ),
            ("text/plain\r\nX-Evil: 1", "application/octet-stream"),
            ("text", "application/octet-stream"),
            ("text/html; charset=<script>", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(media_type(wanted), expected, "{wanted:?}");
        }
        assert_eq!(name("std\u{1b}out\n"), "stdout");
        assert_eq!(name(" \t"), "artifact");
        assert_eq!(name(&"ä".repeat(500)).chars().count(), 120);
    }
}

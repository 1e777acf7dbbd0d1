//! The library's errors in our own messages: invalid YAML, or YAML of another shape than a
//! [`ConfigFile`](crate::ConfigFile).

use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter, budget::BudgetBreach};

use super::dropped_keys::find_dropped_key;
use crate::{
    error::ConfigComplaint,
    located::FilePosition,
    nearest::{nearest, suggestion},
    snippet::{printable, section_of, shown},
};

/// The command that makes a value for `sha256`.
pub(crate) const HASH_COMMAND: &str = "printf %s \"$TOKEN\" | sha256sum";

/// Key names under which operators paste a token by mistake.
const PLAIN_TOKEN_KEYS: [&str; 6] = ["token", "secret", "value", "password", "key", "plain"];

/// Converts an error to a message with its place and a hint.
pub(super) fn complaint(error: &Error, text: &str) -> ConfigComplaint {
    let at = error.location().map(FilePosition::from).unwrap_or_default();
    let ShapeErrorText { message, hint } = match cause(error) {
        Error::Unexpected { .. } if is_whole_document(text, at) => {
            ShapeErrorText::of("the file must hold keys and values")
                .hint("begin with a line such as `mode: plan`")
        }
        Error::Unexpected { .. } if is_in_tokens(text, at) => {
            let hint = format!("write `name` and `sha256`; `{HASH_COMMAND}` makes the hash");
            ShapeErrorText::of("expected a list of tables with a name and a hash").hint(hint)
        }
        cause => words(cause),
    };
    ConfigComplaint::new(at, message).hint(hint)
}

/// Whether the file is valid YAML around the error, so that other sections can be parsed without this one.
pub(super) fn is_about_one_value(error: &Error) -> bool {
    matches!(
        cause(error),
        Error::SerdeUnknownField { .. }
            | Error::SerdeUnknownVariant { .. }
            | Error::SerdeMissingField { .. }
            | Error::SerdeInvalidType { .. }
            | Error::SerdeInvalidValue { .. }
            | Error::DuplicateMappingKey { .. }
            | Error::InvalidBooleanStrict { .. }
            | Error::InvalidScalar { .. }
            | Error::NullIntoString { .. }
            | Error::Unexpected { .. }
            | Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
            | Error::Message { .. }
    )
}

/// The innermost error.
fn cause(error: &Error) -> &Error {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => cause(error),
        plain => plain,
    }
}

/// Whether only blank lines and comments come before the place.
fn is_whole_document(text: &str, at: FilePosition) -> bool {
    let before = usize::try_from(at.line)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    let is_empty =
        |line: &str| matches!(line.trim(), "" | "---") || line.trim_start().starts_with('#');
    at.column <= 1 && text.lines().take(before).all(is_empty)
}

/// Whether the place is in `tokens`, where a plain text is probably a token.
fn is_in_tokens(text: &str, at: FilePosition) -> bool {
    let index = usize::try_from(at.line)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    section_of(text, index).is_some_and(|line| line.starts_with("tokens:"))
}

struct ShapeErrorText {
    message: String,
    hint: Option<String>,
}

impl ShapeErrorText {
    fn of(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

fn words(error: &Error) -> ShapeErrorText {
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown_key(field, expected),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => {
            let message = format!("`{}` is not one of {}", shown(variant), expected.join(", "));
            let near = nearest(variant, expected.iter().copied());
            ShapeErrorText {
                message,
                hint: near.map(|near| format!("did you mean `{near}`?")),
            }
        }
        Error::SerdeMissingField { field, .. } => {
            ShapeErrorText::of(format!("the key `{field}` is missing"))
        }
        Error::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | Error::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => {
            let expected = if expected == "a JSON number" {
                "a number"
            } else {
                expected
            };
            ShapeErrorText::of(format!(
                "expected {expected}, found {}",
                kind_of(unexpected)
            ))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key
                .as_deref()
                .map(|key| format!("the key `{}`", shown(key)));
            let message = format!("{} is given twice", key.as_deref().unwrap_or("a key"));
            ShapeErrorText::of(message).hint("keep one of the two")
        }
        Error::Unexpected { expected, .. } => {
            ShapeErrorText::of(format!("expected {}", kind_in_words(expected)))
        }
        Error::InvalidScalar { ty, .. } => {
            ShapeErrorText::of(format!("expected {}", kind_in_words(ty)))
        }
        Error::InvalidBooleanStrict { .. } => ShapeErrorText::of("expected true or false"),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            ShapeErrorText::of("expected a single word")
        }
        Error::NullIntoString { .. } => ShapeErrorText::of("expected a text, found nothing"),
        Error::UnknownAnchor { .. } => ShapeErrorText::of("the alias after `*` is not defined")
            .hint("put a text that begins with `*` in quotes"),
        // Without the tag itself: it may be the beginning of a token.
        Error::UnsupportedTag { .. } => {
            ShapeErrorText::of("the `!` begins a tag, and the tag is unknown")
                .hint("put a text that begins with `!` in quotes")
        }
        Error::MultipleDocuments { .. } => {
            ShapeErrorText::of("the file holds more than one YAML document")
                .hint("remove the `---` line")
        }
        Error::MergeKeyNotAllowed { .. } => {
            ShapeErrorText::of("merge keys (`<<`) are not supported").hint("write the keys out")
        }
        Error::Budget { breach, .. } => ShapeErrorText::of(too_much(breach)),
        other => ShapeErrorText::of(
            UserMessageFormatter
                .format_message(other)
                .chars()
                .flat_map(printable)
                .collect::<String>(),
        ),
    }
}

fn unknown_key(key: &str, known: &[&str]) -> ShapeErrorText {
    let in_token = known.contains(&"sha256");
    if in_token && PLAIN_TOKEN_KEYS.contains(&key) {
        let hint = format!("give the hash as `sha256`; `{HASH_COMMAND}` makes it");
        return ShapeErrorText::of(format!(
            "`{key}` is refused: a token itself must not be in the file"
        ))
        .hint(hint);
    }
    let in_credential = known.contains(&"urls");
    if in_credential && PLAIN_TOKEN_KEYS.contains(&key) {
        let hint = "write it into a file that only you can read, and write its path under `file`";
        return ShapeErrorText::of(format!(
            "`{key}` is refused: a credential itself must not be in the file"
        ))
        .hint(hint);
    }
    if let Some(dropped) = find_dropped_key(key, known) {
        return ShapeErrorText::of(format!("`{key}` was removed")).hint(dropped.hint);
    }
    let message = format!("unknown key `{}`", shown(key));
    // YAML parses `- ask class: write` as a table, because of the space.
    let in_rule = known.contains(&"expires");
    if in_rule && matches!(key, "effect" | "tool" | "class" | "match") {
        return ShapeErrorText::of(message)
            .hint("write effect and tool in one line: `rule: \"ask shell(git push *)\"`");
    }
    if in_rule && key.contains(' ') {
        return ShapeErrorText::of(message)
            .hint("a rule of one line has no space after its colon: `ask class:write`");
    }
    ShapeErrorText {
        message,
        hint: suggestion(key, known, "the keys here are"),
    }
}

/// The kind of value that was found, without its content: the snippet shows the line anyway, except in `tokens`.
fn kind_of(unexpected: &str) -> &str {
    let kind = unexpected
        .split(['`', '"'])
        .next()
        .unwrap_or_default()
        .trim();
    match kind {
        "" => "something else",
        "map" => "a table",
        "sequence" => "a list",
        "string" => "a text",
        "integer" | "floating point" => "a number",
        "boolean" => "true or false",
        "unit value" => "nothing",
        other => other,
    }
}

/// The library's names of kinds, in the words of the reference.
fn kind_in_words(kind: &'static str) -> &'static str {
    match kind {
        "mapping start" => "a table of keys and values",
        "sequence start" => "a list",
        "string scalar" => "a single value, not a list or a table",
        "boolean" => "true or false",
        "u64" | "u32" | "usize" => "a whole number from 0 on",
        other => other,
    }
}

fn too_much(breach: &BudgetBreach) -> String {
    let what = match breach {
        BudgetBreach::Depth { .. } => "is nested too deeply",
        BudgetBreach::Aliases { .. } | BudgetBreach::AliasAnchorRatio { .. } => {
            "uses too many aliases"
        }
        BudgetBreach::Anchors { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => "has too many anchors",
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => "has too many values",
        _ => "is too large or too complex",
    };
    format!("the file {what}")
}

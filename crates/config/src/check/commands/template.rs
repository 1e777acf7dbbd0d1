//! Texts with `{name}` for parameters.

use crate::{CommandTemplateConfig, TemplatePieceConfig};

use super::is_name;

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("a `{{` without a parameter's name and a `}}` after it")]
    Open,
    #[error("a `}}` without a `{{` before it")]
    Close,
    #[error("`{{name?text}}` is a whole argument, and its text cannot contain braces")]
    Condition,
}

/// Parses a template. A single brace that makes no parameter is refused, not taken literally: `{print}` may be meant
/// for awk, and `{path }` may be a mistake.
pub(super) fn parse(text: &str) -> Result<CommandTemplateConfig, TemplateError> {
    if let Some((name, text)) = condition(text) {
        if text.contains(['{', '}']) {
            return Err(TemplateError::Condition);
        }
        return Ok(CommandTemplateConfig {
            condition: Some(name.to_owned()),
            pieces: vec![TemplatePieceConfig::Text(text.to_owned())],
        });
    }
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..];
        if let Some(after) = brace
            .strip_prefix("{{")
            .or_else(|| brace.strip_prefix("}}"))
        {
            literal.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let inner = brace.strip_prefix('{').ok_or(TemplateError::Close)?;
        let (name, after) = inner.split_once('}').ok_or(TemplateError::Open)?;
        if !is_name(name) {
            let conditional = name.split_once('?').is_some_and(|(name, _)| is_name(name));
            return Err(if conditional {
                TemplateError::Condition
            } else {
                TemplateError::Open
            });
        }
        if !literal.is_empty() {
            pieces.push(TemplatePieceConfig::Text(std::mem::take(&mut literal)));
        }
        pieces.push(TemplatePieceConfig::Parameter(name.to_owned()));
        rest = after;
    }
    literal.push_str(rest);
    // An empty text is a valid argument.
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(TemplatePieceConfig::Text(literal));
    }
    Ok(CommandTemplateConfig {
        condition: None,
        pieces,
    })
}

/// The halves of `{name?text}`.
fn condition(text: &str) -> Option<(&str, &str)> {
    let (name, text) = text.strip_prefix('{')?.strip_suffix('}')?.split_once('?')?;
    is_name(name).then_some((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_prints_as_it_was_written() {
        let text = |text: &str| TemplatePieceConfig::Text(text.to_owned());
        let parameter = |name: &str| TemplatePieceConfig::Parameter(name.to_owned());
        for (written, expected) in [
            ("", vec![text("")]),
            ("-w", vec![text("-w")]),
            ("{path}", vec![parameter("path")]),
            ("--n={n}", vec![text("--n="), parameter("n")]),
            (
                "{a}{b}.{c}x",
                vec![
                    parameter("a"),
                    parameter("b"),
                    text("."),
                    parameter("c"),
                    text("x"),
                ],
            ),
            ("{{print $1}}", vec![text("{print $1}")]),
            ("{{{a}}}", vec![text("{"), parameter("a"), text("}")]),
            ("ü{{}}", vec![text("ü{}")]),
        ] {
            let template = parse(written).unwrap();
            assert_eq!(
                (template.condition.as_deref(), &template.pieces),
                (None, &expected),
                "{written}"
            );
            assert_eq!(template.to_string(), written);
        }
    }

    #[test]
    fn an_argument_can_depend_on_a_parameter() {
        let template = parse("{all?--all=a?b}").unwrap();
        assert_eq!(template.condition.as_deref(), Some("all"));
        assert_eq!(
            template.pieces,
            [TemplatePieceConfig::Text("--all=a?b".to_owned())]
        );
        assert_eq!(template.parameters().collect::<Vec<_>>(), ["all"]);
        assert_eq!(template.to_string(), "{all?--all=a?b}");
    }

    #[test]
    fn stray_braces_are_refused() {
        for (written, expected) in [
            ("{", TemplateError::Open),
            ("{print $1}", TemplateError::Open),
            ("{}", TemplateError::Open),
            ("{path", TemplateError::Open),
            ("{1st}", TemplateError::Open),
            ("x}", TemplateError::Close),
            ("{a}}", TemplateError::Close),
            ("x{a?b}", TemplateError::Condition),
            ("{a?{b}}", TemplateError::Condition),
            ("{a?b}{c}", TemplateError::Condition),
            ("{?b}", TemplateError::Open),
        ] {
            assert_eq!(parse(written), Err(expected), "{written}");
        }
    }
}

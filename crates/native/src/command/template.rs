//! Templates of arguments: parsed once, filled for every call.

use super::error::CommandProblem;

/// One argument of a command, or its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentTemplate {
    /// The argument is left out unless this flag is set or this parameter given.
    pub(super) condition: Option<String>,
    pub(super) pieces: Vec<ArgumentTemplatePiece>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentTemplatePiece {
    Text(String),
    Value(String),
}

impl ArgumentTemplate {
    /// Parses a template.
    pub(super) fn parse(written: &str) -> Result<Self, CommandProblem> {
        let problem = |reason| CommandProblem::Template {
            template: written.escape_debug().to_string(),
            reason,
        };
        if written.contains('\0') {
            return Err(problem("it holds a NUL character"));
        }
        if let Some((name, text)) = conditional(written) {
            if text.contains(['{', '}']) {
                return Err(problem("the text after the `?` cannot contain braces"));
            }
            return Ok(Self {
                condition: Some(name.to_owned()),
                pieces: vec![ArgumentTemplatePiece::Text(text.to_owned())],
            });
        }
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = written;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                text.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let inside = rest
                .strip_prefix('{')
                .ok_or_else(|| problem("a `}` without a `{`; write `}}` for a brace"))?;
            let (name, after) = inside
                .split_once('}')
                .ok_or_else(|| problem("a `{` without a `}`; write `{{` for a brace"))?;
            if name.contains('?') {
                return Err(problem("`{name?text}` must be a whole argument"));
            }
            if !is_name(name) {
                return Err(problem("braces must contain the name of a parameter"));
            }
            if !text.is_empty() {
                pieces.push(ArgumentTemplatePiece::Text(std::mem::take(&mut text)));
            }
            pieces.push(ArgumentTemplatePiece::Value(name.to_owned()));
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() || pieces.is_empty() {
            pieces.push(ArgumentTemplatePiece::Text(text));
        }
        Ok(Self {
            condition: None,
            pieces,
        })
    }

    /// The parameters it names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let values = self.pieces.iter().filter_map(|piece| match piece {
            ArgumentTemplatePiece::Value(name) => Some(name.as_str()),
            ArgumentTemplatePiece::Text(_) => None,
        });
        self.condition.as_deref().into_iter().chain(values)
    }

    /// The text of a template without parameters.
    pub(super) fn fixed(&self) -> Option<&str> {
        match (self.pieces.as_slice(), &self.condition) {
            ([ArgumentTemplatePiece::Text(text)], None) => Some(text),
            _ => None,
        }
    }

    /// The parameter at the beginning: its value decides whether a program takes the argument for an option.
    pub(super) fn leads_with(&self) -> Option<&str> {
        match self.pieces.first() {
            Some(ArgumentTemplatePiece::Value(name)) => Some(name),
            Some(ArgumentTemplatePiece::Text(_)) | None => None,
        }
    }

    /// The parts with their values. `None` if a parameter is missing, and the argument is left out.
    fn parts<'v>(
        &'v self,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> impl Iterator<Item = Option<&'v str>> {
        self.pieces.iter().map(move |piece| match piece {
            ArgumentTemplatePiece::Text(text) => Some(text.as_str()),
            ArgumentTemplatePiece::Value(name) => value(name),
        })
    }

    /// The size in bytes of the filled template.
    pub(super) fn size<'v>(&'v self, value: impl Fn(&str) -> Option<&'v str>) -> Option<usize> {
        self.parts(value)
            .try_fold(0_usize, |size, part| Some(size.saturating_add(part?.len())))
    }

    /// The filled template. `None` if a parameter is missing, and the argument is left out.
    pub(super) fn fill<'v>(&'v self, value: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        self.parts(value).collect()
    }
}

/// The two halves of `{name?text}`.
fn conditional(written: &str) -> Option<(&str, &str)> {
    let (name, text) = written
        .strip_prefix('{')?
        .strip_suffix('}')?
        .split_once('?')?;
    is_name(name).then_some((name, text))
}

/// Whether a text is a valid parameter name.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{ArgumentTemplate, CommandProblem};

    fn filled(written: &str) -> Result<Option<String>, CommandProblem> {
        let template = ArgumentTemplate::parse(written)?;
        Ok(template.fill(|name| match name {
            "a" => Some("A{b}"),
            "b" => Some("-B"),
            _ => None,
        }))
    }

    #[test]
    fn templates_are_filled_once_and_never_read_again() {
        let check = |written: &str, expected: Option<&str>| {
            assert_eq!(filled(written).unwrap().as_deref(), expected, "{written}");
        };
        check("", Some(""));
        check("plain $x `y`", Some("plain $x `y`"));
        check("{a}", Some("A{b}"));
        check("--x={a},{b}!", Some("--x=A{b},-B!"));
        check("{none}", None);
        check("--x={none}", None);
        check("{{a}} {{}}", Some("{a} {}"));
        check("{a?--verbose}", Some("--verbose"));
    }

    #[test]
    fn templates_that_cannot_be_meant_are_refused() {
        for written in [
            "{", "}", "{a", "a}", "{a b}", "{}", "x{a?y}", "{a?{b}}", "{1}", "a\0",
        ] {
            assert!(filled(written).is_err(), "{written}");
        }
    }

    #[test]
    fn the_value_that_leads_an_argument_is_known() {
        let leads = |written: &str| {
            ArgumentTemplate::parse(written)
                .unwrap()
                .leads_with()
                .map(str::to_owned)
        };
        assert_eq!(leads("{a}"), Some("a".to_owned()));
        assert_eq!(leads("{a}/x"), Some("a".to_owned()));
        assert_eq!(leads("--x={a}"), None);
        assert_eq!(leads("{a?-v}"), None);
    }
}

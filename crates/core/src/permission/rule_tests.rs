//! The tests of a rule, which run when the rule is loaded.

use serde_json::{Map, Value};
use toolpost_command::{Analysis, RedirectAccess, ShellRedirect, SimpleCommand, analyze_with};
use toolpost_model::{ArgumentCondition, Behavior, ResourceAccess, Rule, Selector, ToolPattern};

use super::{
    matcher::Matcher, places::PathBaseFolders, policy::RuleProblem, snapshot::CompiledRule,
    url_pattern::PlannedUrlRequest,
};

pub(super) fn run(compiled: &CompiledRule, places: &PathBaseFolders) -> Vec<RuleProblem> {
    let rule = &compiled.rule;
    let tried = Tried {
        rule,
        matcher: compiled.matcher.as_ref(),
        places,
    };
    let wanted = rule.tests.matching.iter().map(|case| (case, true));
    let unwanted = rule.tests.not_match.iter().map(|case| (case, false));
    wanted
        .chain(unwanted)
        .filter_map(|(case, expected)| tried.problem(case, expected))
        .collect()
}

struct Tried<'a> {
    rule: &'a Rule,
    matcher: Option<&'a Matcher>,
    places: &'a PathBaseFolders,
}

impl Tried<'_> {
    fn problem(&self, case: &Value, expected: bool) -> Option<RuleProblem> {
        let message = match self.speaks_of(case) {
            Ok(found) if found == expected => return None,
            Ok(true) => format!("its test expects that it does not speak of {case}, but it does"),
            Ok(false) => format!("its test expects that it speaks of {case}, but it does not"),
            Err(reason) => format!("its test {case} cannot be tried: {reason}"),
        };
        Some(RuleProblem::of(self.rule, message))
    }

    fn speaks_of(&self, case: &Value) -> Result<bool, &'static str> {
        match (case, &self.rule.selector) {
            (_, Selector::Class(_)) => Err("a rule about a class looks at no argument"),
            (
                Value::String(text),
                Selector::Tool {
                    tools,
                    matcher: None,
                    conditions,
                },
            ) => match conditions.is_empty() {
                true => Ok(names(tools, text)),
                false => Err("write the arguments as an object, since the rule has conditions"),
            },
            (Value::String(text), Selector::Tool { conditions, .. }) => match conditions.is_empty()
            {
                true => Ok(self.fits_anyhow(text, &[])),
                false => Err("write the arguments as an object, since the rule has conditions"),
            },
            (Value::String(text), Selector::Reads(_)) => {
                Ok(self.fits_path(text, ResourceAccess::Read))
            }
            (Value::String(text), Selector::Writes(_)) => {
                Ok(self.fits_path(text, ResourceAccess::Write))
            }
            (Value::String(text), Selector::Reaches(_)) => Ok(self.fits_request(text)),
            (
                Value::Object(fields),
                Selector::Tool {
                    conditions,
                    matcher,
                    ..
                },
            ) => {
                let holds = |condition: &ArgumentCondition| condition.holds(case);
                let texts = || fields.values().filter_map(Value::as_str);
                let environment = environment(fields);
                let fits =
                    matcher.is_none() || texts().any(|text| self.fits_anyhow(text, &environment));
                Ok(conditions.iter().all(holds) && fits)
            }
            (Value::Object(_), Selector::Reads(_) | Selector::Writes(_) | Selector::Reaches(_)) => {
                Err("write the path or the request as a text")
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_), _) => {
                Err("write a text, or the arguments as an object")
            }
        }
    }

    /// A test text is tried as command, path and request, because the rule does not state its kind either. If the
    /// pattern has several words it is no path; otherwise `git log > x` would be a path.
    fn fits_anyhow(&self, text: &str, environment: &[(&str, &str)]) -> bool {
        let one_word = !matches!(&self.rule.selector, Selector::Tool { matcher: Some(written), .. }
            if written.contains(char::is_whitespace));
        let fits_path = |access| one_word && self.fits_path(text, access);
        self.fits_command(text, environment)
            || fits_path(ResourceAccess::Read)
            || fits_path(ResourceAccess::Write)
            || self.fits_request(text)
    }

    /// An allow must match all commands of a text. A deny or an ask matches as soon as it matches one.
    fn fits_command(&self, text: &str, environment: &[(&str, &str)]) -> bool {
        let effect = self.rule.effect;
        let Some(matcher) = self.matcher else {
            return true;
        };
        let Analysis {
            commands,
            redirects,
            opaque,
            ..
        } = analyze_with(text, environment.iter().copied());
        let takes = |command: &SimpleCommand| matcher.takes_command(effect, command);
        match effect {
            Behavior::Allow => {
                // A piece of a command line is covered by a match of the line.
                let mut lines = commands
                    .iter()
                    .filter(|command| command.spelled_in.is_none());
                let is_covered = |redirect: &ShellRedirect| {
                    redirect.spelled_in.is_some_and(|line| {
                        !line.must_be_spelled
                            || matcher.spells_words(&commands[line.command], line.through)
                    })
                };
                let mut writes = redirects
                    .iter()
                    .filter(|redirect| redirect.access == RedirectAccess::Write);
                !commands.is_empty()
                    && opaque.is_empty()
                    && writes.all(is_covered)
                    && lines.all(takes)
            }
            Behavior::Ask | Behavior::Deny => commands.iter().any(takes),
        }
    }

    fn fits_path(&self, text: &str, access: ResourceAccess) -> bool {
        let Some(matcher) = self.matcher else {
            return true;
        };
        let readings = self.places.resolve(text, None).unwrap_or_default();
        readings
            .iter()
            .any(|path| matcher.takes_path(self.rule.effect, path, access))
    }

    fn fits_request(&self, text: &str) -> bool {
        let Some(matcher) = self.matcher else {
            return true;
        };
        let (method, url) = match text.split_once(' ') {
            Some((method, url)) => (Some(method.to_owned()), url),
            None => (None, text),
        };
        let request = PlannedUrlRequest::parse(url, method);
        request.is_some_and(|request| matcher.takes_request(self.rule.effect, &request))
    }
}

/// The variables among the arguments of a test. The tool is unknown here, so each object of strings counts as
/// variables.
fn environment(fields: &Map<String, Value>) -> Vec<(&str, &str)> {
    let variables = fields.values().filter_map(Value::as_object).flatten();
    variables
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect()
}

/// Whether a tool pattern matches a text that is an id or a name.
fn names(pattern: &ToolPattern, text: &str) -> bool {
    match text.parse() {
        Ok(id) => pattern.matches(&id, &[]),
        Err(_) => pattern.matches_name(text),
    }
}

//! What the author of a rule expects of it, tried when the rule is loaded.

use serde_json::Value;
use toolpost_command::{Analysis, RedirectAccess, analyze};
use toolpost_model::{Access, Behavior, Condition, Rule, Selector, ToolPattern};

use super::{
    matcher::Matcher, places::Places, policy::RuleProblem, snapshot::CompiledRule, url_pattern::Request,
};

pub(super) fn run(compiled: &CompiledRule, places: &Places) -> Vec<RuleProblem> {
    let rule = &compiled.rule;
    let tried = Tried { rule, matcher: compiled.matcher.as_ref(), places };
    let wanted = rule.tests.matching.iter().map(|case| (case, true));
    let unwanted = rule.tests.not_match.iter().map(|case| (case, false));
    wanted.chain(unwanted).filter_map(|(case, expected)| tried.problem(case, expected)).collect()
}

struct Tried<'a> {
    rule: &'a Rule,
    matcher: Option<&'a Matcher>,
    places: &'a Places,
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
            (Value::String(text), Selector::Tool { tools, matcher: None, conditions }) => {
                match conditions.is_empty() {
                    true => Ok(names(tools, text)),
                    false => Err("write the arguments as an object, since the rule has conditions"),
                }
            }
            (Value::String(text), Selector::Tool { conditions, .. }) => match conditions.is_empty() {
                true => Ok(self.fits_anyhow(text)),
                false => Err("write the arguments as an object, since the rule has conditions"),
            },
            (Value::String(text), Selector::Reads(_)) => Ok(self.fits_path(text, Access::Read)),
            (Value::String(text), Selector::Writes(_)) => Ok(self.fits_path(text, Access::Write)),
            (Value::String(text), Selector::Reaches(_)) => Ok(self.fits_request(text)),
            (Value::Object(fields), Selector::Tool { conditions, matcher, .. }) => {
                let holds = |condition: &Condition| condition.holds(case);
                let texts = || fields.values().filter_map(Value::as_str);
                let fits = matcher.is_none() || texts().any(|text| self.fits_anyhow(text));
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

    /// The rule does not say what its matcher means, so neither need its tests. Several words are no path, or else
    /// `git log > x` would be one.
    fn fits_anyhow(&self, text: &str) -> bool {
        let one_word = !matches!(&self.rule.selector, Selector::Tool { matcher: Some(written), .. }
            if written.contains(char::is_whitespace));
        let fits_path = |access| one_word && self.fits_path(text, access);
        self.fits_command(text)
            || fits_path(Access::Read)
            || fits_path(Access::Write)
            || self.fits_request(text)
    }

    /// An allow must cover every command; a deny or ask speaks of a text as soon as it catches one.
    fn fits_command(&self, text: &str) -> bool {
        let effect = self.rule.effect;
        let Some(matcher) = self.matcher else { return true };
        let Analysis { commands, redirects, opaque } = analyze(text);
        let mut taken = commands.iter().map(|command| matcher.takes_command(effect, command));
        match effect {
            Behavior::Allow => {
                let writes = redirects.iter().any(|redirect| redirect.access == RedirectAccess::Write);
                !commands.is_empty() && opaque.is_empty() && !writes && taken.all(|yes| yes)
            }
            Behavior::Ask | Behavior::Deny => taken.any(|yes| yes),
        }
    }

    fn fits_path(&self, text: &str, access: Access) -> bool {
        let Some(matcher) = self.matcher else { return true };
        let readings = self.places.resolve(text, None).unwrap_or_default();
        readings.iter().any(|path| matcher.takes_path(self.rule.effect, path, access))
    }

    fn fits_request(&self, text: &str) -> bool {
        let Some(matcher) = self.matcher else { return true };
        let (method, url) = match text.split_once(' ') {
            Some((method, url)) => (Some(method.to_owned()), url),
            None => (None, text),
        };
        let request = Request::parse(url, method);
        request.is_some_and(|request| matcher.takes_request(self.rule.effect, &request))
    }
}

/// Whether a rule about tools names one that is written as an id or a name.
fn names(pattern: &ToolPattern, text: &str) -> bool {
    match text.parse() {
        Ok(id) => pattern.matches(&id, &[]),
        Err(_) => pattern.matches_name(text),
    }
}

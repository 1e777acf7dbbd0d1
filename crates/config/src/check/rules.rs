//! `rules`: from lines and tables to [`Rule`]s.

use toolpost_model::{Behavior, EffectClass, Rule, RuleError, RuleOrigin, Selector};

use crate::{
    Located, RuleEntry, RuleTable,
    error::{Complaint, Source},
    located::Position,
    nearest::nearest,
    snippet::shown,
};

pub(super) fn check(
    entries: &[Located<RuleEntry>],
    source: Source<'_>,
    complaints: &mut Vec<Complaint>,
) -> Vec<Located<Rule>> {
    let mut rules = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = source.place(entry.at);
        let rule = match &entry.value {
            RuleEntry::Line(line) => {
                from_line(line, place).map_err(|error| line_complaint(entry.at, line, &error))
            }
            RuleEntry::Table(table) => from_table(table, place, entry.at),
        };
        match rule {
            Ok(value) => rules.push(Located { value, at: entry.at }),
            Err(complaint) => complaints.push(complaint),
        }
    }
    rules
}

/// The layer gives the rule its origin; until then it has the one that fits most files.
fn from_line(line: &str, place: String) -> Result<Rule, RuleError> {
    Rule::parse(line, RuleOrigin::Cli, place)
}

fn from_table(table: &RuleTable, place: String, at: Position) -> Result<Rule, Complaint> {
    let selector = match (&table.tool, &table.class) {
        (Some(tool), None) => tool_selector(tool)?,
        (None, Some(class)) => Selector::Class(class.value),
        (Some(_), Some(_)) => {
            return Err(Complaint::new(at, "the rule names a tool and a class; it can only have one"));
        }
        (None, None) => {
            return Err(Complaint::new(at, "the rule names neither a `tool` nor a `class`"));
        }
    };
    let reason = table.reason.clone().filter(|reason| !reason.trim().is_empty());
    Ok(Rule { reason, ..Rule::new(table.effect, selector, RuleOrigin::Cli, place) })
}

fn tool_selector(tool: &Located<String>) -> Result<Selector, Complaint> {
    if tool.value.starts_with("class:") {
        let message = format!("`{}` is not a tool name", shown(&tool.value));
        return Err(
            Complaint::new(tool.at, message).hint(Some("write the class under the key `class`".to_owned()))
        );
    }
    tool.value.parse().map_err(|error: RuleError| Complaint::new(tool.at, error_message(&error)))
}

fn line_complaint(at: Position, line: &str, error: &RuleError) -> Complaint {
    let effects = [Behavior::Allow, Behavior::Ask, Behavior::Deny].map(Behavior::as_str);
    let near = match error {
        RuleError::Form(_) => nearest(line.split_whitespace().next().unwrap_or_default(), effects),
        RuleError::Class(class) => nearest(class, EffectClass::ALL.map(EffectClass::as_str)),
        RuleError::Tool(_) | RuleError::Matcher(_) | RuleError::Condition(_) => None,
    };
    // A word that is right is not what is wrong.
    let near = near.filter(|near| !line.split_whitespace().any(|word| word == *near));
    Complaint::new(at, error_message(error)).hint(near.map(|near| format!("did you mean `{near}`?")))
}

/// The vocabulary's own words, with the quoted text made fit to be shown.
pub(super) fn error_message(error: &RuleError) -> String {
    match error {
        RuleError::Form(text) => RuleError::Form(shown(text)),
        RuleError::Class(text) => RuleError::Class(shown(text)),
        RuleError::Matcher(text) => RuleError::Matcher(shown(text)),
        RuleError::Condition(text) => RuleError::Condition(shown(text)),
        RuleError::Tool(text) => RuleError::Tool(shown(text)),
    }
    .to_string()
}

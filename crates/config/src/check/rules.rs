//! `rules`: from lines and tables to [`Rule`]s. The policy interprets their patterns, so the policy reports errors in
//! them; see [`ParsedConfig::rule_errors`](crate::ParsedConfig::rule_errors).

use std::collections::BTreeSet;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use toolpost_model::{Behavior, EffectClass, Rule, RuleError, RuleOrigin};

use crate::{
    LocatedValue, RuleEntry, RuleTable,
    error::{ConfigComplaint, ConfigSourceText},
    located::FilePosition,
    nearest::nearest,
    snippet::shown,
};

use super::tokens::is_name;

pub(super) fn check(
    entries: &[LocatedValue<RuleEntry>],
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<Rule>> {
    let mut rules = Vec::with_capacity(entries.len());
    let mut ids = BTreeSet::new();
    for entry in entries {
        let place = source.place(entry.at);
        let rule = match &entry.value {
            RuleEntry::Line(line) => from_line(line, entry.at, place),
            RuleEntry::Table(table) => {
                complaints.extend(table.id.as_ref().and_then(|id| id_complaint(id, &mut ids)));
                from_table(table, place)
            }
        };
        match rule {
            Ok(value) => rules.push(LocatedValue {
                value,
                at: entry.at,
            }),
            Err(complaint) => complaints.push(complaint),
        }
    }
    rules
}

/// The layer sets the rule's origin later; this is the origin of most files.
fn from_line(line: &str, at: FilePosition, place: String) -> Result<Rule, ConfigComplaint> {
    Rule::parse(line, RuleOrigin::Cli, place).map_err(|error| line_complaint(at, line, &error))
}

fn from_table(table: &RuleTable, place: String) -> Result<Rule, ConfigComplaint> {
    let rule = from_line(&table.rule.value, table.rule.at, place)?;
    if let Some(principal) = &table.principal
        && (principal.value.trim().is_empty() || principal.value.len() > 256)
    {
        let message = "`principal` is not the name of a caller".to_owned();
        return Err(ConfigComplaint::new(principal.at, message)
            .hint(Some("leave it out for every caller".to_owned())));
    }
    Ok(Rule {
        id: table.id.as_ref().map(|id| id.value.clone()),
        reason: table
            .reason
            .clone()
            .filter(|reason| !reason.trim().is_empty()),
        principal: table
            .principal
            .as_ref()
            .map(|principal| principal.value.clone()),
        expires: table.expires.as_ref().map(end_of).transpose()?,
        remember: table
            .remember
            .map(|remember| remember.value)
            .unwrap_or_default(),
        tests: table
            .tests
            .as_ref()
            .map(|tests| tests.value.clone())
            .unwrap_or_default(),
        ..rule
    })
}

/// The rule applies during the whole day, so it ends when the next day begins.
fn end_of(written: &LocatedValue<String>) -> Result<Timestamp, ConfigComplaint> {
    let text = written.value.as_str();
    let day = || {
        text.parse::<Date>()
            .ok()?
            .tomorrow()
            .ok()?
            .to_zoned(TimeZone::UTC)
            .ok()
    };
    let end = text
        .parse()
        .ok()
        .or_else(|| day().map(|start| start.timestamp()));
    end.ok_or_else(|| {
        let message = format!("`{}` is not a day or a time", shown(text));
        let hint = "write a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z";
        ConfigComplaint::new(written.at, message).hint(Some(hint.to_owned()))
    })
}

fn id_complaint<'a>(
    id: &'a LocatedValue<String>,
    known: &mut BTreeSet<&'a str>,
) -> Option<ConfigComplaint> {
    let quoted = shown(&id.value);
    if !is_name(&id.value) {
        let hint = "use up to 64 letters, digits, `_`, `-` and `.`".to_owned();
        return Some(
            ConfigComplaint::new(id.at, format!("`{quoted}` is not a name for a rule"))
                .hint(Some(hint)),
        );
    }
    let is_new = known.insert(&id.value);
    (!is_new).then(|| ConfigComplaint::new(id.at, format!("there are two rules named `{quoted}`")))
}

fn line_complaint(at: FilePosition, line: &str, error: &RuleError) -> ConfigComplaint {
    let [allow, ask, deny] = [Behavior::Allow, Behavior::Ask, Behavior::Deny].map(Behavior::as_str);
    let effects = [allow, ask, deny, Rule::DELEGATE];
    let near = match error {
        RuleError::Form(_) => nearest(line.split_whitespace().next().unwrap_or_default(), effects),
        RuleError::Class(class) => nearest(class, EffectClass::ALL.map(EffectClass::as_str)),
        RuleError::Authority(_)
        | RuleError::Tool(_)
        | RuleError::Matcher(_)
        | RuleError::Condition(_) => None,
    };
    // A correct word is not the cause of the error.
    let near = near.filter(|near| !line.split_whitespace().any(|word| word == *near));
    ConfigComplaint::new(at, error_message(error))
        .hint(near.map(|near| format!("did you mean `{near}`?")))
}

/// The parser's message, with the quoted text made safe to print.
pub(super) fn error_message(error: &RuleError) -> String {
    match error {
        RuleError::Form(text) => RuleError::Form(shown(text)),
        RuleError::Authority(text) => RuleError::Authority(shown(text)),
        RuleError::Class(text) => RuleError::Class(shown(text)),
        RuleError::Matcher(text) => RuleError::Matcher(shown(text)),
        RuleError::Condition(text) => RuleError::Condition(shown(text)),
        RuleError::Tool(text) => RuleError::Tool(shown(text)),
    }
    .to_string()
}

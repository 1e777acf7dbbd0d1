//! A question to a person about one call, and the answer.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Decision, Effects, InvocationId, Principal, ProgramChange, ProgramFile, SandboxPlan, SessionId,
    ToolId, visible_line,
};

/// SHA-256 of everything a person approves: the tool, the exact arguments, what the call touches, what confines it and
/// the files it would run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallHash(pub [u8; 32]);

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", const_hex::display(self.0))
    }
}

impl fmt::Debug for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CallHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bad = || serde::de::Error::custom("a call's hash has 64 hexadecimal digits");
        if text.len() != 64 {
            return Err(bad());
        }
        const_hex::decode_to_array(text.as_bytes())
            .map(Self)
            .map_err(|_| bad())
    }
}

/// What a person is asked. The arguments and the keys of resources are as the call has them; the other texts have every
/// character that would hide or reorder something written out (see [`visible_line`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The question, under the id of the first call that raised it.
    pub ask_id: InvocationId,
    /// What exactly would be approved.
    pub call_hash: CallHash,
    /// The tool.
    pub tool_id: ToolId,
    /// The tool's name on the wire.
    pub tool: String,
    /// Who calls.
    pub principal: Principal,
    /// In which session.
    pub session_id: SessionId,
    /// One line for people.
    pub summary: String,
    /// The arguments; sensitive ones are replaced.
    pub arguments: Value,
    /// Sensitive arguments were replaced above, so the call cannot outlive the host and must not be edited as shown.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub redacted: bool,
    /// What would run, command by command, where the call runs commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<String>,
    /// The files inside the roots that it would run. The answer is for these contents.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub programs: Vec<ProgramFile>,
    /// The files that changed since the same call was asked about or approved.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed_programs: Vec<ProgramChange>,
    /// What it touches, and the profile it counts on.
    pub effects: Effects,
    /// What really confines its process on this machine, where it starts one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<SandboxPlan>,
    /// Why it is asked, by which rule, and what else matched.
    pub decision: Decision,
    /// Rules that would let this call and the like of it pass, from narrow to wide.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub suggestions: Vec<String>,
    /// What such a rule covers beyond this very call: any content of the files that it would run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule_remark: Option<String>,
    /// When the first call asked.
    pub asked_at: Timestamp,
    /// When no answer becomes a no.
    pub expires_at: Timestamp,
    /// How many calls wait for the answer.
    pub waiting: usize,
}

impl PermissionRequest {
    /// What a rule for the session or a remembered one covers beyond one call that would run these files.
    pub fn remark_on_rules(programs: &[ProgramFile]) -> Option<String> {
        let names: Vec<String> = programs
            .iter()
            .map(|file| format!("`{}`", visible_line(&file.name)))
            .collect();
        let told = match names.as_slice() {
            [] => return None,
            [one] => one.clone(),
            [one, two] => format!("{one} and {two}"),
            [one, two, more @ ..] => format!("{one}, {two} and {} more", more.len()),
        };
        Some(format!(
            "a rule for the session or a remembered one covers any content of {told}"
        ))
    }
}

/// An argument that whoever approved a call gave another value, in one line of readable text each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentChange {
    /// The argument.
    pub field: String,
    /// Its value as JSON, cut around the difference where it is long. `None`: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The new value, the same way. `None`: it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The longest value that a change shows, in characters.
const SHOWN_VALUE: usize = 200;
/// How much of what both values have in common is shown in front of the first difference.
const SHOWN_COMMON: usize = 30;

impl ArgumentChange {
    /// The arguments in which two objects differ.
    pub fn between(before: &Value, after: &Value) -> Vec<Self> {
        let fields = [before, after]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|object| object.keys());
        let fields: std::collections::BTreeSet<&String> = fields.collect();
        let differing = fields
            .into_iter()
            .filter(|field| before.get(*field) != after.get(*field));
        differing
            .map(|field| {
                let line = |value: Option<&Value>| {
                    value.map(|value| visible_line(&value.to_string()).into_owned())
                };
                let before = line(before.get(field));
                let after = line(after.get(field));
                let old = before.as_deref().unwrap_or("");
                let new = after.as_deref().unwrap_or("");
                let common = old
                    .chars()
                    .zip(new.chars())
                    .take_while(|(old, new)| old == new)
                    .count();
                let cut = |text: Option<String>| text.map(|text| around(&text, common));
                Self {
                    field: visible_line(field).into_owned(),
                    before: cut(before),
                    after: cut(after),
                }
            })
            .collect()
    }
}

impl fmt::Display for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told =
            |value: &Option<String>| value.clone().unwrap_or_else(|| "(not given)".to_owned());
        write!(
            f,
            "{}: {} -> {}",
            self.field,
            told(&self.before),
            told(&self.after)
        )
    }
}

/// The part of a long text that begins shortly in front of a place.
fn around(text: &str, place: usize) -> String {
    let length = text.chars().count();
    if length <= SHOWN_VALUE {
        return text.to_owned();
    }
    let start = place.saturating_sub(SHOWN_COMMON);
    let part: String = text.chars().skip(start).take(SHOWN_VALUE).collect();
    let front = if start > 0 { "…" } else { "" };
    let end = start + SHOWN_VALUE < length;
    format!(
        "{front}{part}{} ({length} characters in all)",
        if end { "…" } else { "" }
    )
}

/// The answer of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// The call may happen.
    Allow {
        /// Whether the answer is for later calls too.
        #[serde(default)]
        scope: ApprovalScope,
        /// Which of the suggested rules is meant, where the scope is more than this call; the first where none is
        /// named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// For how many seconds a remembered rule is valid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valid_for_seconds: Option<u64>,
        /// Other arguments to run it with. They are checked like the model's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// It may not.
    Deny {
        /// Why, or what to do instead; the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// The session, until it or the host ends.
    Session,
    /// This workspace, until the rule expires or is forgotten.
    Remember,
}

/// Where a question stands, for whoever watches the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "permission", rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// A person is being asked.
    Pending {
        /// The question.
        ask_id: InvocationId,
        /// When no answer becomes a no.
        #[schemars(with = "String")]
        expires_at: Timestamp,
    },
    /// A person said yes.
    Granted {
        /// The question.
        ask_id: InvocationId,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ArgumentChange;

    fn told(before: &serde_json::Value, after: &serde_json::Value) -> Vec<String> {
        ArgumentChange::between(before, after)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_changed_argument_is_told_with_both_values_in_readable_text() {
        let before = json!({ "branch": "mian", "force": true, "note": "same", "gone": 1 });
        let after =
            json!({ "branch": "ma\u{202e}in", "force": false, "note": "same", "new": ["a\nb"] });
        assert_eq!(
            told(&before, &after),
            [
                r#"branch: "mian" -> "ma\u{202e}in""#,
                "force: true -> false",
                "gone: 1 -> (not given)",
                r#"new: (not given) -> ["a\nb"]"#,
            ]
        );
        assert_eq!(told(&before, &before), [""; 0]);
    }

    #[test]
    fn a_long_value_is_cut_around_the_difference() {
        let before = "x".repeat(5_000) + "one";
        let after = "x".repeat(5_000) + "two";
        let changes = ArgumentChange::between(&json!({ "c": before }), &json!({ "c": after }));
        let text = changes[0].to_string();
        assert!(
            text.contains("xone\" (5005 characters in all) -> …x") && text.contains("xtwo\""),
            "{text}"
        );
        assert!(text.chars().count() < 200, "{text}");
    }
}

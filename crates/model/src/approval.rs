//! An approval: the question to an operator about one call, and the answer.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Decision, Effects, InvocationId, Principal, ProgramChange, ProgramFile, SandboxPlan, SessionId,
    ToolId, visible_line,
};

/// SHA-256 of everything that an approval covers: the tool, the exact arguments, the effects, the sandbox plan and the
/// files that the call would run.
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

/// A question to a person. The arguments and the resource keys are as in the call; in the other texts, every character
/// that would hide or reorder text is written out (see [`visible_line`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The question's id: the invocation id of the first call that raised it.
    pub ask_id: InvocationId,
    /// The hash of the call that an answer approves.
    pub call_hash: CallHash,
    /// The tool.
    pub tool_id: ToolId,
    /// The tool's name on the wire.
    pub tool: String,
    /// The caller.
    pub principal: Principal,
    /// The caller's session.
    pub session_id: SessionId,
    /// One line for people.
    pub summary: String,
    /// The arguments, with sensitive values replaced.
    pub arguments: Value,
    /// Sensitive arguments were replaced above, so the question cannot outlive the host and the arguments must not be
    /// edited as shown.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub redacted: bool,
    /// The commands that the call would run, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<String>,
    /// The files inside the roots that the call would run. The answer is for these contents.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub programs: Vec<ProgramFile>,
    /// The files that changed since the same call was asked about or approved.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed_programs: Vec<ProgramChange>,
    /// The effects of the call, and the sandbox profile that they assume.
    pub effects: Effects,
    /// The confinement of the call's process on this machine, for a call that starts one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<SandboxPlan>,
    /// Why the host asks: the rule that decided, and the other rules that matched.
    pub decision: Decision,
    /// Rules that would let this call and similar ones pass, from narrow to wide.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub suggestions: Vec<String>,
    /// The reach of such a rule beyond this call: it allows any content of the files that the call would run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule_remark: Option<String>,
    /// The tools of the call's source, with those that an answer can allow together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_offer: Option<SourceReadOffer>,
    /// When the first call asked.
    pub asked_at: Timestamp,
    /// When the question expires; the answer is then no.
    pub expires_at: Timestamp,
    /// How many calls wait for the answer.
    pub waiting: usize,
}

/// The tools of a source that pins definitions. An answer with the scope [`SourceReads`](ApprovalScope::SourceReads)
/// allows those that are offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReadOffer {
    /// The source.
    pub source: String,
    /// The server is on another machine or can reach a network, so the arguments of a call can leave this machine.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reaches_network: bool,
    /// Its tools, as many as a question lists; the offered ones come first.
    pub tools: Vec<OfferedTool>,
    /// The number of its tools beyond the list. None of them is offered.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl SourceReadOffer {
    /// The tools that an answer would allow.
    pub fn offered(&self) -> impl Iterator<Item = &OfferedTool> {
        self.tools.iter().filter(|tool| tool.is_offered)
    }
}

/// A tool in the offer of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// The tool.
    pub tool_id: ToolId,
    /// The beginning of its description.
    pub about: String,
    /// The digest of its definition, to which the saved rule is bound.
    pub definition: String,
    /// It only reads, as its source claims, and no rule settles its calls yet, so an answer can allow it.
    #[serde(rename = "offered")]
    pub is_offered: bool,
}

impl PermissionRequest {
    /// The reach of a session rule or a remembered rule beyond one call that would run these files.
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

/// An argument that the operator changed when approving a call, with each value in one line of readable text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentChange {
    /// The argument.
    pub field: String,
    /// The value before the change, as JSON; a long value is cut around the difference. `None`: the argument was
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The new value, in the same form. `None`: the operator removed the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The longest value that a change shows, in characters.
const SHOWN_VALUE: usize = 200;
/// The characters of common text shown before the first difference.
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

/// The part of a long text that begins shortly before `place`.
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
        /// The reach of the answer: this call, or later calls too.
        #[serde(default)]
        scope: ApprovalScope,
        /// The suggested rule to save, when the scope is more than this call; the first suggestion by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The lifetime of a remembered rule, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valid_for_seconds: Option<u64>,
        /// Other arguments to run the call with. They are checked like the model's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The call may not happen.
    Deny {
        /// The reason, or advice; the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
}

/// The reach of an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// The session, until it or the host ends.
    Session,
    /// This workspace, until the rule expires or is removed.
    Remember,
    /// This call once, and from now on the tools of its source that the question offers, as they are defined now: in
    /// this workspace, until the rules expire or are removed. The tool of the call is allowed further calls only if it
    /// is one of those.
    SourceReads,
}

/// The state of a question, in the events of its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "permission", rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// The host is asking a person.
    Pending {
        /// The question.
        ask_id: InvocationId,
        /// When the question expires; the answer is then no.
        #[schemars(with = "String")]
        expires_at: Timestamp,
    },
    /// A person approved.
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

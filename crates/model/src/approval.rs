//! A question to a person about one call, and the answer.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decision, Effects, InvocationId, Principal, SessionId, ToolId};

/// SHA-256 of everything a person approves: the tool, the exact arguments, what the call touches and what confines it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallHash(pub [u8; 32]);

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.is_ascii() {
            return Err(bad());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

/// What a person is asked.
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
    /// What it touches and what confines it.
    pub effects: Effects,
    /// Why it is asked, by which rule, and what else matched.
    pub decision: Decision,
    /// Rules that would let this call and the like of it pass, from narrow to wide.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub suggestions: Vec<String>,
    /// When the first call asked.
    pub asked_at: Timestamp,
    /// When no answer becomes a no.
    pub expires_at: Timestamp,
    /// How many calls wait for the answer.
    pub waiting: usize,
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

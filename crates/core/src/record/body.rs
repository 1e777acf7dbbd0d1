//! The bodies of records: one type per record kind, for the writer and for every reader.
//!
//! [`Record::read_body`] is the only place that parses a body. Members that only some readers use are
//! [`RecordBodyMember`]s, so that a member does not stop a reader that does not use it. The descriptions of the types
//! are published with the schema of `toolpost journal export --format jsonl`.

mod call;
mod catalog;

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json, value::RawValue};
use toolpost_model::{
    ArgumentChange, CallHash, InvocationId, Principal, PrincipalName, PrincipalRole, ProgramFile,
    SurfaceRequest, ToolId, Verdict,
};

use super::journal::Record;
use crate::host::HostLimits;
pub(crate) use call::EventCounts;
pub use call::{
    ApprovalBody, CallRecordBody, CallRecordHead, CallRequestHead, CancellationBody,
    CircumstancesBody, NamedContent, RecordedCallRequest, RecordedQuestion, RecordedResultFields,
};
pub use catalog::{
    BlockedTool, CatalogBody, CatalogOnRecord, CatalogRestatement, RestatableHead,
    SurfaceRecordBody,
};

impl Record {
    /// Reads the body as the type of its kind, or as a part of that type.
    pub fn read_body<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(&self.body)
    }

    /// Whether the body is a JSON object, as every written body is.
    pub fn has_object(&self) -> bool {
        let is_object = self.body.trim_ascii_start().starts_with('{');
        is_object && self.read_body::<IgnoredAny>().is_ok()
    }
}

/// Adds a member to a finished body; the rest of the text stays as it is.
pub(crate) fn append_member(body: &mut String, name: &str, json: &str) {
    if !body.ends_with('}') {
        return;
    }
    body.pop();
    if !body.trim_end().ends_with('{') {
        body.push(',');
    }
    body.push('"');
    body.push_str(name);
    body.push_str("\":");
    body.push_str(json);
    body.push('}');
}

/// A member of a record body: a value on its way into the journal, its text on the way back.
#[derive(Debug)]
pub enum RecordBodyMember<'a, T: ?Sized> {
    /// A value to write.
    Value(&'a T),
    /// The text as it was written.
    Text(Box<RawValue>),
}

impl<T: ?Sized> Clone for RecordBodyMember<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Value(value) => Self::Value(value),
            Self::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl<'a, T> RecordBodyMember<'a, [T]> {
    /// A list; an empty one is left out.
    pub(crate) fn of_list(list: &'a [T]) -> Option<Self> {
        (!list.is_empty()).then_some(Self::Value(list))
    }
}

impl<T: ?Sized> RecordBodyMember<'_, T> {
    /// The JSON of a member that was read; empty for a value to write.
    pub fn text(&self) -> &str {
        match self {
            Self::Value(_) => "",
            Self::Text(text) => text.get(),
        }
    }

    /// The owned JSON of a member that was read.
    pub fn into_text(self) -> Option<Box<RawValue>> {
        match self {
            Self::Value(_) => None,
            Self::Text(text) => Some(text),
        }
    }

    /// Reads the member as another type than its own.
    pub fn read_as<'a, R: Deserialize<'a>>(&'a self) -> serde_json::Result<R> {
        serde_json::from_str(self.text())
    }
}

impl<T: ?Sized + ToOwned<Owned: DeserializeOwned>> RecordBodyMember<'_, T> {
    /// Reads the member.
    pub fn read(&self) -> serde_json::Result<T::Owned> {
        self.read_as()
    }
}

impl<T: ?Sized + Serialize> Serialize for RecordBodyMember<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
        }
    }
}

impl<'de, T: ?Sized> Deserialize<'de> for RecordBodyMember<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self::Text)
    }
}

impl<T: ?Sized + JsonSchema> JsonSchema for RecordBodyMember<'_, T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The published schema names the default of every member that may be absent, except where its type is one of these.
const WITHOUT_DEFAULT: [&str; 11] = [
    "Approval",
    "Asked",
    "Cancellation",
    "CatalogPlace",
    "Events",
    "Limits",
    "Milestone",
    "Mutation",
    "OutputMutation",
    "Question",
    "Sensitive",
];

/// Adds the defaults to the schema of a body. A derived schema has none, because the writer leaves defaults out.
pub(crate) fn state_defaults(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let required = |name: &str| {
        let mut names = required.as_array().into_iter().flatten();
        names.any(|one| one == name)
    };
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let Some(property) = property.as_object_mut().filter(|_| !required(name)) else {
            continue;
        };
        property.remove("default");
        let reference = ["/$ref", "/items/$ref", "/anyOf/0/$ref"]
            .iter()
            .find_map(|place| json!(property).pointer(place)?.as_str().map(str::to_owned));
        let named = reference.as_ref().and_then(|to| to.rsplit('/').next());
        if named.is_some_and(|named| WITHOUT_DEFAULT.contains(&named)) {
            continue;
        }
        let default = match property.get("type").and_then(Value::as_str) {
            Some("array") => json!([]),
            Some("boolean") => json!(false),
            Some("integer") => json!(0),
            Some("string") => json!(""),
            Some(_) | None => Value::Null,
        };
        property.insert("default".to_owned(), default);
    }
}

/// Body of `host_started`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Start", transform = state_defaults)]
pub struct HostStartBody {
    /// The version of Toolpost.
    pub version: String,
    /// Calls of earlier hosts that continue.
    pub carried: Vec<InvocationId>,
    /// Its calls have trace spans.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub traces: bool,
    /// The place of the catalog, if it was on record before the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogOnRecord>,
    /// The limits of its calls.
    pub limits: RecordedLimits,
}

/// The limits of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Limits", transform = state_defaults)]
pub struct RecordedLimits {
    /// Calls that may run at the same time.
    pub concurrency: u64,
    /// Calls of one session that may run at the same time.
    pub session_concurrency: u64,
    /// Calls that may wait.
    pub queue: u64,
    /// The default deadline of a call.
    pub deadline_ms: u64,
    /// The longest deadline that a caller may ask for.
    pub deadline_ceiling_ms: u64,
    /// The largest text that is shown whole.
    pub inline_chars: u64,
    /// The largest arguments.
    pub argument_bytes: u64,
}

impl RecordedLimits {
    pub(crate) fn of(limits: &HostLimits) -> Self {
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            concurrency: limits.scheduler.concurrency as u64,
            session_concurrency: limits.scheduler.session_concurrency as u64,
            queue: limits.scheduler.queue as u64,
            deadline_ms: millis(limits.deadline),
            deadline_ceiling_ms: millis(limits.deadline_ceiling),
            inline_chars: limits.inline_chars as u64,
            argument_bytes: limits.argument_bytes as u64,
        }
    }
}

/// Body of `session_opened`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Session", transform = state_defaults)]
pub struct SessionOpenedBody {
    /// The session's principal.
    #[schemars(with = "String")]
    pub principal: PrincipalName,
    /// The principal's role.
    pub role: PrincipalRole,
    /// The request for the session's surface.
    pub surface: SurfaceRequest,
    /// A fingerprint of the credential that opened the session. Not a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// Body of `session_closed`: there is nothing to add.
#[derive(JsonSchema)]
#[schemars(rename = "Empty")]
pub(crate) struct SessionClosedBody {}

/// Body of `discovered`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Discovered")]
pub struct DiscoveryBody {
    /// Deferred tools that the session discovered here, and may call from now on.
    pub tools: Vec<ToolId>,
    /// How the session discovered them.
    pub way: DiscoveryWay,
}

/// How a session discovered a deferred tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryWay {
    /// A search found it.
    Search,
    /// It was in a list.
    Listing,
    /// It was looked up by its name.
    Name,
}

/// Body of `decided`.
// Everything that a later host needs to continue with the answer.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Decided", transform = state_defaults)]
pub struct VerdictBody {
    /// The question.
    pub ask_id: InvocationId,
    /// SHA-256 of the call that the question was about.
    #[schemars(with = "String")]
    pub hash: CallHash,
    /// SHA-256 of the call that may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub approves: Option<CallHash>,
    /// SHA-256 of the call that the question was about, without the files that it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub without_files: Option<CallHash>,
    /// The files that may run, as they were at the time of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramFile>,
    /// The principal of the call.
    #[schemars(with = "String")]
    pub principal: PrincipalName,
    /// The principal's role.
    pub role: PrincipalRole,
    /// The tool.
    pub tool_id: String,
    /// The answer.
    pub verdict: Verdict,
    /// The arguments that the operator changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_fields: Vec<String>,
    /// The same with the values, in readable text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_arguments: Vec<ArgumentChange>,
    /// A secret was redacted in the changed arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The operator that answered.
    #[schemars(with = "String")]
    pub by: PrincipalName,
    /// The number of calls that waited for the answer.
    pub waiting: usize,
    /// When a grant for one later call expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub kept_until: Option<Timestamp>,
    /// The rule that the answer saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rules about tools of the call's source that the answer saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_rules: Vec<String>,
    /// A call of an earlier host continues with it. Set only while a host starts.
    #[serde(skip)]
    pub(crate) is_taken: bool,
}

impl VerdictBody {
    pub(crate) fn principal(&self) -> Principal {
        Principal {
            name: self.principal.clone(),
            role: self.role,
        }
    }
}

/// Body of `pruned`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Pruned")]
pub struct PrunedBody {
    /// The last record that was removed.
    pub up_to: u64,
    /// The chain's hash after it.
    pub hash: String,
    /// The number of removed records.
    pub records: u64,
    /// The time of the first of them.
    #[schemars(with = "String")]
    pub first: Timestamp,
    /// The time of the last of them.
    #[schemars(with = "String")]
    pub last: Timestamp,
    /// The reason of the removal.
    pub why: String,
}

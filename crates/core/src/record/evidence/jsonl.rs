//! The journal's own records, one a line, each body byte for byte as it was written and chained.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{ExportError, read};
use crate::record::{body, journal::StoredRecord};

#[derive(Serialize)]
struct JsonlLine<'a> {
    record: &'static str,
    seq: u64,
    at: jiff::Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<toolpost_model::InvocationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a toolpost_model::SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<JsonlRequest<'a>>,
    body: &'a RawValue,
    hash: String,
}

#[derive(Serialize)]
struct JsonlRequest<'a> {
    id: &'a toolpost_model::RequestId,
    digest: String,
}

pub(super) fn line(row: &StoredRecord) -> Result<String, ExportError> {
    let record = &row.record;
    let body: &RawValue = read(row)?;
    let line = JsonlLine {
        record: record.kind.as_str(),
        seq: row.seq,
        at: record.at,
        invocation_id: record.invocation_id,
        session_id: record.session_id.as_ref(),
        request: record.request.as_ref().map(|request| JsonlRequest {
            id: &request.id,
            digest: const_hex::encode(request.digest),
        }),
        body,
        hash: const_hex::encode(row.hash),
    };
    serde_json::to_string(&line).map_err(ExportError::of(row))
}

/// One line, for the schema: the same fields as [`JsonlLine`].
#[derive(JsonSchema)]
#[schemars(description = "One line, for the schema: the same fields as [`Line`].")]
#[expect(dead_code, reason = "only its schema is used")]
struct JournalLine {
    /// Its kind and its body.
    #[serde(flatten)]
    told: JournalLineBody,
    /// Its number in the journal.
    seq: u64,
    /// The time of writing, to the microsecond.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    /// Its call.
    invocation_id: Option<toolpost_model::InvocationId>,
    /// Its session.
    session_id: Option<String>,
    /// The caller's own id of the request, on the first record of a call with a request id.
    request: Option<RequestLine>,
    /// The chain's hash after this record.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    hash: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "Request")]
#[expect(dead_code, reason = "only its schema is used")]
struct RequestLine {
    /// The caller's text, or its hash if it contained a secret.
    id: String,
    /// SHA-256 of tool and arguments.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    digest: String,
}

#[derive(JsonSchema)]
#[serde(tag = "record", content = "body", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
#[schemars(rename = "Told")]
enum JournalLineBody {
    /// A host began on this journal.
    HostStarted(body::HostStartBody),
    /// A session was opened.
    SessionOpened(body::SessionOpenedBody),
    /// A session was closed.
    SessionClosed(body::SessionClosedBody),
    /// The catalog, or a change of it.
    Catalog(body::CatalogBody),
    /// A surface.
    Surface(body::SurfaceRecordBody),
    /// A session discovered deferred tools.
    Discovered(body::DiscoveryBody),
    /// A call was acknowledged before its end.
    Accepted(Box<body::CallRecordBody<'static>>),
    /// A call waits for an approval.
    Asked(Box<body::CallRecordBody<'static>>),
    /// An operator answered.
    Decided(body::VerdictBody),
    /// A call that may have a side effect begins to run.
    Started(Box<body::CallRecordBody<'static>>),
    /// A call ended.
    Ended(Box<body::CallRecordBody<'static>>),
    /// Older records were removed.
    Pruned(body::PrunedBody),
}

pub(super) fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<JournalLine>();
    schema.insert(
        "title".to_owned(),
        Value::from("One line of `toolpost journal export --format jsonl`"),
    );
    let mut schema = schema.to_value();
    // A caller cannot send its tenant, so the schema of requests has no such member. The host records it with the
    // request.
    if let Some(request) = schema.pointer_mut("/$defs/SurfaceRequest/properties") {
        let description = "The tenant that the caller belongs to, by its token.";
        request["tenant"] = json!({ "type": "string", "description": description });
    }
    schema
}

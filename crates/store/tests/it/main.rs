//! The store on a real disk. One binary, so that the crate links once.
#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare files and start a process to kill"
)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "in test helpers, which clippy takes for code"
)]

mod audit_log;
mod blobs;
mod data_dir;
mod full;
mod journal;
mod kept_results;
mod killed;
mod last_good;
mod older_format;
mod pins;
mod pruning;
mod readers;
mod rules;
mod tampering;
mod token;
mod trust;

use std::path::Path;

use jiff::Timestamp;
use toolpost_core::{
    AppendStrength, Facets, Journal, JournalError, MemoryJournal, Record, RecordKind, RequestKey,
};
use toolpost_model::{InvocationId, Outcome, RequestId, SessionId};
use toolpost_store::{JournalOpenError, JournalOptions, SqliteJournal};

const ROOMY: JournalOptions = JournalOptions { max_bytes: 1 << 30 };

fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::open(path, ROOMY).unwrap()
}

fn record(kind: RecordKind, body: &str) -> Record {
    Record {
        kind,
        at: Timestamp::from_microsecond(1_785_000_000_000_000).unwrap(),
        invocation_id: None,
        session_id: None,
        request: None,
        body: body.into(),
        facets: None,
    }
}

/// The three records of a call that came with a request id.
fn call() -> [Record; 3] {
    let id = Some(InvocationId::new());
    let session_id = Some(SessionId::new("session"));
    let request = Some(RequestKey {
        id: RequestId::new("request"),
        digest: [9; 32],
    });
    let of = |kind, body| Record {
        invocation_id: id,
        session_id: session_id.clone(),
        ..record(kind, body)
    };
    let facets = |outcome| {
        let tool = "files.write".to_owned();
        let principal = "ann".to_owned();
        Some(Facets {
            tool,
            principal,
            outcome,
            correlation: Some("trace".to_owned()),
        })
    };
    let begin = r#"{"tool_id":"files.write","call":{"tool":"write","principal":"ann","correlation_id":"trace"}}"#;
    let end = r#"{"tool_id":"files.write","result":{"outcome":"succeeded"}}"#;
    [
        Record {
            request,
            facets: facets(None),
            ..of(RecordKind::Accepted, begin)
        },
        of(RecordKind::Started, r#"{"tool_id":"files.write"}"#),
        Record {
            facets: facets(Some(Outcome::Succeeded)),
            ..of(RecordKind::Ended, end)
        },
    ]
}

async fn append(journal: &impl Journal, record: Record) -> Result<u64, JournalError> {
    journal.append(record, AppendStrength::Synced).await
}

/// A host's start and two calls: seven records.
async fn fill(journal: &impl Journal) {
    append(journal, record(RecordKind::HostStarted, "{}"))
        .await
        .unwrap();
    for record in [call(), call()].into_iter().flatten() {
        append(journal, record).await.unwrap();
    }
}

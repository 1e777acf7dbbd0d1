//! The checks that every journal must pass. The journal in memory and the one on SQLite share them, and a third adapter
//! can use them as its tests.

mod finding;
mod pruning;

use std::sync::Arc;

use jiff::Timestamp;
use toolpost_core::{
    AppendStrength, GENESIS, Journal, Query, Record, RecordKind, RequestKey, StoredRecord, chain,
};
use toolpost_model::{InvocationId, RequestId, SessionId};

/// Runs every check, each on a journal of its own that `make` hands over empty.
///
/// Needs a tokio runtime. Panics at the first check that fails.
pub async fn journal_suite<J: Journal>(make: impl AsyncFn() -> J) {
    an_empty_journal_answers_with_nothing(&make().await).await;
    numbers_count_up_from_one_and_the_chain_holds(&make().await).await;
    what_is_read_equals_what_was_written(&make().await).await;
    records_of_a_call_come_in_order(&make().await).await;
    a_request_finds_its_newest_record(&make().await).await;
    a_session_finds_its_newest_session_record(&make().await).await;
    the_last_start_is_the_newest_one(&make().await).await;
    reading_pages_through_everything_once(&make().await).await;
    a_session_is_read_page_by_page(&make().await).await;
    appends_not_awaited_at_once_keep_their_order(&make().await).await;
    concurrent_appends_each_get_a_number_of_their_own(make().await).await;
    finding::run(&make).await;
    pruning::run(&make).await;
}

/// The simplest record, which each check changes to its needs.
fn sample_record(kind: RecordKind) -> Record {
    Record {
        kind,
        at: microseconds(1_785_000_000_123_456),
        invocation_id: None,
        session_id: None,
        request: None,
        body: "{}".into(),
        facets: None,
    }
}

fn microseconds(at: i64) -> Timestamp {
    Timestamp::from_microsecond(at).expect("a moment of our time")
}

fn call_record(kind: RecordKind, id: InvocationId) -> Record {
    Record {
        invocation_id: Some(id),
        ..sample_record(kind)
    }
}

fn request_record(session: &str, request: &str, digest: u8) -> Record {
    let key = RequestKey {
        id: RequestId::new(request),
        digest: [digest; 32],
    };
    Record {
        session_id: Some(SessionId::new(session)),
        request: Some(key),
        ..call_record(RecordKind::Accepted, InvocationId::new())
    }
}

fn session_record(kind: RecordKind, session: &str) -> Record {
    Record {
        session_id: Some(SessionId::new(session)),
        ..sample_record(kind)
    }
}

async fn put<J: Journal>(journal: &J, record: Record) -> u64 {
    journal
        .append(record, AppendStrength::Committed)
        .await
        .expect("append")
}

async fn everything<J: Journal>(journal: &J) -> Vec<StoredRecord> {
    journal.read(0, usize::MAX).await.expect("read")
}

async fn an_empty_journal_answers_with_nothing<J: Journal>(journal: &J) {
    let session = SessionId::new("s");
    let request = RequestId::new("r");
    assert_eq!(everything(journal).await, []);
    assert_eq!(journal.last_start().await.expect("last start"), 0);
    assert_eq!(
        journal
            .records_of(InvocationId::new())
            .await
            .expect("records"),
        []
    );
    assert_eq!(
        journal
            .find_request(&session, &request)
            .await
            .expect("request"),
        None
    );
    assert_eq!(journal.find_session(&session).await.expect("session"), None);
    assert_eq!(journal.find(Query::newest(9)).await.expect("find"), []);
    let head = journal.head().await.expect("head");
    assert_eq!((head.seq, head.hash, head.first), (0, GENESIS, 1));
}

async fn numbers_count_up_from_one_and_the_chain_holds<J: Journal>(journal: &J) {
    for (place, strength) in [
        AppendStrength::Committed,
        AppendStrength::Synced,
        AppendStrength::Committed,
    ]
    .into_iter()
    .enumerate()
    {
        let record = call_record(RecordKind::ALL[place], InvocationId::new());
        let seq = journal.append(record, strength).await.expect("append");
        assert_eq!(seq, place as u64 + 1);
    }
    assert_chain(&everything(journal).await, 3);
}

fn assert_chain(stored: &[StoredRecord], count: usize) {
    assert_eq!(stored.len(), count);
    let mut previous = GENESIS;
    for (row, seq) in stored.iter().zip(1..) {
        assert_eq!(row.seq, seq, "numbers have no holes");
        assert_eq!(
            row.hash,
            chain(&previous, seq, &row.record),
            "the hash of record {seq}"
        );
        previous = row.hash;
    }
}

async fn what_is_read_equals_what_was_written<J: Journal>(journal: &J) {
    let moment = microseconds(1_785_000_000_123_456);
    let finer = moment.as_nanosecond() + 789;
    let finer = Timestamp::from_nanosecond(finer).expect("a moment of our time");
    let large = format!("{{\"text\":\"{}\"}}", "ö".repeat(1 << 20));
    let bodies = [
        "{}",
        "{\"text\":\"żółć \u{1F527} \u{0} \u{202e} '; DROP TABLE record\"}",
        large.as_str(),
    ];
    for (kind, place) in RecordKind::ALL.into_iter().zip(0..) {
        let written = Record {
            kind,
            at: finer,
            body: bodies[place % bodies.len()].into(),
            ..if place % 2 == 0 {
                request_record("sitzung ü", "n\u{1F527}", 7)
            } else {
                sample_record(kind)
            }
        };
        let seq = put(journal, written.clone()).await;
        let read = journal.read(seq - 1, 1).await.expect("read").remove(0);
        assert_eq!(
            read.record,
            Record {
                at: moment,
                ..written
            },
            "{kind:?}"
        );
    }
    assert_chain(&everything(journal).await, RecordKind::ALL.len());
    let before_our_time = microseconds(-1);
    let seq = put(
        journal,
        Record {
            at: before_our_time,
            ..sample_record(RecordKind::Ended)
        },
    )
    .await;
    assert_eq!(
        journal.read(seq - 1, 1).await.expect("read")[0].record.at,
        before_our_time
    );
}

async fn a_session_is_read_page_by_page<J: Journal>(journal: &J) {
    let session = SessionId::new("one");
    let empty = journal.of_session(&session, 0, 9).await.expect("page");
    assert_eq!((empty.rows, empty.up_to), (Vec::new(), 0));
    let mut expected = Vec::new();
    for place in 0..600_u64 {
        let owner = if place % 3 == 0 { "one" } else { "other" };
        let seq = put(journal, session_record(RecordKind::Ended, owner)).await;
        expected.extend((owner == "one").then_some(seq));
    }
    let mut after = 0;
    let mut found = Vec::new();
    loop {
        let page = journal.of_session(&session, after, 7).await.expect("page");
        assert!(page.rows.len() <= 7 && page.up_to >= after, "{page:?}");
        assert!(
            page.rows
                .iter()
                .all(|row| row.seq > after && row.seq <= page.up_to),
            "{page:?}"
        );
        if page.up_to == after {
            break;
        }
        found.extend(page.rows.iter().map(|row| row.seq));
        after = page.up_to;
    }
    assert_eq!(
        (found, after),
        (expected, 600),
        "every record of the session once, and then the end"
    );
    let beyond = journal
        .of_session(&session, u64::MAX, 7)
        .await
        .expect("page");
    assert_eq!((beyond.rows, beyond.up_to), (Vec::new(), u64::MAX));
}

async fn records_of_a_call_come_in_order<J: Journal>(journal: &J) {
    let one = InvocationId::new();
    let other = InvocationId::new();
    // An answer may come after the end of the call that asked.
    let life = [
        RecordKind::Accepted,
        RecordKind::Asked,
        RecordKind::Started,
        RecordKind::Ended,
        RecordKind::Decided,
    ];
    for kind in life {
        put(journal, call_record(kind, one)).await;
        put(journal, call_record(kind, other)).await;
    }
    put(journal, sample_record(RecordKind::HostStarted)).await;
    for (id, seqs) in [(one, [1, 3, 5, 7, 9]), (other, [2, 4, 6, 8, 10])] {
        let found = journal.records_of(id).await.expect("records");
        assert_eq!(found.iter().map(|row| row.seq).collect::<Vec<_>>(), seqs);
        assert_eq!(
            found.iter().map(|row| row.record.kind).collect::<Vec<_>>(),
            life
        );
        assert!(found.iter().all(|row| row.record.invocation_id == Some(id)));
    }
}

async fn a_request_finds_its_newest_record<J: Journal>(journal: &J) {
    put(journal, request_record("other", "r", 1)).await;
    put(journal, session_record(RecordKind::SessionOpened, "s")).await;
    put(journal, request_record("s", "r", 2)).await;
    let newest = put(journal, request_record("s", "r", 3)).await;
    put(journal, request_record("s", "another", 4)).await;
    let check = async |session: &str, request: &str| {
        let session = SessionId::new(session);
        let request = RequestId::new(request);
        journal
            .find_request(&session, &request)
            .await
            .expect("request")
    };
    let found = check("s", "r").await.expect("the request is there");
    assert_eq!(
        (found.seq, found.record.request.expect("its key").digest),
        (newest, [3; 32])
    );
    assert_eq!(
        check("other", "r").await.expect("the other session's").seq,
        1
    );
    assert_eq!(check("s", "never").await, None);
    assert_eq!(check("never", "r").await, None);
    assert_eq!(check("S", "r").await, None, "ids are compared byte by byte");
}

async fn a_session_finds_its_newest_session_record<J: Journal>(journal: &J) {
    put(journal, session_record(RecordKind::SessionOpened, "s")).await;
    put(journal, session_record(RecordKind::SessionOpened, "t")).await;
    let closed = put(journal, session_record(RecordKind::SessionClosed, "s")).await;
    put(journal, session_record(RecordKind::Ended, "s")).await;
    put(journal, request_record("s", "r", 1)).await;
    let found = journal
        .find_session(&SessionId::new("s"))
        .await
        .expect("session")
        .expect("it is there");
    assert_eq!(
        (found.seq, found.record.kind),
        (closed, RecordKind::SessionClosed)
    );
    let found = journal
        .find_session(&SessionId::new("t"))
        .await
        .expect("session")
        .expect("it is there");
    assert_eq!(
        (found.seq, found.record.kind),
        (2, RecordKind::SessionOpened)
    );
    assert_eq!(
        journal
            .find_session(&SessionId::new("u"))
            .await
            .expect("session"),
        None
    );
}

async fn the_last_start_is_the_newest_one<J: Journal>(journal: &J) {
    put(journal, sample_record(RecordKind::HostStarted)).await;
    put(journal, session_record(RecordKind::SessionOpened, "s")).await;
    assert_eq!(journal.last_start().await.expect("last start"), 1);
    put(journal, sample_record(RecordKind::HostStarted)).await;
    put(journal, session_record(RecordKind::SessionClosed, "s")).await;
    assert_eq!(journal.last_start().await.expect("last start"), 3);
}

async fn reading_pages_through_everything_once<J: Journal>(journal: &J) {
    for _ in 0..25 {
        put(journal, call_record(RecordKind::Ended, InvocationId::new())).await;
    }
    let check = async |after: u64, limit: usize, expected: Vec<u64>| {
        let found = journal.read(after, limit).await.expect("read");
        let seqs: Vec<u64> = found.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, expected, "after {after}, at most {limit}");
    };
    check(0, 10, (1..=10).collect()).await;
    check(10, 10, (11..=20).collect()).await;
    check(20, 10, (21..=25).collect()).await;
    check(25, 10, vec![]).await;
    check(0, 0, vec![]).await;
    check(u64::MAX, usize::MAX, vec![]).await;
    check(24, usize::MAX, vec![25]).await;
}

async fn appends_not_awaited_at_once_keep_their_order<J: Journal>(journal: &J) {
    let record = || call_record(RecordKind::Ended, InvocationId::new());
    let first = journal.append(record(), AppendStrength::Committed);
    let second = journal.append(record(), AppendStrength::Synced);
    let third = journal.append(record(), AppendStrength::Committed);
    assert_eq!(third.await.expect("append"), 3);
    assert_eq!(second.await.expect("append"), 2);
    assert_eq!(first.await.expect("append"), 1);
}

async fn concurrent_appends_each_get_a_number_of_their_own<J: Journal>(journal: J) {
    const TASKS: usize = 64;
    const EACH: usize = 20;
    let journal = Arc::new(journal);
    let one_task = async |journal: Arc<J>, task: usize| {
        let mut before = 0;
        for round in 0..EACH {
            let body = format!("{{\"task\":{task},\"round\":{round}}}");
            let id = InvocationId::new();
            let record = Record {
                body,
                ..call_record(RecordKind::Ended, id)
            };
            let strength = if task.is_multiple_of(2) {
                AppendStrength::Committed
            } else {
                AppendStrength::Synced
            };
            let seq = journal
                .append(record.clone(), strength)
                .await
                .expect("append");
            assert!(
                seq > before,
                "a later record of a caller has the higher number"
            );
            before = seq;
            let found = journal.records_of(id).await.expect("records");
            assert_eq!(found.len(), 1, "an append that resolved can be read");
            assert_eq!((found[0].seq, &found[0].record), (seq, &record));
        }
    };
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(one_task(journal.clone(), task)))
        .collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    assert_chain(&everything(&*journal).await, TASKS * EACH);
}

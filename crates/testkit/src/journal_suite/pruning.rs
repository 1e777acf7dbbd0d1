//! The oldest records are removed, and the chain still holds.

use std::{collections::HashSet, time::Duration};

use jiff::Timestamp;
use toolpost_core::{
    Facets, Journal, PruneReport, PruneRequest, PrunedBody, PrunedRange, Query, Record, RecordKind,
    RetentionCut, RetentionExemptions, RetentionHold, StoredRecord, chain, prune,
};
use toolpost_model::{InvocationId, Outcome, SessionId};

use super::{
    call_record, everything, microseconds, put, request_record, sample_record, session_record,
};

pub(super) async fn run<J: Journal>(make: &impl AsyncFn() -> J) {
    a_cut_leaves_a_chain_that_holds(&make().await).await;
    what_went_is_found_no_more(&make().await).await;
    a_cut_of_everything_leaves_its_own_record(&make().await).await;
    what_is_still_needed_stays(&make().await).await;
    no_call_is_divided(&make().await).await;
    calls_without_a_pause_do_not_keep_everything(&make().await).await;
    what_was_written_lately_stays(&make().await).await;
    sessions_that_may_come_back_stay(&make().await).await;
    catalogs_and_surfaces_are_told_again(&make().await).await;
    the_size_decides_too(&make().await).await;
    what_pruning_wrote_is_no_reason_to_prune(&make().await).await;
}

fn day(day: i64) -> Timestamp {
    microseconds(1_785_000_000_000_000 + day * 86_400_000_000)
}

/// A whole call in one record, written on that day.
fn end(at: i64) -> Record {
    let facets = Facets {
        tool: "a.b".into(),
        principal: "ann".into(),
        outcome: Some(Outcome::Succeeded),
        correlation: None,
    };
    let record = call_record(RecordKind::Ended, InvocationId::new());
    Record {
        at: day(at),
        facets: Some(facets),
        ..record
    }
}

fn on(at: i64, record: Record) -> Record {
    Record {
        at: day(at),
        ..record
    }
}

fn cut(up_to: u64) -> RetentionCut {
    RetentionCut {
        up_to,
        at: day(100),
        why: "a test".into(),
        restated: Vec::new(),
    }
}

/// Removes the records from before this day; today is day 100.
async fn prune_before<J: Journal>(journal: &J, before: i64) -> PruneReport {
    prune_unneeded(journal, before, &needed()).await
}

async fn prune_unneeded<J: Journal>(
    journal: &J,
    before: i64,
    needed: &RetentionExemptions,
) -> PruneReport {
    let due = PruneRequest {
        before: Some(day(before)),
        size: None,
        why: "a test".into(),
    };
    prune(journal, &due, needed, |_, _| {})
        .await
        .expect("prune")
}

/// Removes the records up to a number, of which some must exist.
async fn cut_up_to<J: Journal>(journal: &J, up_to: u64) -> PrunedRange {
    let pruned = journal.prune(cut(up_to)).await.expect("prune");
    pruned.expect("something goes")
}

fn needed() -> RetentionExemptions {
    RetentionExemptions {
        now: day(100),
        session_idle: Duration::from_secs(2 * 86_400),
        sessions: HashSet::new(),
    }
}

async fn seqs<J: Journal>(journal: &J) -> Vec<u64> {
    everything(journal)
        .await
        .iter()
        .map(|row| row.seq)
        .collect()
}

fn body(row: &StoredRecord) -> PrunedBody {
    assert_eq!(row.record.kind, RecordKind::Pruned);
    row.record.read_body().expect("the body of a pruned record")
}

async fn a_cut_leaves_a_chain_that_holds<J: Journal>(journal: &J) {
    for at in 1..=6 {
        put(journal, end(at)).await;
    }
    let before = everything(journal).await;
    let pruned = cut_up_to(journal, 4).await;
    assert_eq!(
        (pruned.up_to, pruned.records, pruned.hash),
        (4, 4, before[3].hash)
    );
    assert_eq!((pruned.first, pruned.last), (day(1), day(4)));
    put(journal, end(7)).await;
    let after = everything(journal).await;
    assert_eq!(
        after.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [5, 6, 7, 8]
    );
    let mut previous = pruned.hash;
    for row in &after {
        assert_eq!(
            row.hash,
            chain(&previous, row.seq, &row.record),
            "the hash of record {}",
            row.seq
        );
        previous = row.hash;
    }
    let told = body(&after[2]);
    let hex = const_hex::encode(pruned.hash);
    assert_eq!((told.up_to, told.hash, told.records), (4, hex, 4));
    assert_eq!(
        (told.first, told.last, told.why.as_str()),
        (day(1), day(4), "a test")
    );
    let head = journal.head().await.expect("head");
    assert_eq!((head.first, head.seq, head.hash), (5, 8, after[3].hash));
    assert_eq!(
        journal.prune(cut(4)).await.expect("prune"),
        None,
        "they are gone"
    );
    assert_eq!(journal.prune(cut(0)).await.expect("prune"), None);
}

async fn what_went_is_found_no_more<J: Journal>(journal: &J) {
    let request = on(1, request_record("s", "r", 1));
    let call = request.invocation_id.expect("it is a call's");
    put(journal, on(1, sample_record(RecordKind::HostStarted))).await;
    put(
        journal,
        on(1, session_record(RecordKind::SessionOpened, "s")),
    )
    .await;
    put(journal, request.clone()).await;
    put(journal, end(1)).await;
    let kept = end(2);
    put(journal, kept.clone()).await;
    cut_up_to(journal, 4).await;
    assert_eq!(journal.records_of(call).await.expect("records"), []);
    let session = SessionId::new("s");
    let id = request.request.expect("its key").id;
    assert_eq!(
        journal.find_request(&session, &id).await.expect("request"),
        None
    );
    assert_eq!(journal.find_session(&session).await.expect("session"), None);
    assert_eq!(journal.last_start().await.expect("start"), 0);
    let found = journal.find(Query::newest(9)).await.expect("find");
    assert_eq!(found.iter().map(|row| row.seq).collect::<Vec<_>>(), [5]);
    let left = journal
        .records_of(kept.invocation_id.expect("a call"))
        .await
        .expect("records");
    assert_eq!(left.len(), 1);
    assert_eq!(
        journal.read(0, 1).await.expect("read")[0].seq,
        5,
        "reading begins at the oldest"
    );
}

async fn a_cut_of_everything_leaves_its_own_record<J: Journal>(journal: &J) {
    put(journal, end(1)).await;
    put(journal, end(2)).await;
    let pruned = cut_up_to(journal, u64::MAX).await;
    assert_eq!((pruned.up_to, pruned.records), (2, 2));
    assert_eq!(seqs(journal).await, [3]);
    assert_eq!(put(journal, end(3)).await, 4);
}

async fn what_is_still_needed_stays<J: Journal>(journal: &J) {
    put(journal, end(1)).await;
    let done = InvocationId::new();
    let open = InvocationId::new();
    put(journal, on(1, call_record(RecordKind::Accepted, done))).await;
    put(journal, on(2, call_record(RecordKind::Started, open))).await;
    put(journal, on(3, call_record(RecordKind::Ended, done))).await;
    put(journal, end(4)).await;
    // The open call protects the end of the other call, which in turn protects its own beginning.
    let report = prune_before(journal, 5).await;
    assert_eq!(
        report,
        PruneReport {
            records: 1,
            up_to: 1,
            held: Some((2, RetentionHold::DividedCall(done)))
        }
    );
    assert_eq!(seqs(journal).await, [2, 3, 4, 5, 6]);
}

/// A call is removed as a whole or not at all: its beginning has the request and the key that identifies a repeat.
async fn no_call_is_divided<J: Journal>(journal: &J) {
    let request = on(1, request_record("s", "r", 1));
    let call = request.invocation_id.expect("it is a call's");
    put(journal, end(1)).await;
    put(journal, request.clone()).await;
    put(journal, on(1, call_record(RecordKind::Started, call))).await;
    put(journal, end(2)).await;
    put(journal, on(5, call_record(RecordKind::Ended, call))).await;
    put(journal, end(6)).await;
    let report = prune_before(journal, 4).await;
    assert_eq!(
        report,
        PruneReport {
            records: 1,
            up_to: 1,
            held: Some((2, RetentionHold::DividedCall(call)))
        }
    );
    let session = SessionId::new("s");
    let id = request.request.expect("its key").id;
    let known = journal.find_request(&session, &id).await.expect("request");
    assert_eq!(known.map(|row| row.seq), Some(2), "a repeat is still known");
    let report = prune_before(journal, 6).await;
    assert_eq!((report.records, report.up_to, report.held), (4, 5, None));
}

/// If some call is always running, the cut finally divides one.
async fn calls_without_a_pause_do_not_keep_everything<J: Journal>(journal: &J) {
    let mut before = InvocationId::new();
    put(journal, on(1, call_record(RecordKind::Started, before))).await;
    for _ in 0..400 {
        let next = InvocationId::new();
        put(journal, on(1, call_record(RecordKind::Started, next))).await;
        put(journal, on(1, call_record(RecordKind::Ended, before))).await;
        before = next;
    }
    put(journal, on(9, call_record(RecordKind::Ended, before))).await;
    let report = prune_before(journal, 5).await;
    assert!((400..800).contains(&report.up_to), "{report:?}");
    assert_eq!(
        journal.records_of(before).await.expect("records").len(),
        2,
        "the last one is whole"
    );
}

/// A request of the last days may still be repeated, and must get its first answer.
async fn what_was_written_lately_stays<J: Journal>(journal: &J) {
    put(journal, end(1)).await;
    put(journal, end(99)).await;
    let report = prune_before(journal, 100).await;
    assert_eq!(
        report,
        PruneReport {
            records: 1,
            up_to: 1,
            held: Some((2, RetentionHold::Recent))
        }
    );
}

async fn sessions_that_may_come_back_stay<J: Journal>(journal: &J) {
    let opened = |session: &str| on(1, session_record(RecordKind::SessionOpened, session));
    let used = |session: &str, at| Record {
        session_id: Some(SessionId::new(session)),
        ..end(at)
    };
    put(journal, opened("closed")).await;
    put(journal, opened("left")).await;
    put(
        journal,
        on(2, session_record(RecordKind::SessionClosed, "closed")),
    )
    .await;
    put(journal, used("left", 3)).await;
    put(journal, opened("used")).await;
    put(journal, opened("known")).await;
    put(journal, used("used", 4)).await;
    put(journal, used("used", 99)).await;
    let report = prune_before(journal, 50).await;
    let held = RetentionHold::Session(SessionId::new("used"));
    assert_eq!(
        (report.records, report.up_to, report.held),
        (4, 4, Some((5, held)))
    );
    put(
        journal,
        on(99, session_record(RecordKind::SessionClosed, "used")),
    )
    .await;
    let known = SessionId::new("known");
    let needed = RetentionExemptions {
        sessions: HashSet::from([known.clone()]),
        ..needed()
    };
    let report = prune_unneeded(journal, 50, &needed).await;
    assert_eq!(
        (report.up_to, report.held),
        (5, Some((6, RetentionHold::Session(known))))
    );
}

async fn catalogs_and_surfaces_are_told_again<J: Journal>(journal: &J) {
    let catalog = |text: &str| Record {
        body: text.into(),
        ..on(1, sample_record(RecordKind::Catalog))
    };
    let surface = |text: &str| Record {
        body: text.into(),
        ..on(1, sample_record(RecordKind::Surface))
    };
    put(journal, catalog(r#"{"digest":"old","whole":true}"#)).await;
    put(
        journal,
        catalog(r#"{"digest":"new","whole":true,"part":1,"parts":2}"#),
    )
    .await;
    put(
        journal,
        catalog(r#"{"digest":"new","whole":true,"part":2,"parts":2}"#),
    )
    .await;
    put(journal, surface(r#"{"surface_id":"x","n":1}"#)).await;
    put(journal, catalog(r#"{"digest":"newer","whole":false}"#)).await;
    put(journal, surface(r#"{"surface_id":"x","n":2}"#)).await;
    put(journal, end(2)).await;
    put(journal, end(50)).await;
    let report = prune_before(journal, 20).await;
    assert_eq!((report.records, report.up_to), (7, 7));
    let told: Vec<serde_json::Value> = everything(journal)
        .await
        .iter()
        .filter(|row| matches!(row.record.kind, RecordKind::Catalog | RecordKind::Surface))
        .map(|row| serde_json::from_str(&row.record.body).expect("JSON"))
        .collect();
    let places: Vec<u64> = told
        .iter()
        .filter_map(|body| body["restated"]["seq"].as_u64())
        .collect();
    assert_eq!(places, [2, 3, 5, 6], "{told:?}");
    assert_eq!(told[3]["n"], 2);
    assert_eq!(told[0]["restated"]["at"], day(1).to_string());
    // Restated a second time, they keep their original number.
    put(journal, end(97)).await;
    let later = RetentionExemptions {
        now: day(300),
        ..needed()
    };
    prune_unneeded(journal, 200, &later).await;
    let rows = everything(journal).await;
    let again: Vec<&StoredRecord> = rows
        .iter()
        .filter(|row| row.record.kind == RecordKind::Surface)
        .collect();
    let again: serde_json::Value = serde_json::from_str(&again[0].record.body).expect("JSON");
    assert_eq!(again["restated"]["seq"], 6);
}

async fn the_size_decides_too<J: Journal>(journal: &J) {
    for at in 0..400 {
        put(
            journal,
            Record {
                body: format!("{{\"text\":\"{}\"}}", "x".repeat(4_000)),
                ..end(at % 50)
            },
        )
        .await;
    }
    let bytes = journal.head().await.expect("head").bytes;
    let smaller = |size| PruneRequest {
        before: None,
        size: Some(size),
        why: "a test".into(),
    };
    let report = prune(journal, &smaller(bytes), &needed(), |_, _| {})
        .await
        .expect("prune");
    assert_eq!(report, PruneReport::default());
    prune(journal, &smaller(bytes / 2), &needed(), |_, _| {})
        .await
        .expect("prune");
    let left = seqs(journal).await.len();
    assert!((100..300).contains(&left), "{left} of 400 are left");
    assert!(journal.head().await.expect("head").bytes <= bytes / 2);
}

async fn what_pruning_wrote_is_no_reason_to_prune<J: Journal>(journal: &J) {
    put(journal, end(1)).await;
    put(journal, end(2)).await;
    assert_eq!(prune_before(journal, 50).await.records, 2);
    let later = RetentionExemptions {
        now: day(300),
        ..needed()
    };
    let report = prune_unneeded(journal, 200, &later).await;
    assert_eq!(report, PruneReport::default());
    assert_eq!(seqs(journal).await, [3]);
}

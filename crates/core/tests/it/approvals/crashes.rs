//! A host dies after every record it writes: there is one execution or none, and the record is true.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use toolpost_core::{Journal as _, MemoryJournal, Witness, WitnessedCall, WitnessedStart};
use toolpost_model::{InvocationId, Verdict};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{
    act, asking, crashed, crashed_after, decide, edited, ends, host, kinds, next_life, no,
    operator, question, settle, start, target, waiting, yes,
};

/// The result on record of a call that the host goes on with.
async fn result_of(host: &TestHost, id: InvocationId) -> Value {
    host.host
        .wait(id, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    let mut ends = ends(&host.journal, id).await;
    assert_eq!(ends.len(), 1, "exactly one end");
    ends.remove(0)
}

/// A whole story in one life: the records, and the call.
async fn story(verdict: Verdict) -> (Arc<MemoryJournal>, InvocationId) {
    let host = host(&act()).await;
    let handle = start(&host, target("main")).await;
    let id = question(&host.host).await.ask_id;
    decide(&host, id, verdict).await.unwrap();
    handle.answer().await;
    (host.journal, id)
}

/// A third life finds nothing to do.
async fn is_over(journal: &MemoryJournal, id: InvocationId, tool: &MockNativeTool, runs: usize) {
    let host = next_life(&crashed(journal).await, tool).await;
    assert!(host.host.approvals().is_empty());
    settle(&host).await;
    assert_eq!(
        (ends(&host.journal, id).await.len(), tool.call_count()),
        (1, runs)
    );
}

/// Starts a host on what is left when the last one died after `count` records, answers what is asked, and returns
/// the outcome and how often the tool ran in this life.
async fn after(
    journal: &MemoryJournal,
    count: usize,
    id: InvocationId,
    verdict: Verdict,
) -> (Value, usize) {
    let journal = crashed_after(journal, count).await;
    let tool = act();
    let host = next_life(&journal, &tool).await;
    let rows = kinds(&journal.records_of(id).await.unwrap());
    if rows == ["asked"] {
        let asked = question(&host.host).await;
        assert_eq!(
            (asked.ask_id, asked.waiting),
            (id, 1),
            "the same question, under the same id"
        );
        decide(&host, id, verdict).await.unwrap();
    }
    let result = result_of(&host, id).await;
    settle(&host).await;
    is_over(&host.journal, id, &tool, tool.call_count()).await;
    (result, tool.call_count())
}

#[tokio::test]
async fn a_yes_is_one_execution_or_none_wherever_the_host_dies() {
    let (journal, id) = story(yes()).await;
    let rows = journal.read(0, usize::MAX).await.unwrap();
    assert_eq!(
        kinds(&rows),
        [
            "host_started",
            "catalog",
            "surface",
            "asked",
            "decided",
            "started",
            "ended"
        ]
    );
    for (count, outcome, runs) in [
        (4, "succeeded", 1),
        (5, "succeeded", 1),
        (6, "unknown", 0),
        (7, "succeeded", 0),
    ] {
        let (result, ran) = after(&journal, count, id, yes()).await;
        assert_eq!(
            (result["outcome"].as_str().unwrap(), ran),
            (outcome, runs),
            "after {count} records"
        );
        assert_eq!(result["invocation_id"], id.to_string());
    }
}

#[tokio::test]
async fn a_no_is_never_an_execution_wherever_the_host_dies() {
    let (journal, id) = story(no("use a branch")).await;
    for count in 4..=6 {
        let (result, ran) = after(&journal, count, id, no("use a branch")).await;
        assert_eq!(
            (result["outcome"].as_str().unwrap(), ran),
            ("denied", 0),
            "after {count} records"
        );
        assert!(
            result["error"]["message"]
                .as_str()
                .unwrap()
                .contains("use a branch")
        );
    }
}

#[tokio::test]
async fn an_edit_outlives_the_host_that_was_told() {
    let (journal, id) = story(edited(target("branch"))).await;
    let journal = crashed_after(&journal, 5).await;
    let tool = act();
    let host = next_life(&journal, &tool).await;
    assert_eq!(result_of(&host, id).await["outcome"], "succeeded");
    assert_eq!(tool.inputs(), [target("branch")]);
    let rows = journal.records_of(id).await.unwrap();
    let end = super::body(rows.last().unwrap());
    assert_eq!(end["mutations"][0]["source"], "ann");
}

#[tokio::test]
async fn a_question_outlives_any_number_of_hosts_and_its_time_goes_on() {
    let tool = act();
    let host = host(&tool).await;
    let _handle = start(&host, target("main")).await;
    let asked = question(&host.host).await;
    let mut journal = crashed(&host.journal).await;
    for _ in 0..4 {
        let host = next_life(&journal, &tool).await;
        let again = question(&host.host).await;
        assert_eq!(
            (again.ask_id, again.call_hash),
            (asked.ask_id, asked.call_hash)
        );
        assert_eq!(
            (again.asked_at, again.expires_at),
            (asked.asked_at, asked.expires_at)
        );
        journal = crashed(&host.journal).await;
    }
    let host = next_life(&journal, &tool).await;
    question(&host.host).await;
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(result_of(&host, asked.ask_id).await["outcome"], "succeeded");
    assert_eq!(tool.call_count(), 1);
    assert_eq!(
        journal.records_of(asked.ask_id).await.unwrap().len(),
        4,
        "asked, decided, started, ended"
    );
}

#[tokio::test]
async fn two_calls_of_one_question_are_two_executions_at_most() {
    let tool = act();
    let host = host(&tool).await;
    let one = start(&host, target("main")).await;
    question(&host.host).await;
    let two = start(&host, target("main")).await;
    let id = waiting(&host.host, 2).await.ask_id;
    let ids = [one.invocation_id(), two.invocation_id()];
    let pending = crashed(&host.journal).await;
    decide(&host, id, yes()).await.unwrap();
    let rows = host.journal.read(0, usize::MAX).await.unwrap();
    let decided = kinds(&rows)
        .iter()
        .position(|kind| *kind == "decided")
        .unwrap()
        + 1;

    // Before the answer: they share the question again.
    let tool = act();
    let next = next_life(&pending, &tool).await;
    assert_eq!(waiting(&next.host, 2).await.ask_id, id);
    decide(&next, id, yes()).await.unwrap();
    for id in ids {
        assert_eq!(result_of(&next, id).await["outcome"], "succeeded");
    }
    assert_eq!(tool.call_count(), 2);

    // Behind it: both go on, and a death in between is not one more.
    let tool = act();
    let next = next_life(&crashed_after(&host.journal, decided).await, &tool).await;
    for id in ids {
        assert_eq!(result_of(&next, id).await["outcome"], "succeeded");
    }
    assert_eq!(tool.call_count(), 2);
    is_over(&next.journal, ids[1], &tool, 2).await;
}

#[tokio::test]
async fn a_call_that_left_its_question_to_another_is_not_brought_back_with_it() {
    let host = host(&act()).await;
    let one = start(&host, target("main")).await;
    question(&host.host).await;
    let two = start(&host, target("main")).await;
    let asked = waiting(&host.host, 2).await;
    let gone = one.invocation_id();
    let stays = two.invocation_id();
    drop(one);
    host.host
        .wait(gone, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    waiting(&host.host, 1).await;

    let tool = act();
    let next = next_life(&crashed(&host.journal).await, &tool).await;
    assert_eq!(waiting(&next.host, 1).await.ask_id, asked.ask_id);
    decide(&next, asked.ask_id, yes()).await.unwrap();
    assert_eq!(result_of(&next, stays).await["outcome"], "succeeded");
    assert_eq!(result_of(&next, gone).await["outcome"], "canceled");
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn an_answer_is_found_beyond_any_number_of_starts_though_who_raised_the_question_has_gone() {
    let host = host(&act()).await;
    let one = start(&host, target("main")).await;
    question(&host.host).await;
    let two = start(&host, target("main")).await;
    let asked = waiting(&host.host, 2).await;
    let gone = one.invocation_id();
    let stays = two.invocation_id();
    drop(one);
    host.host
        .wait(gone, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    decide(&host, asked.ask_id, yes()).await.unwrap();
    let position = |rows: &[toolpost_core::StoredRecord], kind: &str| {
        kinds(rows)
            .iter()
            .rposition(|found| *found == kind)
            .unwrap()
            + 1
    };
    let mut journal = host.journal.clone();
    let mut cut = position(&journal.read(0, usize::MAX).await.unwrap(), "decided");
    // Each next host dies right after its start is marked.
    for _ in 0..3 {
        let next = next_life(&crashed_after(&journal, cut).await, &act()).await;
        journal = next.journal.clone();
        cut = position(&journal.read(0, usize::MAX).await.unwrap(), "host_started");
    }
    let tool = act();
    let last = next_life(&crashed_after(&journal, cut).await, &tool).await;
    assert_eq!(result_of(&last, stays).await["outcome"], "succeeded");
    assert!(last.host.approvals().is_empty());
    assert_eq!(tool.call_count(), 1);
}

/// Notes when calls began.
#[derive(Default)]
struct BeginningNotes(std::sync::Mutex<Vec<jiff::Timestamp>>);

impl Witness for BeginningNotes {
    fn begun(&self, _: &WitnessedCall, start: &WitnessedStart<'_>) {
        self.0.lock().unwrap().push(start.at);
    }
}

/// Who watches sees how long a call has waited: since it was asked for, not since its host came back.
#[tokio::test]
async fn the_age_of_a_call_that_waits_goes_on_in_the_next_host() {
    let tool = act();
    let before = host(&tool).await;
    let _handle = start(&before, target("main")).await;
    let asked = question(&before.host).await;
    let journal = crashed(&before.journal).await;
    let notes = Arc::new(BeginningNotes::default());
    let witness: Arc<dyn Witness> = Arc::clone(&notes) as Arc<dyn Witness>;
    let after = TestHost::on(journal, |builder| asking(builder, &tool).witness(witness)).await;
    question(&after.host).await;
    let began = notes.0.lock().unwrap().clone();
    assert_eq!(began.len(), 1);
    assert!(
        began[0] <= asked.asked_at,
        "{began:?}, asked at {}",
        asked.asked_at
    );
}

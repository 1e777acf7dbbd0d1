//! A yes is for the files that the call would run as they were when it was asked about.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_core::{Approvals, HostBuilder, HostLimits, MemoryJournal, SchedulerLimits};
use toolpost_model::{
    ApprovalScope, CallInput, ClassFact, Declaration, EffectClass, ErrorClass, InvocationId,
    Outcome, PermissionRequest, ProgramContent, ProgramFile, Tool, ToolCall, ToolFailure,
    ToolOutput, ToolResult,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

use super::{
    Engine, act, body, crashed, decide, edited, ends, host, next_life, operator, question,
    records_of, scoped, settle, start, target, yes,
};

/// A tool that would run the file of its argument `target`.
#[derive(Clone)]
struct Runner {
    /// What every file holds.
    content: Arc<Mutex<Option<&'static str>>>,
    calls: Arc<AtomicUsize>,
}

impl Runner {
    fn new() -> Self {
        Self {
            content: Arc::new(Mutex::new(Some("one"))),
            calls: Arc::default(),
        }
    }

    fn set(&self, content: Option<&'static str>) {
        *self.content.lock().unwrap() = content;
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Tool for Runner {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("demo.act".parse().unwrap(), "Runs a file");
        declaration.interface.safety.class = ClassFact::Always(EffectClass::Write);
        declaration
    }

    async fn programs(&self, input: &CallInput) -> Result<Vec<ProgramFile>, ToolFailure> {
        let name = input.arguments().str("target").unwrap_or("main").to_owned();
        let content = match *self.content.lock().unwrap() {
            Some("broken") => {
                return Err(ToolFailure::invalid("the file cannot be looked at").untouched());
            }
            Some(text) => ProgramContent::Digest {
                sha256: text.to_owned(),
                bytes: text.len() as u64,
            },
            None => ProgramContent::Absent,
        };
        Ok(vec![ProgramFile {
            path: format!("/w/{name}"),
            name,
            content,
        }])
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::text("ran"))
    }
}

fn asks(builder: HostBuilder, tool: &Runner) -> HostBuilder {
    builder
        .tool(tool.clone())
        .policy(Engine::default())
        .approvals(Approvals::ASK)
}

async fn running(tool: &Runner) -> TestHost {
    TestHost::build(|builder| asks(builder, tool)).await
}

async fn in_the_next_life(journal: &Arc<MemoryJournal>, tool: &Runner) -> TestHost {
    TestHost::on(crashed(journal).await, |builder| asks(builder, tool)).await
}

/// Calls and does not wait for an answer.
async fn impatient(host: &TestHost, arguments: Value) -> ToolResult {
    let mut request = host.request("act", arguments);
    request.times.patience = Some(toolpost_core::Patience::Approval(Duration::ZERO));
    host.host.call(request).await.result().clone()
}

/// The question that is open in place of another one.
async fn other_than(host: &TestHost, id: InvocationId) -> PermissionRequest {
    loop {
        let open = host.host.approvals();
        if let Some(other) = open.into_iter().find(|question| question.ask_id != id) {
            return other;
        }
        tokio::task::yield_now().await;
    }
}

#[track_caller]
fn check_changed(question: &PermissionRequest, before: &str, now: &str) {
    let told: Vec<String> = question
        .changed_programs
        .iter()
        .map(ToString::to_string)
        .collect();
    let [only] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert!(
        only.starts_with("`main`: ") && only.contains(before) && only.ends_with(now),
        "{only}"
    );
}

#[tokio::test]
async fn a_file_that_changed_before_the_yes_is_asked_about_under_a_new_id() {
    let tool = Runner::new();
    let host = running(&tool).await;
    let handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    assert_eq!(first.programs[0].path, "/w/main");
    assert_eq!(first.changed_programs, []);
    tool.set(Some("two"));
    decide(&host, first.ask_id, yes()).await.unwrap();
    let second = other_than(&host, first.ask_id).await;
    assert_ne!(first.call_hash, second.call_hash);
    check_changed(&second, "sha256 one", "-> sha256 two, 3 bytes");
    assert_eq!(tool.count(), 0, "the yes was for the other content");
    tool.set(None);
    decide(&host, second.ask_id, yes()).await.unwrap();
    let third = other_than(&host, second.ask_id).await;
    check_changed(&third, "sha256 two", "-> not there");
    decide(&host, third.ask_id, yes()).await.unwrap();
    let result = handle.answer().await.result().clone();
    assert_eq!((result.outcome, tool.count()), (Outcome::Succeeded, 1));
    let rows = records_of(&host, first.ask_id).await;
    assert_eq!(body(&rows[0])["programs"][0]["content"]["sha256"], "one");
}

#[tokio::test]
async fn a_file_that_changed_while_the_call_was_queued_is_asked_about_again() {
    let tool = Runner::new();
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("demo.slow").gate(&gate);
    let scheduler = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        ..HostLimits::default().scheduler
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let host = TestHost::build(|builder| asks(builder, &tool).tool(slow).limits(limits)).await;
    let slow = host.host.start(host.request("slow", json!({}))).await;
    gate.entered(1).await;
    let handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    decide(&host, first.ask_id, yes()).await.unwrap();
    loop {
        let view = host
            .host
            .invocation(first.ask_id, &operator())
            .await
            .unwrap()
            .unwrap();
        if view.stage == Some(toolpost_model::Stage::Admit) {
            break;
        }
        tokio::task::yield_now().await;
    }
    tool.set(Some("two"));
    gate.let_through(1);
    let second = other_than(&host, first.ask_id).await;
    check_changed(&second, "sha256 one", "-> sha256 two, 3 bytes");
    assert_eq!(tool.count(), 0);
    decide(&host, second.ask_id, yes()).await.unwrap();
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(slow.answer().await.result().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_kept_yes_is_for_the_files_as_they_were_also_after_a_restart() {
    let tool = Runner::new();
    let host = running(&tool).await;
    let pending = impatient(&host, target("main")).await;
    assert_eq!(pending.error_class(), Some(ErrorClass::ApprovalPending));
    let first = question(&host.host).await;
    decide(&host, first.ask_id, yes()).await.unwrap();
    tool.set(Some("two"));
    let again = impatient(&host, target("main")).await;
    assert_eq!(again.error_class(), Some(ErrorClass::ApprovalPending));
    let second = other_than(&host, first.ask_id).await;
    check_changed(&second, "sha256 one", "-> sha256 two, 3 bytes");
    assert_eq!(tool.count(), 0);

    let after = in_the_next_life(&host.journal, &tool).await;
    question(&after.host).await;
    tool.set(Some("three"));
    impatient(&after, target("main")).await;
    let third = other_than(&after, second.ask_id).await;
    check_changed(&third, "sha256 one", "-> sha256 three, 5 bytes");
    assert_eq!(tool.count(), 0);
    tool.set(Some("one"));
    assert_eq!(
        impatient(&after, target("main")).await.outcome,
        Outcome::Succeeded,
        "as it was approved"
    );
    assert_eq!(
        impatient(&after, target("main")).await.outcome,
        Outcome::Rejected,
        "once"
    );
    assert_eq!(tool.count(), 1);
}

#[tokio::test]
async fn a_question_whose_files_changed_while_no_host_ran_is_a_new_one() {
    let tool = Runner::new();
    let host = running(&tool).await;
    let _handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    let same = in_the_next_life(&host.journal, &tool).await;
    assert_eq!(
        question(&same.host).await.ask_id,
        first.ask_id,
        "nothing changed"
    );
    tool.set(Some("two"));
    let after = in_the_next_life(&host.journal, &tool).await;
    let second = question(&after.host).await;
    assert_ne!(second.ask_id, first.ask_id);
    check_changed(&second, "sha256 one", "-> sha256 two, 3 bytes");
    decide(&after, first.ask_id, yes()).await.unwrap_err();
    decide(&after, second.ask_id, yes()).await.unwrap();
    after
        .host
        .wait(first.ask_id, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(
        ends(&after.journal, first.ask_id).await[0]["outcome"],
        "succeeded"
    );
    assert_eq!(tool.count(), 1);
}

#[tokio::test]
async fn a_yes_on_record_does_not_cover_files_that_changed_since() {
    let tool = Runner::new();
    let host = running(&tool).await;
    let handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    decide(&host, first.ask_id, edited(target("main")))
        .await
        .unwrap();
    handle.answer().await;
    // The host died right behind the answer.
    let rows = host.records().await;
    let answered = rows
        .iter()
        .position(|row| row.record.kind.as_str() == "decided")
        .unwrap()
        + 1;
    let journal = super::crashed_after(&host.journal, answered).await;
    tool.set(Some("two"));
    let after = TestHost::on(journal, |builder| asks(builder, &tool)).await;
    let second = question(&after.host).await;
    check_changed(&second, "sha256 one", "-> sha256 two, 3 bytes");
    assert_eq!(tool.count(), 1, "that was in the first life");
    settle(&after).await;
}

#[tokio::test]
async fn a_rule_covers_any_content_and_the_question_says_so() {
    for scope in [ApprovalScope::Session, ApprovalScope::Remember] {
        let tool = Runner::new();
        let host = running(&tool).await;
        let handle = start(&host, target("main")).await;
        let first = question(&host.host).await;
        let remark = first.rule_remark.clone().unwrap();
        assert!(remark.contains("covers any content of `main`"), "{remark}");
        tool.set(Some("two"));
        decide(&host, first.ask_id, scoped(scope)).await.unwrap();
        assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
        tool.set(Some("three"));
        assert_eq!(
            impatient(&host, target("main")).await.outcome,
            Outcome::Succeeded
        );
        assert_eq!(tool.count(), 2);
    }
    let plain = act();
    let host = host(&plain).await;
    let _handle = start(&host, target("main")).await;
    assert_eq!(question(&host.host).await.rule_remark, None);
}

#[tokio::test]
async fn a_question_of_a_host_that_told_no_files_still_goes_on() {
    let host = host(&act()).await;
    let _handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    let rows = records_of(&host, first.ask_id).await;
    let asked = body(&rows[0]);
    assert!(
        asked.get("programs").is_none() && asked["ask"].get("without_files").is_none(),
        "{asked}"
    );
    let same = next_life(&crashed(&host.journal).await, &act()).await;
    assert_eq!(question(&same.host).await.ask_id, first.ask_id);
    settle(&same).await;

    let tool = Runner::new();
    let after = in_the_next_life(&host.journal, &tool).await;
    let second = question(&after.host).await;
    assert_ne!(
        second.ask_id, first.ask_id,
        "a person has not seen the file yet"
    );
    assert_eq!(second.changed_programs, [], "nothing is known about before");
    decide(&after, second.ask_id, yes()).await.unwrap();
    after
        .host
        .wait(first.ask_id, &operator(), Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(tool.count(), 1);
}

#[tokio::test]
async fn a_call_whose_files_cannot_be_looked_at_is_not_asked_about() {
    let tool = Runner::new();
    tool.set(Some("broken"));
    let host = running(&tool).await;
    let result = impatient(&host, target("main")).await;
    assert_eq!(result.error_class(), Some(ErrorClass::InvalidArguments));
    assert_eq!((host.host.approvals().len(), tool.count()), (0, 0));
}

#[tokio::test]
async fn an_answer_with_other_arguments_tells_the_change_and_its_files() {
    let tool = Runner::new();
    let host = running(&tool).await;
    let handle = start(&host, target("main")).await;
    let first = question(&host.host).await;
    let other = json!({ "target": "ma\u{202e}in", "more": [1] });
    let decided = decide(&host, first.ask_id, edited(other)).await.unwrap();
    let told: Vec<String> = decided
        .changed_arguments
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "more: (not given) -> [1]",
            r#"target: "main" -> "ma\u{202e}in""#
        ]
    );
    assert_eq!(handle.answer().await.result().outcome, Outcome::Succeeded);
    let rows = records_of(&host, first.ask_id).await;
    let answer = rows
        .iter()
        .find(|row| row.record.kind.as_str() == "decided")
        .map(body)
        .unwrap();
    assert_eq!(answer["changed_arguments"][1]["before"], "\"main\"");
    assert_eq!(answer["programs"][0]["path"], "/w/ma\u{202e}in");
}

#[tokio::test]
async fn texts_of_a_question_hide_nothing() {
    let hidden = ['\u{202e}', '\u{200b}', '\u{1b}'];
    let tool = Runner::new();
    let host = running(&tool).await;
    let handle = start(&host, json!({ "target": "a\u{202e}b\u{200b}\u{1b}" })).await;
    let asked = question(&host.host).await;
    assert!(!asked.summary.contains(hidden), "{:?}", asked.summary);
    assert!(!asked.programs[0].name.contains(hidden) && !asked.programs[0].path.contains(hidden));
    assert!(!asked.rule_remark.clone().unwrap().contains(hidden));
    assert_eq!(asked.arguments["target"], "a\u{202e}b\u{200b}\u{1b}");
    decide(&host, asked.ask_id, yes()).await.unwrap();
    assert_eq!(
        handle.answer().await.result().outcome,
        Outcome::Succeeded,
        "what runs is the call as it is"
    );
}

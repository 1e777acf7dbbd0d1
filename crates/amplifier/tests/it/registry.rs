//! Asking handlers: order, wildcards, precedence, failures.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolpost_amplifier::{
    HookAction, HookFailure, HookRegistry, HookResult, HookResultCollector, UnfitAnswer,
};
use toolpost_model::HookStanding;

/// Adds a handler that notes its name and says something.
fn add(
    hooks: &HookRegistry,
    asked: &Arc<Mutex<Vec<String>>>,
    (subscription, priority, name): (&str, i32, &str),
    says: impl Fn(&Value) -> Result<HookResult, HookFailure> + Send + Sync + 'static,
) {
    let asked = Arc::clone(asked);
    let own = name.to_owned();
    hooks.register(
        subscription,
        priority,
        name,
        move |_: String, data: Value| {
            asked.lock().unwrap().push(own.clone());
            std::future::ready(says(&data))
        },
    );
}

fn modify(data: &Value) -> Result<HookResult, HookFailure> {
    Ok(HookResult::modify(data.as_object().unwrap().clone()))
}

#[tokio::test]
async fn lower_numbers_come_first_and_wildcards_are_heard() {
    let hooks = HookRegistry::default();
    let asked = Arc::default();
    for (subscription, priority, name) in [
        ("tool:pre", 10, "late"),
        ("*", -5, "all"),
        ("tool:*", 0, "family"),
        ("tool:pre", 0, "second"),
        ("tool:post", -100, "other"),
        ("tool*", -100, "no family"),
    ] {
        add(&hooks, &asked, (subscription, priority, name), |_| {
            Ok(HookResult::proceed())
        });
    }
    hooks.emit("tool:pre", json!({})).await;
    assert_eq!(*asked.lock().unwrap(), ["all", "family", "second", "late"]);
    assert!(hooks.concerns("session:end"));
}

#[tokio::test]
async fn who_is_taken_out_is_asked_no_more() {
    let hooks = HookRegistry::default();
    let handler = |_: String, _: Value| std::future::ready(Ok(HookResult::deny("no")));
    let registration = hooks.register("tool:pre", 0, "guard", handler);
    assert_eq!(
        hooks.emit("tool:pre", json!({})).await.action,
        HookAction::Deny
    );
    registration.unregister();
    assert!(!hooks.concerns("tool:pre"));
    assert_eq!(
        hooks.emit("tool:pre", json!({})).await,
        HookResult::proceed()
    );
}

#[tokio::test]
async fn each_sees_what_those_before_it_left() {
    let hooks = HookRegistry::default();
    let asked = Arc::default();
    add(&hooks, &asked, ("e", 0, "one"), |_| {
        modify(&json!({"x": 1, "timestamp": "mine"}))
    });
    add(&hooks, &asked, ("e", 1, "two"), |data| {
        modify(&json!({"y": data["x"]}))
    });
    let answer = hooks.emit("e", json!({"x": 0, "timestamp": "now"})).await;
    assert_eq!(
        answer.action,
        HookAction::Continue,
        "the end is never `modify`"
    );
    assert_eq!(
        Value::from(answer.data.unwrap()),
        json!({"x": 1, "y": 1, "timestamp": "now"})
    );
}

#[tokio::test]
async fn changes_survive_beside_a_question_and_a_word() {
    let hooks = HookRegistry::default();
    let asked = Arc::default();
    add(&hooks, &asked, ("e", 0, "change"), |_| {
        modify(&json!({"x": 1}))
    });
    add(&hooks, &asked, ("e", 1, "word"), |_| {
        Ok(HookResult::inject_context("one"))
    });
    add(&hooks, &asked, ("e", 2, "question"), |_| {
        Ok(HookResult::ask_user("first?"))
    });
    add(&hooks, &asked, ("e", 3, "question"), |_| {
        Ok(HookResult::ask_user("second?"))
    });
    add(&hooks, &asked, ("e", 4, "word"), |_| {
        Ok(HookResult::inject_context("two").with_message("seen"))
    });
    let answer = hooks.emit("e", json!({"x": 0})).await;
    assert_eq!(answer.action, HookAction::AskUser);
    assert_eq!(answer.approval_prompt.as_deref(), Some("first?"));
    assert_eq!(answer.context_injection.as_deref(), Some("one\n\ntwo"));
    assert_eq!(answer.context_injections.len(), 2);
    assert_eq!(answer.user_message.as_deref(), Some("word: seen"));
    assert_eq!(Value::from(answer.data.unwrap()), json!({"x": 1}));
}

#[tokio::test]
async fn a_no_ends_the_asking() {
    let hooks = HookRegistry::default();
    let asked = Arc::default();
    add(&hooks, &asked, ("e", 0, "question"), |_| {
        Ok(HookResult::ask_user("?"))
    });
    add(&hooks, &asked, ("e", 1, "no"), |_| {
        Ok(HookResult::deny("never"))
    });
    add(&hooks, &asked, ("e", 2, "unasked"), |_| {
        Ok(HookResult::proceed())
    });
    let answer = hooks.emit("e", json!({})).await;
    assert_eq!(
        (answer.action, answer.reason.as_deref()),
        (HookAction::Deny, Some("never"))
    );
    assert_eq!(*asked.lock().unwrap(), ["question", "no"]);
}

#[tokio::test]
async fn among_modules_a_broken_handler_is_passed_over_and_nonsense_is_a_no() {
    let hooks = HookRegistry::default();
    let asked = Arc::default();
    add(&hooks, &asked, ("e", 0, "broken"), |_| {
        Err(HookFailure::broke("oops"))
    });
    assert_eq!(hooks.emit("e", json!({})).await, HookResult::proceed());
    add(&hooks, &asked, ("e", 1, "odd"), |_| {
        Err(UnfitAnswer("a text".to_owned()).into())
    });
    let answer = hooks.emit("e", json!({})).await;
    assert_eq!(answer.action, HookAction::Deny);
    assert!(answer.reason.unwrap().contains("`odd` failed"));
}

/// What a single handler's words or failure come to under a standing.
fn gathered(
    standing: HookStanding,
    says: Result<HookResult, HookFailure>,
) -> (HookResult, Vec<String>) {
    let hooks = HookRegistry::default();
    hooks.register("e", 0, "h", |_: String, _: Value| {
        std::future::ready(Ok(HookResult::proceed()))
    });
    let mut gathering = HookResultCollector::new(json!({}));
    gathering.take(&hooks.handlers("e")[0], standing, says, "e");
    let notes = gathering.notes().to_vec();
    (gathering.finish(), notes)
}

#[test]
fn standing_decides_what_a_failure_means() {
    let broke = || Err(HookFailure::broke("oops"));
    assert_eq!(
        gathered(HookStanding::Guard, broke()).0.action,
        HookAction::Deny
    );
    assert_eq!(
        gathered(HookStanding::Ordinary, broke()).0.action,
        HookAction::AskUser
    );
    let (answer, notes) = gathered(HookStanding::Observer, broke());
    assert_eq!(
        (answer, notes),
        (
            HookResult::proceed(),
            vec!["the hook `h` failed: oops".to_owned()]
        )
    );
    let odd = || Err(UnfitAnswer("a text".to_owned()).into());
    assert_eq!(
        gathered(HookStanding::Guard, odd()).0.action,
        HookAction::Deny
    );
    assert_eq!(
        gathered(HookStanding::Ordinary, odd()).0.action,
        HookAction::Deny
    );
    assert_eq!(
        gathered(HookStanding::Observer, odd()).0.action,
        HookAction::Continue
    );
}

#[test]
fn an_observer_can_leave_a_message_and_nothing_else() {
    let (answer, notes) = gathered(
        HookStanding::Observer,
        Ok(HookResult::deny("no").with_message("hm")),
    );
    assert_eq!(
        (answer.action, answer.user_message.as_deref()),
        (HookAction::Continue, Some("h: hm"))
    );
    assert_eq!(
        notes,
        ["the hook `h` is an observer, so its `deny` is ignored"]
    );
}

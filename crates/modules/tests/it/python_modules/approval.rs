//! A module that asks for approval of its own calls, and the answers that settle it.

use serde_json::{Value, json};
use toolpost_model::{Outcome, PermissionMode};
use toolpost_testkit::TestHost;

use super::stage::{Core, Stage, Wanted};

const TOOLS: [&str; 2] = ["marked", "described"];

async fn stage(mode: PermissionMode, rules: &[&str]) -> Stage {
    let policy = TestHost::policy(mode, rules);
    let wanted = Wanted::new(Core::StandIn, &["tool-cautious"]);
    wanted
        .set(|wanted| wanted.host = Box::new(move |builder| builder.policy(policy)))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn bypass_and_an_allow_by_id_answer_it_and_the_result_and_the_record_say_so() {
    let by_id = [
        "allow tool-cautious.marked",
        "allow tool-cautious.described",
    ];
    for (mode, rules, answer) in [
        (PermissionMode::Bypass, &[][..], "mode `bypass` never asks"),
        (PermissionMode::NeverAsk, &by_id[..], "allows it by its id"),
    ] {
        let stage = stage(mode, rules).await;
        for tool in TOOLS {
            let result = stage.call(tool, json!({})).await;
            assert_eq!(
                result.outcome,
                Outcome::Succeeded,
                "{mode} {tool}: {result:?}"
            );
            let waived = result
                .approval_waived
                .expect("the result says what the request gave way to");
            assert!(
                waived.starts_with("the tool itself requests approval for every call; "),
                "{waived}"
            );
            assert!(waived.ends_with(answer), "{waived}");
            let records = stage.test.call_records().await;
            let bodies = records
                .iter()
                .filter_map(|row| serde_json::from_str::<Value>(&row.record.body).ok());
            let mut recorded = bodies.filter_map(|body| {
                body.pointer("/decision/approval_waived")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            });
            assert_eq!(recorded.next_back(), Some(waived), "{mode} {tool}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_wider_answers_it() {
    for rules in [
        &[][..],
        &["allow marked", "allow described"],
        &["allow tool-cautious.*"],
        &["allow *.*"],
        &["allow class:unknown"],
        &["allow other.marked", "allow other.described"],
    ] {
        let stage = stage(PermissionMode::NeverAsk, rules).await;
        for tool in TOOLS {
            let result = stage.call(tool, json!({})).await;
            assert_eq!(
                result.outcome,
                Outcome::Denied,
                "{rules:?} {tool}: {result:?}"
            );
            assert_eq!(result.approval_waived, None, "{rules:?} {tool}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_asks_or_denies_stands_in_mode_bypass() {
    let stage = stage(PermissionMode::Bypass, &["deny marked", "ask described"]).await;
    for tool in TOOLS {
        let result = stage.call(tool, json!({})).await;
        assert_eq!(result.outcome, Outcome::Denied, "{tool}: {result:?}");
        assert_eq!(result.approval_waived, None, "{tool}");
    }
}

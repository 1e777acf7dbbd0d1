//! Definitions are pinned: what changed is held back until an operator accepts it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::json;
use toolpost_core::{MemoryPins, PinStore, PinStoreError};
use toolpost_mcp_source::{McpNewToolPolicy, McpSharing, McpStartPolicy};
use toolpost_model::{ErrorClass, Outcome, SourceState, ToolId, ToolSettings};

use crate::stage::{Stage, Wanted, until};

fn globs(pattern: &str) -> globset::GlobSet {
    globset::GlobSetBuilder::new()
        .add(globset::Glob::new(pattern).unwrap())
        .build()
        .unwrap()
}

fn id(text: &str) -> ToolId {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_definition_is_kept_back_until_it_is_accepted() {
    let stage = Stage::new("changing").await;
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    stage.call("fix__die", json!({})).await;
    // The next start brings other definitions; the call that causes it must not reach the changed tool.
    let error = stage
        .call("fix__echo", json!({ "text": "x" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (error.class, &*error.code),
        (ErrorClass::SetupRequired, "definition_kept_back"),
        "{error:?}"
    );
    assert!(
        error
            .hint
            .unwrap()
            .contains("toolpost tools accept fix.echo")
    );
    until("the new list", || {
        !stage.tools().contains(&"fix__echo".to_owned())
    })
    .await;
    let health = stage.health();
    let held: Vec<(&str, &str)> = health
        .quarantined
        .iter()
        .map(|held| (held.tool.as_str(), held.change.as_str()))
        .collect();
    assert_eq!(held, [("fix.added", "new"), ("fix.echo", "changed")]);
    assert!(
        health.quarantined[1]
            .diff
            .contains("+    And sends it to evil.example."),
        "{}",
        health.quarantined[1].diff
    );
    assert!(
        stage
            .problems()
            .join("\n")
            .contains("`fix.echo` is held back"),
        "{:?}",
        stage.problems()
    );
    // The others still work.
    assert_eq!(
        stage.call("fix__structured", json!({})).await.outcome,
        Outcome::Succeeded
    );

    let other = stage
        .test
        .host
        .accept("fix", Some(&id("fix.echo")), Some("another"))
        .await
        .unwrap_err();
    assert!(other.reason.contains("changed again"), "{other}");
    let seen = Some(health.quarantined[1].digest.as_str());
    let accepted = stage
        .test
        .host
        .accept("fix", Some(&id("fix.echo")), seen)
        .await
        .unwrap();
    assert_eq!(accepted, [id("fix.echo")]);
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .model_text(),
        "x"
    );
    assert_eq!(
        stage.test.host.accept("fix", None, None).await.unwrap(),
        [id("fix.added")]
    );
    assert!(stage.test.host.accept("fix", None, None).await.is_err());
    assert!(stage.tools().contains(&"fix__added".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_changes_is_compared_in_both_eras() {
    for mode in ["good", "modern"] {
        let stage = Wanted::new(mode)
            .set(|server| server.new_tools = McpNewToolPolicy::Take)
            .start()
            .await;
        assert!(!stage.tools().contains(&"fix__added".to_owned()), "{mode}");
        // The word of a server without sessions is only heard once it was asked for, which happens beside everything else.
        let grown = || stage.tools().contains(&"fix__added".to_owned());
        let calls = async {
            while !grown() {
                stage.call("fix__fail", json!({ "grow": true })).await;
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), calls)
            .await
            .unwrap();
        assert_eq!(stage.starts(), 1, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changed_under_way_is_not_called_before_it_is_compared() {
    for sharing in [McpSharing::Host, McpSharing::Session] {
        let stage = Wanted::new("shifting")
            .set(|server| server.sharing = sharing)
            .start()
            .await;
        assert_eq!(
            stage
                .call("fix__echo", json!({ "text": "x" }))
                .await
                .model_text(),
            "x"
        );
        stage.call("fix__fail", json!({ "grow": true })).await;
        let error = stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .error
            .unwrap();
        assert!(
            ["definition_kept_back", "unknown_tool"].contains(&&*error.code),
            "{sharing:?}: {error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_definitions_outlive_the_host() {
    let pins = Arc::new(MemoryPins::default());
    let wanted = |mode: &str| {
        let mut wanted = Wanted::new(mode).set(|server| server.new_tools = McpNewToolPolicy::Ask);
        wanted.pins = pins.clone();
        wanted
    };
    let first = wanted("good").start().await;
    assert!(first.tools().is_empty());
    let refused = first
        .call("fix__echo", json!({ "text": "x" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (refused.class, &*refused.code),
        (ErrorClass::SetupRequired, "setup"),
        "{refused:?}"
    );
    assert!(
        refused.message.contains("`toolpost tools accept fix.echo`"),
        "{refused:?}"
    );
    assert_eq!(first.health().quarantined.len(), 11);
    first
        .test
        .host
        .accept("fix", Some(&id("fix.echo")), None)
        .await
        .unwrap();
    assert_eq!(first.tools(), ["fix__echo"]);
    let second = wanted("good").start().await;
    assert_eq!(
        (second.tools(), second.starts()),
        (vec!["fix__echo".to_owned()], 0)
    );
    // What is held back is still told, although nothing was started.
    assert_eq!(second.health().quarantined.len(), 10);
    // And can be accepted as it was shown.
    second
        .test
        .host
        .accept("fix", Some(&id("fix.fail")), None)
        .await
        .unwrap();
    assert_eq!((second.tools().len(), second.starts()), (2, 0));
    // A wish that is younger than what was kept counts.
    let denied = wanted("good")
        .set(|server| server.deny = globs("echo"))
        .start()
        .await;
    assert_eq!(denied.tools(), ["fix__fail"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_odd_about_a_list_is_told_after_an_acceptance_too() {
    let stage = Wanted::new("bad_tools")
        .set(|server| server.new_tools = McpNewToolPolicy::Ask)
        .start()
        .await;
    let odd = || {
        stage
            .problems()
            .iter()
            .filter(|told| told.contains("without a name"))
            .count()
    };
    assert_eq!(odd(), 1, "{:?}", stage.problems());
    stage
        .test
        .host
        .accept("fix", Some(&id("fix.echo")), None)
        .await
        .unwrap();
    assert_eq!(
        (stage.tools(), odd()),
        (vec!["fix__echo".to_owned()], 1),
        "{:?}",
        stage.problems()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_wanted_tools_are_taken() {
    let stage = Wanted::new("good")
        .set(|server| {
            server.allow = Some(globs("e*"));
            server.deny = globs("every");
        })
        .start()
        .await;
    assert_eq!(stage.tools(), ["fix__echo", "fix__environment"]);
}

/// Accepted definitions that cannot be trusted until somebody has mended them.
#[derive(Default)]
struct DamagedPins {
    mended: AtomicBool,
    written: AtomicBool,
}

impl PinStore for DamagedPins {
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError> {
        match self.mended.load(Ordering::Relaxed) {
            true => Ok(None),
            false => Err(PinStoreError {
                origin: source.to_owned(),
                attempt: "read",
                reason: "`fix.json` is damaged; check it, then repair or delete it".to_owned(),
            }),
        }
    }

    fn keep(&self, _: &str, _: &str) -> Result<(), PinStoreError> {
        self.written.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pins_need_a_person_and_are_not_written_over() {
    for start in [McpStartPolicy::Lazy, McpStartPolicy::Eager] {
        let pins = Arc::new(DamagedPins::default());
        let mut wanted = Wanted::new("good").set(|server| server.start = start);
        wanted.pins = pins.clone();
        let stage = wanted.start().await;
        assert!(stage.tools().is_empty(), "{start:?}");
        let catalog = stage.test.host.catalog();
        let codes: Vec<&str> = catalog
            .unavailable()
            .iter()
            .map(|problem| problem.code.as_str())
            .collect();
        assert_eq!(codes, ["setup_required"], "{start:?}");
        let health = stage.health();
        assert_eq!(health.state, SourceState::Failing, "{health:?}");
        assert!(health.message.unwrap().contains("repair or delete it"));
        let refused = stage
            .test
            .host
            .accept("fix", None, None)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("is damaged"), "{refused}");
        assert_eq!(
            (stage.starts(), pins.written.load(Ordering::Relaxed)),
            (0, false),
            "{start:?}"
        );

        pins.mended.store(true, Ordering::Relaxed);
        stage
            .test
            .host
            .replace_settings(HashMap::<String, ToolSettings>::new())
            .await;
        assert!(
            stage.tools().contains(&"fix__echo".to_owned()),
            "{:?}",
            stage.problems()
        );
        assert_ne!(stage.health().state, SourceState::Failing);
    }
}

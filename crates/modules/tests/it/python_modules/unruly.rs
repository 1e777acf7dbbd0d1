//! Modules that say too much, or want to end more than themselves: it costs them what they did, and nobody else anything.

use std::collections::HashMap;

use serde_json::json;
use toolpost_amplifier::ModuleId;
use toolpost_model::{
    EffectClass, ErrorClass, EventBody, HookStanding, Outcome, Source as _, ToolPermissionSettings,
    ToolSettings,
};

use super::stage::{BOTH, Core, Stage, Wanted, logged, processes, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_cannot_end_the_bridge() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-unruly", "tool-rough", "hooks-unruly"]).await;
        let process = stage.call("process", json!({})).await.model_text();
        for (wish, words) in [
            ("exit", "SystemExit: 4"),
            ("interrupt", "KeyboardInterrupt"),
            ("cancel", "it canceled itself"),
            ("large", "more than 4 MiB"),
        ] {
            let error = stage
                .call("nothing", json!({ "wish": wish }))
                .await
                .error
                .unwrap();
            assert_eq!(error.class, ErrorClass::HookBlocked, "{wish}: {error:?}");
            assert!(error.message.contains(words), "{wish}: {error:?}");
            assert_eq!(
                stage.call("nothing", json!({})).await.outcome,
                Outcome::Succeeded,
                "{wish}"
            );
        }
        assert_eq!(stage.call("process", json!({})).await.model_text(), process);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleanup_that_leaves_keeps_nobody_from_cleaning_up() {
    for (core, mark) in BOTH.into_iter().zip(["48301", "48302"]) {
        let stage = Stage::new(core, &["tool-unruly", "tool-rough"]).await;
        let process = stage.call("process", json!({})).await.model_text();
        let session = stage.session("a").await;
        stage
            .call_in(&session, "leave_behind", json!({ "mark": mark }))
            .await;
        let words = format!("sleep {mark}");
        until("its process", || processes(&words).len() == 1).await;
        stage.test.host.close_session(&session).await.unwrap();
        until("its end", || processes(&words).is_empty()).await;
        until("the other cleanup", || {
            stage.folder.path().join("farewell").exists()
        })
        .await;
        assert_eq!(stage.call("process", json!({})).await.model_text(), process);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_writes_into_its_data_counts_for_nobody() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-unruly", "hooks-unruly"]).await;
        let result = stage
            .call("perhaps", json!({ "wish": "scribble", "success": "yes" }))
            .await;
        assert_eq!(result.model_text(), "done", "{result:?}");
        assert_eq!(result.outcome, Outcome::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_left_out_and_told() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-unruly", "tool-rough"]).await;
        let problems: Vec<String> = stage
            .modules
            .source()
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        for words in [
            "schema has more than 256 KiB",
            "description has more than 16 KiB",
        ] {
            assert!(
                problems.iter().any(|line| line.contains(words)),
                "{words}: {problems:?}"
            );
        }
        assert_eq!(
            stage.call("large", json!({ "any": 1 })).await.model_text(),
            "large"
        );
        let process = stage.call("process", json!({})).await.model_text();
        let error = stage.call("large_ask", json!({})).await.error.unwrap();
        assert!(error.message.contains("more than 4 MiB"), "{error:?}");
        let (kept, events) = stage.watched("large_capability", json!({})).await;
        assert_eq!(kept.model_text(), "307200");
        assert!(
            logged(&events)
                .iter()
                .any(|line| line.contains("more than 256 KiB")),
            "{events:?}"
        );
        assert_eq!(stage.call("process", json!({})).await.model_text(), process);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_over_the_limit_are_counted() {
    let stage = Stage::new(Core::StandIn, &["tool-unruly"]).await;
    let (_, events) = stage.watched("flood", json!({ "count": 1200 })).await;
    let told: Vec<_> = events
        .iter()
        .filter_map(EventBody::as_module_event)
        .collect();
    let of_module = told
        .iter()
        .filter(|(name, _)| name.starts_with("unruly:event"))
        .count();
    assert!(of_module <= 1000);
    let (_, last) = told
        .iter()
        .find(|(name, _)| *name == "toolpost:events_dropped")
        .unwrap();
    assert_eq!(last["dropped"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_without_end_and_words_for_neither_yes_nor_no() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-unruly"]).await;
        let number = stage
            .call("long_number", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(number["number"], "<a number of 16610 bits>");
        let endless = stage
            .call("endless", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(endless["value"], json!(["<list of 2>", "<list of 2>"]));
        for (success, outcome) in [("on", Outcome::Succeeded), ("NO", Outcome::Failed)] {
            assert_eq!(
                stage
                    .call("perhaps", json!({ "success": success }))
                    .await
                    .outcome,
                outcome
            );
        }
        for success in [json!("maybe"), json!(2), json!(null), json!([])] {
            let error = stage
                .call("perhaps", json!({ "success": success }))
                .await
                .error
                .unwrap();
            assert_eq!(error.code, "bad_result", "{success}: {error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_finds_the_working_directory_as_it_was() {
    let stage = Stage::new(Core::StandIn, &["tool-unruly"]).await;
    let before = stage.call("wander", json!({})).await.model_text();
    assert_ne!(before, "/");
    assert_eq!(stage.call("wander", json!({})).await.model_text(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_belongs_to_the_module_that_mounted_it() {
    for core in BOTH {
        // What only reads runs beside other calls of its session.
        let reads = || ToolSettings {
            permission: ToolPermissionSettings {
                class: Some(EffectClass::Read),
                ..ToolPermissionSettings::default()
            },
            ..ToolSettings::default()
        };
        let names = ["tool-rough.meet", "tool-unruly.sprout"];
        let beside = HashMap::from(names.map(|name| (name.to_owned(), reads())));
        let wanted = Wanted::new(core, &["tool-unruly", "tool-rough"])
            .set(|wanted| wanted.host = Box::new(|builder| builder.settings(beside)));
        let stage = wanted.start().await;
        let place = |name: &str| stage.folder.path().join(name);
        // The other module's call begins before the tool is mounted, and ends before the call that mounts it.
        let meeting = async {
            let met = stage
                .call("meet", json!({ "name": "rough", "count": 2 }))
                .await;
            assert_eq!(met.outcome, Outcome::Succeeded);
            std::fs::write(place("go"), "").unwrap();
        };
        let mounting = async {
            until("the other call", || place("met-rough").exists()).await;
            stage.call("sprout", json!({})).await
        };
        let ((), mounted) = tokio::join!(meeting, mounting);
        assert_eq!(mounted.outcome, Outcome::Succeeded);
        until("its name", || {
            stage.tools().contains(&"grown_unruly".to_owned())
        })
        .await;
        let surface = stage.test.host.surface(&stage.test.session);
        let (entry, _) = surface
            .all()
            .find(|(entry, _)| entry.name() == "grown_unruly")
            .unwrap();
        assert_eq!(entry.id().as_str(), "tool-unruly.grown_unruly", "{core:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_that_leaves_is_noted_and_nothing_more() {
    let wanted = Wanted::new(
        Core::StandIn,
        &["tool-unruly", "tool-rough", "hooks-unruly"],
    )
    .set(|wanted| {
        wanted
            .settings
            .standings
            .insert(ModuleId::new("hooks-unruly"), HookStanding::Observer);
    });
    let stage = wanted.start().await;
    for wish in ["exit", "interrupt", "cancel", "large"] {
        let called = stage.call("nothing", json!({ "wish": wish })).await;
        assert_eq!(called.outcome, Outcome::Succeeded, "{wish}: {called:?}");
    }
}

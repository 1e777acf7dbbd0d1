//! Handlers of Python modules among the host's hooks.

use std::time::Duration;

use serde_json::json;
use toolpost_amplifier::ModuleId;
use toolpost_model::{ErrorClass, HookStanding, Outcome, Source as _};

use super::stage::{BOTH, Core, Stage, Wanted, folder_of, module_at};

#[tokio::test(flavor = "multi_thread")]
async fn handlers_deny_change_ask_and_add() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough", "hooks-watch"]).await;
        let denied = stage
            .call("nothing", json!({ "wish": "deny" }))
            .await
            .error
            .unwrap();
        assert_eq!(denied.class, ErrorClass::HookBlocked);
        assert!(denied.message.contains("not today"), "{denied:?}");
        // Without the change it would sleep for an hour.
        let changed = stage
            .call_within("nap", json!({ "wish": "modify" }), Duration::from_secs(20))
            .await;
        assert_eq!(changed.model_text(), "rested");
        let asked = stage
            .call("nothing", json!({ "wish": "ask" }))
            .await
            .error
            .unwrap();
        assert_eq!(
            asked.class,
            ErrorClass::PermissionDenied,
            "nobody is there to be asked: {asked:?}"
        );
        let told = stage.call("nothing", json!({ "wish": "inject" })).await;
        assert!(told.model_text().contains("mind the gap"), "{told:?}");
        let replaced = stage
            .call("nap", json!({ "seconds": 0, "wish": "replace" }))
            .await;
        assert_eq!(replaced.model_text(), "replaced");
        let failed = stage.call("wrong_type", json!({})).await;
        assert_eq!(failed.outcome, Outcome::Failed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_that_are_registered_when_the_session_is_ready_are_asked() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough", "tool-kit", "hooks-deferred"]).await;
        assert_eq!(
            (stage.modules.failures(), stage.modules.source().problems()),
            (Vec::new(), Vec::new())
        );
        for who in ["a", "b"] {
            let session = stage.session(who).await;
            assert_eq!(
                stage.call_in(&session, "nothing", json!({})).await.outcome,
                Outcome::Succeeded
            );
            let denied = stage
                .call_in(&session, "nothing", json!({ "wish": "deny" }))
                .await
                .error
                .unwrap();
            assert_eq!(denied.class, ErrorClass::HookBlocked, "{core:?} {who}");
            assert!(denied.message.contains("heard late"), "{denied:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_breaks_does_not_allow_and_an_observer_does_not_matter() {
    let standing = |standing| {
        Wanted::new(Core::StandIn, &["tool-rough", "hooks-watch"]).set(|wanted| {
            wanted
                .settings
                .standings
                .insert(ModuleId::new("hooks-watch"), standing);
            wanted.settings.hook_limit = Some(Duration::from_millis(500));
        })
    };
    let stage = standing(HookStanding::Guard).start().await;
    for wish in ["break", "hang"] {
        let error = stage
            .call("nothing", json!({ "wish": wish }))
            .await
            .error
            .unwrap();
        assert_eq!(error.class, ErrorClass::HookBlocked, "{wish}: {error:?}");
        assert!(
            error.message.contains("the hook `watch` failed"),
            "{wish}: {error:?}"
        );
    }
    let garbage = stage
        .call("nothing", json!({ "wish": "garbage" }))
        .await
        .error
        .unwrap();
    assert_eq!(garbage.class, ErrorClass::HookBlocked);
    let stage = standing(HookStanding::Observer).start().await;
    for wish in ["break", "hang", "garbage", "deny", "modify"] {
        let result = stage.call("nothing", json!({ "wish": wish })).await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{wish}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_cannot_be_loaded_lets_nothing_pass() {
    let broken = module_at("hooks-absent", folder_of("no-such-folder"));
    let wanted = |standing: Option<HookStanding>| {
        Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
            wanted.modules.push(broken.clone());
            wanted
                .settings
                .standings
                .extend(standing.map(|it| (ModuleId::new("hooks-absent"), it)));
        })
    };
    let error = wanted(None)
        .start()
        .await
        .call("nothing", json!({}))
        .await
        .error
        .unwrap();
    assert!(
        error.message.contains("`hooks-absent` is not available"),
        "{error:?}"
    );
    let observer = wanted(Some(HookStanding::Observer)).start().await;
    assert_eq!(
        observer.call("nothing", json!({})).await.outcome,
        Outcome::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_cannot_be_mounted_again_lets_nothing_pass_in_further_sessions() {
    let wanted = |standing: Option<HookStanding>| {
        Wanted::new(Core::StandIn, &["tool-rough", "hooks-once"]).set(|wanted| {
            wanted
                .settings
                .standings
                .extend(standing.map(|it| (ModuleId::new("hooks-once"), it)));
        })
    };
    let stage = wanted(None).start().await;
    let first = stage.session("a").await;
    let second = stage.session("b").await;
    assert_eq!(
        stage.call_in(&first, "nothing", json!({})).await.outcome,
        Outcome::Succeeded
    );
    for arguments in [json!({}), json!({ "wish": "deny" })] {
        let error = stage
            .call_in(&second, "nothing", arguments)
            .await
            .error
            .unwrap();
        assert_eq!(error.class, ErrorClass::HookBlocked);
        assert!(error.message.contains("port already in use"), "{error:?}");
    }
    assert_eq!(
        stage.call_in(&first, "nothing", json!({})).await.outcome,
        Outcome::Succeeded
    );
    let stage = wanted(Some(HookStanding::Observer)).start().await;
    for who in ["a", "b"] {
        let session = stage.session(who).await;
        assert_eq!(
            stage.call_in(&session, "nothing", json!({})).await.outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_whose_handler_is_taken_away_lets_nothing_pass() {
    let stage = Stage::new(Core::StandIn, &["tool-slow", "hooks-once"]).await;
    assert_eq!(
        stage.call("slow", json!({})).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(
        stage.call("remove", json!({ "guard": true })).await.outcome,
        Outcome::Succeeded
    );
    let error = stage.call("slow", json!({})).await.error.unwrap();
    assert_eq!(error.class, ErrorClass::HookBlocked);
    assert!(
        error
            .message
            .contains("no longer has a handler for `tool:pre`"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_blocks_costs_its_process_and_not_the_host() {
    let wanted = Wanted::new(Core::StandIn, &["tool-rough", "hooks-watch"]).set(|wanted| {
        wanted
            .settings
            .standings
            .insert(ModuleId::new("hooks-watch"), HookStanding::Observer);
        wanted.settings.hook_limit = Some(Duration::from_millis(300));
    });
    let stage = wanted.start().await;
    let before = stage.call("process", json!({})).await.model_text();
    assert_eq!(
        stage
            .call("nothing", json!({ "wish": "block" }))
            .await
            .outcome,
        Outcome::Succeeded
    );
    // The module's loop stands still, so its process goes, and with it the next call's mount is a new one.
    let given_up = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let now = stage.call("process", json!({})).await;
        if now.outcome == Outcome::Succeeded && now.model_text() != before {
            break;
        }
        assert!(tokio::time::Instant::now() < given_up, "{now:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

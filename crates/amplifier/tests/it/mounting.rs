//! Mounting modules: every form of return, what they share, how they end.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use toolpost_amplifier::{
    Coordinator, HookResult, LoadReason, Module, ModuleId, ModuleKind, MountChange, MountError,
    MountReturn, MountState, Tool, ToolError, ToolResult, mount,
};
use toolpost_model::{BoxFuture, SessionId};

struct Named(&'static str);

impl Tool for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "says its name"
    }

    fn execute(&self, _: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolResult::success(self.0))))
    }
}

fn coordinator() -> Coordinator {
    Coordinator::new(Map::new()).0
}

async fn mounted(
    coordinator: &Coordinator,
    id: &str,
    module: impl Module,
) -> Result<MountState, (LoadReason, String)> {
    let config = json!({"key": "value"}).as_object().unwrap().clone();
    let made = mount(
        coordinator,
        ModuleKind::Tool,
        &ModuleId::new(id),
        &module,
        config,
    )
    .await;
    made.map_err(|failure| (failure.reason, failure.message))
}

#[tokio::test]
async fn a_tool_is_there_once_whether_it_was_mounted_or_only_returned() {
    let both = coordinator();
    mounted(&both, "m", |own: Coordinator, _| async move {
        let tool: Arc<dyn Tool> = Arc::new(Named("a"));
        own.mount(Arc::clone(&tool))?;
        Ok(MountReturn::Tool(tool))
    })
    .await
    .unwrap();
    assert_eq!(both.tool_names(), ["a"]);

    let renamed = coordinator();
    mounted(&renamed, "m", |own: Coordinator, _| async move {
        let tool: Arc<dyn Tool> = Arc::new(Named("a"));
        own.mount_as("b", Arc::clone(&tool))?;
        Ok(MountReturn::Tool(tool))
    })
    .await
    .unwrap();
    assert_eq!(
        renamed.tool_names(),
        ["b"],
        "the name it is mounted under is the one it is called by"
    );

    let returned = coordinator();
    mounted(&returned, "m", |_, _| async {
        Ok(MountReturn::tool(Named("a")))
    })
    .await
    .unwrap();
    assert_eq!(returned.tool_names(), ["a"]);
}

#[tokio::test]
async fn several_tools_and_nothing_returned_is_the_usual_case() {
    let coordinator = coordinator();
    mounted(
        &coordinator,
        "m",
        |own: Coordinator, config: Map<String, Value>| async move {
            assert_eq!(config["key"], "value");
            own.mount(Arc::new(Named("a")))?;
            own.mount(Arc::new(Named("b")))?;
            Ok(MountReturn::Nothing)
        },
    )
    .await
    .unwrap();
    assert_eq!(coordinator.tool_names(), ["a", "b"]);
    assert!(coordinator.unmount("a").is_some() && coordinator.unmount("a").is_none());
    let module = Some(ModuleId::new("m"));
    let expected = [
        MountChange::Mounted {
            name: "a".to_owned(),
            module: module.clone(),
        },
        MountChange::Mounted {
            name: "b".to_owned(),
            module,
        },
        MountChange::Unmounted {
            name: "a".to_owned(),
        },
    ];
    assert_eq!(coordinator.history(), expected);
}

#[tokio::test]
async fn to_return_nothing_and_bring_nothing_is_to_decline() {
    let coordinator = coordinator();
    let state = mounted(&coordinator, "m", |_, _| async { Ok(MountReturn::Nothing) }).await;
    assert_eq!(state, Ok(MountState::Declined));
    let state = mounted(&coordinator, "n", |_, _| async {
        Ok(MountReturn::tool(Named("a")))
    })
    .await;
    assert_eq!(state, Ok(MountState::Mounted));
}

#[tokio::test]
async fn a_cleanup_without_anything_to_clean_up_is_a_failure_that_says_so() {
    let coordinator = coordinator();
    let failed = mounted(&coordinator, "m", |_, _| async {
        Ok(MountReturn::cleanup(|| async { Ok(()) }))
    })
    .await;
    let message = "it mounted no tool".to_owned();
    assert_eq!(failed, Err((LoadReason::ValidationFailed, message)));
}

#[tokio::test]
async fn a_module_that_fails_leaves_nothing_behind() {
    let coordinator = coordinator();
    let cleaned = Arc::new(Mutex::new(0));
    mounted(&coordinator, "good", |_, _| async {
        Ok(MountReturn::tool(Named("kept")))
    })
    .await
    .unwrap();
    let count = Arc::clone(&cleaned);
    let failed = mounted(&coordinator, "bad", move |own: Coordinator, _| {
        let count = Arc::clone(&count);
        async move {
            own.mount(Arc::new(Named("gone")))?;
            own.hooks().register("*", 0, "gone", |_: String, _: Value| {
                std::future::ready(Ok(HookResult::deny("gone")))
            });
            own.register_cleanup(move || async move {
                *count.lock().unwrap() += 1;
                Ok(())
            });
            Err(MountError::other("no key"))
        }
    });
    assert_eq!(
        failed.await.unwrap_err(),
        (LoadReason::Unknown, "no key".to_owned())
    );
    assert_eq!(coordinator.tool_names(), ["kept"]);
    assert!(!coordinator.hooks().concerns("tool:pre"));
    assert_eq!(*cleaned.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_name_is_never_taken_over() {
    let coordinator = coordinator();
    mounted(&coordinator, "one", |_, _| async {
        Ok(MountReturn::tool(Named("a")))
    })
    .await
    .unwrap();
    let failed = mounted(&coordinator, "two", |_, _| async {
        Ok(MountReturn::tool(Named("a")))
    })
    .await;
    let message = "the tool name `a` is taken by the module `one`";
    assert_eq!(
        failed.unwrap_err(),
        (LoadReason::ValidationFailed, message.to_owned())
    );
    assert_eq!(
        coordinator.mount_as(" ", Arc::new(Named("a"))),
        Err(MountError::NameRequired)
    );
}

#[tokio::test]
async fn cleanups_run_backwards_and_none_stops_the_others() {
    let coordinator = coordinator();
    let order = Arc::new(Mutex::new(Vec::new()));
    for (place, fails) in [(1, false), (2, true), (3, false)] {
        let order = Arc::clone(&order);
        coordinator.register_cleanup(move || async move {
            order.lock().unwrap().push(place);
            if fails {
                Err(MountError::other(format!("{place} failed")))
            } else {
                Ok(())
            }
        });
    }
    let returned = Arc::clone(&order);
    mounted(&coordinator, "m", move |own: Coordinator, _| {
        let order = Arc::clone(&returned);
        async move {
            own.mount(Arc::new(Named("a")))?;
            Ok(MountReturn::cleanup(move || async move {
                order.lock().unwrap().push(4);
                Ok(())
            }))
        }
    })
    .await
    .unwrap();
    assert_eq!(coordinator.cleanup().await, [MountError::other("2 failed")]);
    assert_eq!(*order.lock().unwrap(), [4, 3, 2, 1]);
    assert_eq!(
        coordinator.cleanup().await,
        [],
        "what was cleaned up is not cleaned up again"
    );
}

#[tokio::test]
async fn channels_collect_what_there_is() {
    let coordinator = coordinator();
    coordinator.register_events("one", &["one:started", "one:ended"]);
    let nothing = || std::future::ready(Ok(Value::Null));
    coordinator.register_contributor("observability.events", "none", nothing);
    let broken = || std::future::ready(Err(MountError::other("oops")));
    coordinator.register_contributor("observability.events", "broken", broken);
    coordinator.register_contributor("other", "x", || std::future::ready(Ok(json!(1))));
    coordinator.register_events("two", &["two:done"]);
    let (found, failed) = coordinator
        .collect_contributions("observability.events")
        .await;
    assert_eq!(
        found,
        [json!(["one:started", "one:ended"]), json!(["two:done"])]
    );
    assert_eq!(failed, ["`broken`: oops"]);
    assert_eq!(coordinator.channels(), ["observability.events", "other"]);
}

#[test]
fn modules_of_a_session_share_values_objects_and_state() {
    let (coordinator, switch) = Coordinator::new(json!({"m": {}}).as_object().unwrap().clone());
    let one = coordinator.for_module(&ModuleId::new("one"));
    let two = coordinator.for_module(&ModuleId::new("two"));
    one.register_capability("session.working_dir", json!("/w"));
    assert_eq!(two.capability("session.working_dir"), Some(json!("/w")));
    assert_eq!(two.capability("session.spawn"), None);
    one.provide("engine", Arc::new(7_u8));
    assert_eq!(two.provided::<u8>("engine").as_deref(), Some(&7));
    assert!(two.provided::<String>("engine").is_none() && two.capability("engine").is_none());
    one.session_state(|state| state.insert("seen".to_owned(), json!(true)));
    assert_eq!(two.session_state(|state| state["seen"].clone()), true);
    assert_eq!(
        (two.session_id(), two.config()["m"].clone()),
        (None, json!({}))
    );
    coordinator.adopt(SessionId::new("s"));
    assert_eq!(two.session_id().unwrap().as_str(), "s");

    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    one.cancellation()
        .on_cancel(move || *count.lock().unwrap() += 1);
    assert!(!two.cancellation().is_canceled());
    switch.cancel();
    switch.cancel();
    let count = Arc::clone(&told);
    two.cancellation()
        .on_cancel(move || *count.lock().unwrap() += 1);
    assert!(two.cancellation().is_canceled());
    assert_eq!(*told.lock().unwrap(), 2);
}

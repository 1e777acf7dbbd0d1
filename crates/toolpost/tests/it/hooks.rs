//! Hooks that are programs, run as real processes.

mod answers;
mod configured;
mod hostile;

use std::{cell::RefCell, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{Hook, HookScope};
use toolpost_model::{HookEvent, HookStanding, SandboxProfile};
use toolpost_processes::{HookDeclaration, HookParts, Workspace, command_hooks};

use crate::workshop::{PATIENCE, Workshop};

/// A hook before every call, that may take its time.
fn hook(argv: &[&str]) -> HookDeclaration {
    HookDeclaration {
        name: "try".to_owned(),
        events: vec![HookEvent::Before],
        concern: HookScope::default(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        standing: HookStanding::Guard,
        time_limit: Some(Duration::from_secs(50)),
        profile: SandboxProfile::ReadOnly,
        writable: Vec::new(),
        readable: Vec::new(),
        environment: [].into(),
    }
}

/// The same, written for a shell.
fn shell(script: &str) -> HookDeclaration {
    hook(&["bash", "-c", script])
}

fn at(event: HookEvent, hook: HookDeclaration) -> HookDeclaration {
    HookDeclaration {
        events: vec![event],
        ..hook
    }
}

async fn shop(hooks: impl IntoIterator<Item = HookDeclaration>) -> Workshop {
    let made: RefCell<Vec<Arc<dyn Hook>>> = RefCell::default();
    let hooks: Vec<HookDeclaration> = hooks.into_iter().collect();
    Workshop::governed(
        |plan| {
            let parts = HookParts {
                workspace: Arc::new(Workspace::open(&plan.workspace).unwrap()),
                launcher: plan.launcher.clone().unwrap(),
                children: plan.children.clone(),
                hooks,
            };
            *made.borrow_mut() = command_hooks(parts).unwrap();
        },
        |builder| builder.hooks(made.take()),
    )
    .await
}

/// Calls `echo` once, with a hook around it.
async fn echo(hook: HookDeclaration) -> (toolpost_model::ToolResult, Value) {
    let shop = shop([hook]).await;
    let result = shop.call("echo", json!({ "message": "hello" })).await;
    (result, last(&shop).await)
}

/// The last record's body.
async fn last(shop: &Workshop) -> Value {
    serde_json::from_str(&shop.host.records().await.last().unwrap().record.body).unwrap()
}

/// What the hook's failure is recorded as.
async fn failure(hook: HookDeclaration) -> String {
    let (result, body) = tokio::time::timeout(PATIENCE, echo(hook))
        .await
        .expect("it ends");
    assert!(result.is_error, "{result:#?}");
    body["hooks"][0]["error"]
        .as_str()
        .expect("it failed")
        .to_owned()
}

//! Two Amplifier modules in Rust, served over HTTP: the first brings tools for notes, the second observes calls.
#![expect(
    clippy::print_stdout,
    reason = "the address and the token are what this program prints"
)]

use std::{error::Error, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolpost_amplifier::{
    Coordinator, HookFailure, HookResult, MountError, MountReturn, Tool, ToolError, ToolResult,
    events,
};
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_model::{BoxFuture, EffectClass};
use toolpost_serve::{RustModule, RustModules, Server};

/// The notes that both tools share. Each session mounts the module anew, so each session has its own notes.
type Notes = Arc<Mutex<Vec<String>>>;

struct AddNote {
    notes: Notes,
    most: usize,
}

impl Tool for AddNote {
    fn name(&self) -> &str {
        "add_note"
    }

    fn description(&self) -> &str {
        "Keeps a note for the rest of the session"
    }

    fn input_schema(&self) -> Map<String, Value> {
        let text = json!({ "type": "string", "description": "The note" });
        Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), json!({ "text": text })),
            ("required".to_owned(), json!(["text"])),
        ])
    }

    fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let text = input["text"].as_str().unwrap_or_default();
            let mut notes = self.notes.lock();
            if notes.len() == self.most {
                return Ok(ToolResult::failure(format!(
                    "there is room for {} notes",
                    self.most
                )));
            }
            notes.push(text.to_owned());
            Ok(ToolResult::success(json!({ "notes": notes.len() })))
        })
    }

    fn class(&self) -> EffectClass {
        EffectClass::Read
    }
}

struct ListNotes(Notes);

impl Tool for ListNotes {
    fn name(&self) -> &str {
        "list_notes"
    }

    fn description(&self) -> &str {
        "Lists the notes of the session"
    }

    fn execute(&self, _: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let notes = self.0.lock().clone();
        Box::pin(std::future::ready(Ok(ToolResult::success(notes))))
    }

    fn class(&self) -> EffectClass {
        EffectClass::Read
    }
}

/// The module with the tools.
async fn mount_notes(
    coordinator: Coordinator,
    config: Map<String, Value>,
) -> Result<MountReturn, MountError> {
    let most = match config.get("most") {
        None => 100,
        Some(given) => given
            .as_u64()
            .ok_or_else(|| MountError::other(format!("`most` cannot be {given}")))?,
    };
    let notes = Notes::default();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    coordinator.mount(Arc::new(AddNote {
        notes: Arc::clone(&notes),
        most,
    }))?;
    coordinator.mount(Arc::new(ListNotes(notes)))?;
    Ok(MountReturn::Nothing)
}

/// The module with the hook: it trims the text of notes, and refuses notes with a password.
async fn mount_guard(
    coordinator: Coordinator,
    _: Map<String, Value>,
) -> Result<MountReturn, MountError> {
    coordinator.hooks().register(
        events::TOOL_PRE,
        0,
        "note-guard",
        |_: String, data: Value| async move {
            let Some(text) = data["tool_input"]["text"].as_str() else {
                return Ok(HookResult::proceed());
            };
            if text.contains("password") {
                return Ok(HookResult::deny("notes are no place for passwords"));
            }
            let tidy = json!({ "tool_input": { "text": text.trim() } });
            let Value::Object(data) = tidy else {
                return Err(HookFailure::broke("there is no object"));
            };
            Ok(HookResult::modify(data))
        },
    );
    Ok(MountReturn::Nothing)
}

/// Both modules. `most` is the limit of notes in a session.
fn modules(most: u64) -> RustModules {
    let config = Map::from_iter([("most".to_owned(), json!(most))]);
    let notes = RustModule::tool("tool-notes", mount_notes).config(config);
    RustModules::new(
        "notes",
        vec![notes, RustModule::hook("hooks-note-guard", mount_guard)],
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Port 0 takes any free port. Without a data directory the record is in memory and the token is new.
    let http = HttpConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..HttpConfig::default()
    };
    let config = HostConfig {
        http,
        ..HostConfig::default()
    };
    let modules = modules(100);
    let server = Server::builder(config)
        .rust_modules(modules.clone())
        .start()
        .await?;
    if let Some(address) = server.address() {
        println!("url http://{address}");
    }
    println!("token {}", server.token().unwrap_or_default());
    tokio::signal::ctrl_c().await?;
    server.shutdown(Duration::from_secs(5)).await;
    modules.finish().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_testkit::{
        TestHost,
        amplifier::{EventRecorder, MockCoordinator},
    };

    #[tokio::test]
    async fn the_module_mounts_its_tools_and_they_share_their_notes() {
        let coordinator = MockCoordinator::new();
        coordinator
            .mount_module("tool-notes", &super::mount_notes, json!({ "most": 1 }))
            .await
            .unwrap();
        assert_eq!(coordinator.mount_history(), ["add_note", "list_notes"]);
        let result = coordinator
            .call("add_note", json!({ "text": "milk" }))
            .await
            .unwrap();
        assert_eq!(result.text_for_model(), r#"{"notes": 1}"#);
        let result = coordinator
            .call("add_note", json!({ "text": "eggs" }))
            .await
            .unwrap();
        assert_eq!(
            result.error_message().as_deref(),
            Some("there is room for 1 notes")
        );
        let odd = coordinator
            .mount_module("other", &super::mount_notes, json!({ "most": "many" }))
            .await;
        assert_eq!(odd.unwrap_err().message, r#"`most` cannot be "many""#);
    }

    #[tokio::test]
    async fn the_guard_is_heard_by_the_host() {
        let host = TestHost::build(|builder| super::modules(100).join(builder)).await;
        let result = host.call("add_note", json!({ "text": "  milk " })).await;
        assert_eq!(result.structured_content, Some(json!({ "notes": 1 })));
        let result = host
            .call("add_note", json!({ "text": "password: 1234" }))
            .await;
        assert_eq!(result.error.unwrap().class.as_str(), "hook_blocked");
        let result = host.call("list_notes", json!({})).await;
        assert_eq!(result.model_text(), r#"["milk"]"#);
    }

    #[tokio::test]
    async fn handlers_can_be_tried_without_a_host() {
        let coordinator = MockCoordinator::new();
        let events = EventRecorder::default();
        coordinator
            .mount_module("hooks-note-guard", &super::mount_guard, json!(null))
            .await
            .unwrap();
        events.listen(coordinator.hooks());
        let sent = json!({ "tool_input": { "text": " milk " } });
        coordinator.hooks().emit("tool:pre", sent).await;
        assert_eq!(
            events.of("tool:pre"),
            [json!({ "tool_input": { "text": "milk" } })]
        );
    }
}

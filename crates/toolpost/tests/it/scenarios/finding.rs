//! Tools are found before they are loaded.

use serde_json::{Value, json};

use super::Scene;
use crate::exported::text;

fn names(tools: &Value) -> Vec<&str> {
    tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| text(&tool["name"]))
        .collect()
}

/// Scenario 1.
#[test]
fn a_caller_learns_what_exists_without_loading_every_schema() {
    let mut scene = Scene::new("tools: { 'search.*': { deferred: true } }\n");
    let listed = scene.agent.get("/tools").unwrap().json();
    let loaded = names(&listed["tools"]);
    assert!(
        loaded.contains(&"read_file") && !loaded.contains(&"grep"),
        "{loaded:?}"
    );
    let for_model = scene.agent.get("/tools?format=anthropic").unwrap().body;
    assert!(
        !for_model.contains("\"grep\"") && !for_model.contains("file_info"),
        "{for_model}"
    );
    scene.call("one", "echo", &json!({ "message": "x" }));

    let exported = scene.exported();
    let surface = exported.all("tool_surface").next().unwrap();
    let deferred: Vec<&str> = exported
        .all("deferred_tool")
        .map(|line| text(&line["tool_id"]))
        .collect();
    for id in ["search.grep", "search.glob", "files.file_info"] {
        assert!(
            deferred.contains(&id)
                && surface["deferred_tools"]
                    .as_array()
                    .unwrap()
                    .contains(&json!(id))
        );
    }
    for line in exported.all("deferred_tool") {
        assert_eq!(
            (
                text(&line["schema_visibility"]),
                text(&line["loading_state"])
            ),
            ("deferred", "discoverable")
        );
        assert!(
            line.get("model_input_schema").is_none() && line["search_hint"].is_string(),
            "{line}"
        );
    }
}

/// Scenario 2.
#[test]
fn a_deferred_tool_is_found_by_its_name_or_by_a_word_and_can_then_be_called() {
    let mut scene = Scene::prepared("mode: default\n", |home| home.write("a.txt", "x"));
    let info = json!({ "path": "a.txt" });
    for (number, search) in [
        "/tools/file_info",
        "/tools?query=checksum&include_deferred=true",
    ]
    .into_iter()
    .enumerate()
    {
        let session = scene.agent.post("/sessions", "").unwrap().json();
        let session = format!("Toolpost-Session: {}\r\n", text(&session["session_id"]));
        let unseen = scene.send(&format!("unseen-{number}"), &session, "file_info", &info);
        assert_eq!(unseen.status, 409, "{unseen:?}");
        let error = &unseen.json()["error"];
        assert_eq!(error["class"], "schema_not_loaded");
        assert_eq!(error["retry"]["discover_first"], true, "{error}");
        let found = scene.agent.send("GET", search, &session, "").unwrap();
        assert!(
            found.body.contains("\"file_info\"") && found.body.contains("\"properties\""),
            "{found:?}"
        );
        let called = scene
            .send(&format!("seen-{number}"), &session, "file_info", &info)
            .json();
        assert_eq!(called["outcome"], "succeeded", "{called}");
    }
    let nothing = scene
        .agent
        .get("/tools?query=zzzzzz&include_deferred=true")
        .unwrap()
        .json();
    assert_eq!(nothing["tools"], json!([]));

    let exported = scene.exported();
    for kind in ["tool.deferred.discovered", "tool.deferred.loaded"] {
        let told = exported
            .all("event")
            .filter(|event| event["event_type"] == kind);
        let of_tool = told
            .filter(|event| event["subject"] == "files.file_info")
            .count();
        assert_eq!(of_tool, 2, "once in each session: {kind}");
    }
}

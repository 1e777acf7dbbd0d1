//! The record alone tells what ran, for whom, and under which names of others.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Scene, beside};
use crate::exported::{Exported, text};

const SOURCES: &str = r#"
rules: [allow demo.*, allow tool-desk.*]
mcp: { servers: { demo: { command: python3, args: [./server.py], readable: [./tools.json] } } }
commands:
  count_words:
    description: Counts the words of a file.
    argv: [wc, -w, "{path}"]
    parameters: { path: { type: path } }
    class: read
include: [plan.yaml]
amplifier: { core: stand_in, install: offline, python: 'PYTHON' }
"#;

/// A host with tools of an MCP server, a module and a command beside its own.
fn with_sources() -> Scene {
    Scene::prepared(SOURCES, |home| {
        let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(
            crates.join("tests/mcp/server.py"),
            beside(home, "server.py"),
        )
        .unwrap();
        let tool = json!({ "name": "get-Weather", "description": "Tells.", "inputSchema": { "type": "object" } });
        std::fs::write(beside(home, "tools.json"), json!([tool]).to_string()).unwrap();
        let module = crates.join("../modules/tests/modules/tool-desk");
        let plan = json!({ "tools": [{ "module": "tool-desk", "source": module }] });
        std::fs::write(beside(home, "plan.yaml"), plan.to_string()).unwrap();
        home.write("a.txt", "one two");
    })
}

fn declaration<'a>(exported: &'a Exported, call: &Value) -> &'a Value {
    exported
        .all("tool_declaration")
        .find(|line| line["tool_id"] == call["tool_id"])
        .unwrap()
}

/// Scenario 15.
#[test]
fn the_record_tells_which_tool_ran_under_which_id_and_why_it_is_trusted() {
    let mut scene = with_sources();
    scene.call("toolu_01A", "read_file", &json!({ "path": "a.txt" }));
    scene.call("call_9pWn", "demo__get-Weather", &json!({}));
    scene.call("call_cmd", "count_words", &json!({ "path": "a.txt" }));
    scene.served.stop();

    // Read without a host: from the journal alone.
    let text_of = |words: &[&str]| {
        super::Ran::from(super::command(&scene.home, words).output().unwrap())
            .expect(0)
            .stdout
    };
    let exported = Exported::read(&text_of(&["journal", "export", "--format", "agent-tool"]));
    for (id, tool, source, vouched_by) in [
        ("toolu_01A", "files.read_file", "native", "host_code"),
        ("call_9pWn", "demo.get-Weather", "demo", "claimed"),
        ("call_cmd", "commands.count_words", "native", "host_code"),
    ] {
        let call = exported.call(id);
        assert_eq!(
            (text(&call["tool_id"]), text(&call["actor_ref"])),
            (tool, "agent/agent")
        );
        let declared = declaration(&exported, call);
        assert_eq!(
            (text(&declared["source"]), text(&declared["vouched_by"])),
            (source, vouched_by),
            "{declared:#}"
        );
        let surface = exported
            .all("tool_surface")
            .find(|line| line["surface_id"] == call["surface_id"])
            .unwrap();
        assert!(
            surface["loaded_tools"]
                .as_array()
                .unwrap()
                .contains(&call["tool_id"]),
            "the caller could see it"
        );
        let profile = &declared["permission_profile_ref"];
        assert!(
            exported
                .all("permission_profile")
                .any(|line| line["permission_profile_id"] == *profile)
        );
        let decision = exported.about(id, "permission_decision")[0];
        assert!(decision["behavior"] == "allow" && !text(&decision["reason"]["text"]).is_empty());
        assert_eq!(
            exported.result(id)["outcome"],
            "succeeded",
            "{:#}",
            exported.result(id)
        );
    }
    let verified: Value = serde_json::from_str(&text_of(&["journal", "verify", "--json"])).unwrap();
    assert_eq!(verified["clean"], true, "{verified}");
}

/// Scenario 17, for MCP, function calls of model providers, commands and modules.
#[test]
fn tools_and_calls_keep_the_ids_of_where_they_come_from() {
    let mut scene = with_sources();
    // As providers of models name calls of functions.
    let providers = ["call_abc123", "toolu_01XYZ", "function-call-42"];
    for id in providers {
        scene.call(id, "read_file", &json!({ "path": "a.txt" }));
    }
    scene.call("of-server", "demo__get-Weather", &json!({}));
    scene.call("of-command", "count_words", &json!({ "path": "a.txt" }));
    scene.call("of-module", "read_note", &json!({ "file_path": "a.txt" }));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "read_file", "arguments": { "path": "a.txt" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": "rpc-7", "method": "tools/call", "params": params });
    let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                   Mcp-Method: tools/call\r\nMcp-Name: read_file\r\n";
    assert_eq!(
        scene
            .agent
            .send("POST", "/mcp", headers, &body.to_string())
            .unwrap()
            .status,
        200
    );

    let exported = scene.exported();
    for id in providers.into_iter().chain(["rpc-7"]) {
        assert_eq!(exported.call(id)["tool_id"], "files.read_file");
    }
    let mapping = |id: &str| {
        assert_eq!(
            exported.result(id)["outcome"],
            "succeeded",
            "{:#}",
            exported.result(id)
        );
        let mappings = declaration(&exported, exported.call(id))["external_mappings"].clone();
        assert_eq!(mappings.as_array().map(Vec::len), Some(1), "{mappings}");
        mappings[0].clone()
    };
    let server = mapping("of-server");
    assert_eq!(
        (text(&server["system"]), text(&server["native_id"])),
        ("mcp", "get-Weather"),
        "{server}"
    );
    let cli = json!({ "system": "cli", "native_id": "wc", "template": ["-w", "{path}"] });
    assert_eq!(mapping("of-command"), cli);
    let module = mapping("of-module");
    assert_eq!(
        (text(&module["system"]), text(&module["native_id"])),
        ("amplifier", "read_note"),
        "{module}"
    );
}

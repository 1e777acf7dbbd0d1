//! Results that are large, empty, missing, or more than a text.

use serde_json::{Value, json};

use super::{Scene, command};
use crate::{exported::text, served::Served};

/// Scenario 12.
#[test]
fn a_large_result_shows_a_part_and_names_the_whole() {
    let whole: String = (0..5_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let mut scene = Scene::new("limits: { inline_chars: 4000 }\n");
    let called = scene.call("large", "echo", &json!({ "message": whole }));
    assert_eq!(called["disposition"], "preview");
    let shown = text(&called["content"][0]["text"]);
    assert!(
        shown.len() < 6_000 && shown.starts_with("line 0\n") && shown.ends_with("line 4999\n"),
        "{shown}"
    );
    let artifact = text(&called["artifacts"][0]["id"]).to_owned();
    let kept = scene.agent.get(&format!("/artifacts/{artifact}")).unwrap();
    assert_eq!(kept.body, whole);

    let exported = scene.exported();
    let persisted = exported.about("large", "result_persistence")[0];
    assert_eq!(
        (
            text(&persisted["strategy"]),
            &persisted["persisted_ref"]["id"]
        ),
        ("preview_and_persist", &json!(artifact))
    );
    assert_eq!(persisted["original_size_bytes"], whole.len());
    assert!(
        persisted["preview_size_bytes"].as_u64().unwrap() < 6_000,
        "{persisted}"
    );
    assert_eq!(exported.result("large")["artifact_refs"][0]["id"], artifact);
    assert!(exported.events("large").contains(&"tool.result.persisted"));
}

/// Scenario 13.
#[test]
fn a_call_that_found_nothing_differs_from_one_whose_result_is_missing() {
    let mut scene = Scene::prepared("rules: [allow shell]\n", |home| {
        std::fs::create_dir(home.workspace().join("hollow")).unwrap();
        home.write("empty.txt", "");
    });
    for (id, tool, arguments) in [
        ("folder", "list_directory", json!({ "path": "hollow" })),
        ("file", "read_file", json!({ "path": "empty.txt" })),
        ("match", "grep", json!({ "pattern": "needle" })),
        ("command", "shell", json!({ "command": "true" })),
    ] {
        let called = scene.call(id, tool, &arguments);
        assert_eq!(
            (text(&called["outcome"]), text(&called["disposition"])),
            ("succeeded", "empty"),
            "{id}: {called}"
        );
    }
    let id = scene.begin(
        "missing",
        "shell",
        &json!({ "command": "sleep 600; touch never.txt" }),
    );
    scene.wait(&id, |told| told["stage"] == "execute");
    let running = scene.exported();
    assert!(
        running.about("missing", "result").is_empty(),
        "there is none while it runs"
    );
    scene.served.kill();
    scene.served = Served::spawn(&mut command(
        &scene.home,
        &["serve", "--http", "127.0.0.1:0"],
    ));
    scene.agent = scene.served.connect(&scene.home);
    scene.ended(&id);

    let exported = scene.exported();
    for id in ["folder", "file", "match", "command"] {
        let result = exported.result(id);
        assert_eq!(
            (&result["is_empty"], &result["is_synthetic"]),
            (&json!(true), &json!(false)),
            "{id}"
        );
        assert!(
            !text(&result["model_facing_content"][0]["text"]).is_empty(),
            "{result:#}"
        );
    }
    let missing = exported.result("missing");
    assert_eq!(
        (&missing["is_empty"], &missing["is_synthetic"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (
            text(&missing["outcome"]),
            &missing["error"]["retry"]["safe"]
        ),
        ("unknown", &json!(false))
    );
}

/// Scenario 14.
#[test]
fn a_result_can_be_a_reference_to_what_the_call_made() {
    let mut scene = Scene::new("tools: { echo: { keep: ref_only } }\n");
    let called = scene.call("made", "echo", &json!({ "message": "kept and not shown" }));
    assert_eq!(called["disposition"], "ref_only", "{called}");
    let made = called["artifacts"][0].clone();
    let read = scene.call("read", "read_result", &json!({ "ref": made["id"] }));
    assert!(
        read["content"].to_string().contains("kept and not shown"),
        "{read}"
    );

    let exported = scene.exported();
    for line in [exported.call("made"), exported.result("made")] {
        assert_eq!(line["artifact_refs"], json!([made]), "{line:#}");
    }
    for field in ["id", "name", "media_type", "size", "digest"] {
        assert_ne!(made[field], Value::Null, "{made}");
    }
    assert_eq!(
        exported.about("made", "result_persistence")[0]["persisted_ref"],
        made
    );
    assert_eq!(
        exported.call("read")["model_input"]["ref"],
        made["id"],
        "the call that reads it names it"
    );
}

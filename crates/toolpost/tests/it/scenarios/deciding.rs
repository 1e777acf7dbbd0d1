//! Hooks, people and policies decide, and each leaves its own trace.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Scene, beside};
use crate::{
    authorities::stub::{Manner, StubEndpoint},
    exported::text,
};

/// Scenario 6.
#[test]
fn the_input_that_was_sent_seen_decided_on_and_run_stay_apart() {
    let config = "tools: { write_file: { defaults: { create_directories: true } } }\n\
                  hooks: [{ name: rename, event: before, tools: write_file, command: [sh, ./rename.sh], timeout: 50s }]\n";
    let mut scene = Scene::prepared(config, |home| {
        let renamed =
            r#"{"arguments": {"path": "hook.txt", "content": "x", "create_directories": true}}"#;
        std::fs::write(
            beside(home, "rename.sh"),
            format!("cat > /dev/null; echo '{renamed}'"),
        )
        .unwrap();
    });
    let id = scene.begin(
        "edit",
        "write_file",
        &json!({ "path": "model.txt", "content": "x" }),
    );
    let edited = json!({ "path": "person.txt", "content": "x", "create_directories": true });
    scene.answer(&id, &json!({ "decision": "allow", "arguments": edited }));
    assert_eq!(scene.ended(&id)["outcome"], "succeeded");
    assert_eq!(scene.home.try_read("person.txt").as_deref(), Some("x"));

    let exported = scene.exported();
    let call = exported.call("edit");
    let refs = ["model", "observable", "permission", "call"]
        .map(|name| &call[format!("{name}_input_ref")]);
    assert_eq!(refs.iter().collect::<HashSet<_>>().len(), 4, "{refs:?}");
    let seen = refs.map(|one| {
        let input = exported.input(one);
        (
            text(&input["path"]),
            input["create_directories"].is_boolean(),
        )
    });
    assert_eq!(
        seen,
        [
            ("model.txt", false),
            ("model.txt", true),
            ("hook.txt", true),
            ("person.txt", true)
        ]
    );
    let shown = scene.run(&["journal", "show", &id]).expect(0).stdout;
    for name in ["model.txt", "hook.txt", "person.txt"] {
        assert!(shown.contains(name), "{name}\n{shown}");
    }
}

/// Scenario 7.
#[test]
fn a_risky_call_waits_for_a_yes_and_goes_on_as_the_same_invocation() {
    let mut scene = Scene::new("mode: default\n");
    let id = scene.begin("risky", "shell", &json!({ "command": "touch made.txt" }));
    scene.wait(&id, |told| told["stage"] == "await_approval");
    assert_eq!(
        scene.home.try_read("made.txt"),
        None,
        "nothing runs before the answer"
    );
    scene.answer(&id, &json!({ "decision": "allow" }));
    let result = scene.ended(&id);
    assert_eq!(
        (text(&result["outcome"]), text(&result["invocation_id"])),
        ("succeeded", id.as_str())
    );
    assert_eq!(scene.home.try_read("made.txt").as_deref(), Some(""));

    let exported = scene.exported();
    let call = exported.call("risky");
    assert_eq!(call["invocation_id"], id.as_str());
    let passed: Vec<&str> = call["status_transitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["status"]))
        .collect();
    let place = |status: &str| {
        passed
            .iter()
            .position(|one| *one == status)
            .unwrap_or_else(|| panic!("{passed:?}"))
    };
    assert!(
        place("awaiting_approval") < place("running") && place("running") < place("succeeded"),
        "{passed:?}"
    );
    assert_eq!(
        exported.decisions("risky"),
        [("ask", "classifier"), ("allow", "permission_prompt_tool")]
    );
    assert_eq!(exported.about("risky", "result").len(), 1);
}

/// Scenario 8.
#[test]
fn a_denied_call_and_a_refused_one_each_end_in_one_error_result() {
    let mut scene = Scene::new("rules: ['deny write_file(kept/**)']\n");
    let denied = scene.send(
        "denied",
        "",
        "write_file",
        &json!({ "path": "kept/a.txt", "content": "x" }),
    );
    assert_eq!(
        (denied.status, text(&denied.json()["error"]["class"])),
        (403, "permission_denied")
    );
    let id = scene.begin(
        "refused",
        "write_file",
        &json!({ "path": "a.txt", "content": "x" }),
    );
    scene.answer(
        &id,
        &json!({ "decision": "deny", "feedback": "not on a Friday" }),
    );
    let refused = scene.ended(&id);
    assert_eq!(refused["error"]["class"], "approval_rejected");
    assert!(
        text(&refused["error"]["message"]).contains("not on a Friday"),
        "{refused}"
    );

    let exported = scene.exported();
    for (id, status) in [("denied", "denied"), ("refused", "rejected")] {
        let result = exported.result(id);
        assert_eq!(
            (text(&result["status"]), &result["is_error"]),
            (status, &json!(true))
        );
        assert!(!text(&result["model_facing_content"][0]["text"]).is_empty());
        let retry = &result["error"]["retry"];
        assert_eq!(
            (&retry["safe"], retry["needs_approval"] == true),
            (&json!(true), id == "refused"),
            "{retry}"
        );
        assert!(
            !exported.events(id).contains(&"tool.invocation.started"),
            "{id}"
        );
        assert_eq!(exported.call(id)["call_input_ref"], Value::Null);
    }
}

/// Scenario 16.
#[test]
fn a_decision_explains_why_it_allows_denies_hands_on_or_waives_a_question() {
    let endpoint = StubEndpoint::new(Manner::Answers(
        r#"{"result": {"allow": true, "reason": "the ticket is open"}}"#,
    ));
    let config = format!(
        "rules:\n  - {{ rule: 'allow write_file(open/**)', reason: scratch space }}\n  \
         - {{ rule: 'deny write_file(kept/**)', reason: generated }}\n  - delegate opa write_file(handed/**)\n\
         tools: {{ write_file: {{ defaults: {{ create_directories: true }} }} }}\n\
         authorities: {{ opa: {{ url: '{}' }} }}\n",
        endpoint.url
    );
    let mut scene = Scene::new(&config);
    let write = |path: &str| json!({ "path": path, "content": "x" });
    scene.call("allowed", "write_file", &write("open/a.txt"));
    scene.call("denied", "write_file", &write("kept/a.txt"));
    scene.call("handed", "write_file", &write("handed/a.txt"));
    let id = scene.begin("asked", "write_file", &write("asked.txt"));
    scene.answer(&id, &json!({ "decision": "allow", "scope": "session" }));
    scene.ended(&id);
    scene.call("waived", "write_file", &write("asked.txt"));

    let exported = scene.exported();
    for (id, decisions, reason) in [
        ("allowed", &[("allow", "rule")][..], "scratch space"),
        ("denied", &[("deny", "rule")], "generated"),
        (
            "handed",
            &[("passthrough", "rule"), ("allow", "policy")],
            "the ticket is open",
        ),
        ("waived", &[("allow", "rule")], "allow files.write_file("),
    ] {
        assert_eq!(exported.decisions(id), decisions, "{id}");
        let last = *exported.about(id, "permission_decision").last().unwrap();
        assert!(
            text(&last["reason"]["text"]).contains(reason),
            "{id}: {last:#}"
        );
        assert!(
            !last["rule_refs"].as_array().unwrap().is_empty(),
            "{id}: {last:#}"
        );
    }
    let waived = exported.about("waived", "permission_decision");
    assert_eq!(waived[0]["source"], "session", "{:#}", waived[0]);
    let explained = scene
        .run(&[
            "explain",
            "write_file",
            "path=kept/a.txt",
            "content=x",
            "--json",
        ])
        .json();
    assert_eq!(
        explained["decision"]["reason"]["rule"]["rule"], "deny write_file(kept/**)",
        "{explained:#}"
    );
    assert!(
        !explained["would_change"].as_array().unwrap().is_empty(),
        "{explained:#}"
    );
}

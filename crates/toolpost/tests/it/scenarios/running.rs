//! Calls run together, in order, or not at all, and tell how far they are.

use serde_json::{Value, json};

use super::Scene;
use crate::exported::text;

/// Scenario 9.
#[test]
fn progress_comes_in_order_and_cancel_is_promised_only_where_it_works() {
    let config = "tools: { file_info: { deferred: false } }\nrules: [allow shell]\n";
    let mut scene = Scene::prepared(config, |home| {
        let file = std::fs::File::create(home.workspace().join("big.bin")).unwrap();
        file.set_len(64 << 20).unwrap();
    });
    let streamed = scene.send(
        "hash",
        "Accept: text/event-stream\r\n",
        "file_info?timeout=60",
        &json!({ "path": "big.bin" }),
    );
    let events: Vec<Value> = streamed
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    assert!(
        numbers.len() > 3 && numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
    let percents: Vec<f64> = events
        .iter()
        .filter_map(|event| event["percent"].as_f64())
        .collect();
    assert!(!percents.is_empty() && percents.is_sorted(), "{percents:?}");

    let id = scene.begin("stopped", "shell", &json!({ "command": "sleep 600" }));
    scene.wait(&id, |told| told["stage"] == "execute");
    let canceled = scene
        .agent
        .post(&format!("/invocations/{id}/cancel"), "")
        .unwrap()
        .json();
    assert_eq!(canceled["cancel"], "requested");
    assert_eq!(scene.ended(&id)["outcome"], "canceled");
    let again = scene
        .agent
        .post(&format!("/invocations/{id}/cancel"), "")
        .unwrap()
        .json();
    assert_eq!(again["cancel"], "already_ended", "{again}");

    let exported = scene.exported();
    let told: Vec<u64> = exported
        .about("hash", "progress")
        .iter()
        .map(|line| line["sequence"].as_u64().unwrap())
        .collect();
    assert!(!told.is_empty() && told.is_sorted(), "{told:?}");
    let facts = &exported.call("stopped")["cancellation"];
    assert_eq!(
        (text(&facts["requested_by"]), text(&facts["status"])),
        ("agent/agent", "canceled")
    );
    assert!(
        text(&facts["requested_at"]) <= text(&facts["acknowledged_at"]),
        "{facts}"
    );
    for profile in exported.all("execution_profile") {
        let supports = profile["supports_cancel"].as_bool().unwrap();
        assert_eq!(supports, profile["cancel"] != "unsupported", "{profile}");
    }
    let shell = exported
        .all("tool_declaration")
        .find(|line| line["tool_id"] == "shell.shell")
        .unwrap();
    let profile = exported
        .all("execution_profile")
        .find(|line| line["execution_profile_id"] == shell["execution_profile_ref"])
        .unwrap();
    assert_eq!(profile["supports_cancel"], true);
}

/// Scenario 10.
#[test]
fn reads_run_together_and_writes_of_one_file_one_after_another() {
    // Each of the two ends only while the other one runs.
    let config = "mode: edits\ncommands:\n  \
        give: { description: Gives., argv: [sh, -c, 'echo word > pipe'], class: read, profile: workspace-write }\n  \
        take: { description: Takes., argv: [cat, pipe], class: read, profile: workspace-write }\n";
    let mut scene = Scene::prepared(config, |home| {
        let made = std::process::Command::new("mkfifo")
            .arg(home.workspace().join("pipe"))
            .status()
            .unwrap();
        assert!(made.success());
    });
    let give = scene.begin("give", "give", &json!({}));
    let taken = scene.call("take", "take", &json!({}));
    assert_eq!(text(&taken["content"][0]["text"]), "word\n", "{taken}");
    assert_eq!(scene.ended(&give)["outcome"], "succeeded");

    let writes: Vec<String> = (0..8)
        .map(|number| {
            let content = format!("{number}\n").repeat(20_000);
            scene.begin(
                &format!("write-{number}"),
                "write_file",
                &json!({ "path": "a.txt", "content": content }),
            )
        })
        .collect();
    for id in &writes {
        assert_eq!(scene.ended(id)["outcome"], "succeeded");
    }
    assert_eq!(
        scene.home.read("a.txt"),
        "7\n".repeat(20_000),
        "the last one to come is the last to write"
    );
    let exported = scene.exported();
    let digests: Vec<(Value, Value)> = (0..8)
        .map(|number| {
            let result = exported.result(&format!("write-{number}"));
            let told = &result["structured_content"];
            (told["previous_sha256"].clone(), told["sha256"].clone())
        })
        .collect();
    for pair in digests.windows(2) {
        assert_eq!(
            pair[0].1, pair[1].0,
            "each one found what the one before it wrote"
        );
    }
}

/// Scenario 11.
#[test]
fn a_failed_call_gives_up_those_that_depend_on_it_with_results_of_the_host() {
    let mut scene = Scene::prepared("mode: default\n", |home| home.write("a.txt", "x"));
    let place = |index: u32, depends_on: &str| {
        let place = format!(
            r#"{{"id":"turn","index":{index},"depends_on":[{depends_on}],"on_failure":"cancel_dependent"}}"#
        );
        place
            .replace('"', "%22")
            .replace('{', "%7B")
            .replace('}', "%7D")
    };
    let read =
        |index: u32, depends_on: &str| format!("read_file?batch={}", place(index, depends_on));
    let there = json!({ "path": "a.txt" });
    scene.call("broken", &read(0, ""), &json!({ "path": "missing.txt" }));
    scene.call("dependent", &read(1, "0"), &there);
    scene.call("further", &read(2, "1"), &there);
    scene.call("apart", &read(3, ""), &there);

    let exported = scene.exported();
    assert_eq!(
        exported.result("broken")["error"]["error_class"],
        "execution_failed"
    );
    for id in ["dependent", "further"] {
        let result = exported.result(id);
        assert_eq!(
            (text(&result["status"]), &result["is_synthetic"]),
            ("synthetic_error", &json!(true)),
            "{id}"
        );
        assert_eq!(result["error"]["error_class"], "sibling_canceled");
        assert!(
            result["error"]["details"]["abort_reason"].is_string(),
            "{result:#}"
        );
        assert!(
            !exported.events(id).contains(&"tool.invocation.started"),
            "{id}"
        );
    }
    assert_eq!(exported.result("apart")["outcome"], "succeeded");
    let policy = &exported.call("dependent")["scheduler_policy_ref"];
    let policy = exported
        .all("scheduler_policy")
        .find(|line| line["scheduler_policy_id"] == *policy)
        .unwrap();
    assert_eq!(policy["sibling_failure_policy"], "cancel_dependent");
}

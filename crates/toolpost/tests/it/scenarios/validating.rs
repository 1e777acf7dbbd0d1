//! A wrong call is refused before anything happens, and its secrets reach nothing but the tool.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::Scene;
use crate::exported::text;

/// The stages that an exported call went through.
fn stages(call: &Value) -> Vec<&str> {
    call["status_transitions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["stage"].as_str())
        .collect()
}

/// Scenario 3.
#[test]
fn arguments_are_held_against_the_schema_before_anything_runs() {
    let mut scene = Scene::new("mode: bypass\n");
    for (id, arguments) in [
        ("type", json!({ "path": "a.txt", "content": 7 })),
        ("missing", json!({ "path": "a.txt" })),
        (
            "extra",
            json!({ "path": "a.txt", "content": "x", "contnet": "y" }),
        ),
    ] {
        let refused = scene.send(id, "", "write_file", &arguments);
        assert_eq!(refused.status, 422, "{refused:?}");
        let error = &refused.json()["error"];
        assert_eq!(
            (text(&error["class"]), &error["retry"]["change_arguments"]),
            ("invalid_arguments", &json!(true))
        );
        assert!(
            !error["details"]["violations"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{error}"
        );
    }
    let no_object = scene
        .agent
        .send(
            "POST",
            "/tools/write_file/call",
            "Toolpost-Call-Id: list\r\n",
            "[]",
        )
        .unwrap();
    assert_eq!(
        no_object.json()["error"]["class"],
        "schema_validation_failed"
    );
    assert_eq!(scene.home.try_read("a.txt"), None);

    let exported = scene.exported();
    for id in ["type", "missing", "extra", "list"] {
        let events = exported.events(id);
        assert!(
            events.contains(&"tool.invocation.validation_failed"),
            "{events:?}"
        );
        assert!(!events.contains(&"tool.invocation.started"), "{events:?}");
        let told = stages(exported.call(id));
        assert!(
            !told.contains(&"decide") && !told.contains(&"execute"),
            "{told:?}"
        );
        assert!(exported.result(id)["is_error"] == true && exported.decisions(id).is_empty());
    }
}

/// Scenario 4.
#[test]
fn dangerous_values_are_refused_before_files_or_the_network_are_touched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut scene = Scene::prepared("mode: bypass\n", |home| {
        std::os::unix::fs::symlink("/etc", home.workspace().join("link")).unwrap();
    });
    for (id, tool, arguments, class) in [
        (
            "above",
            "read_file",
            json!({ "path": "../home/secret" }),
            "sandbox_violation",
        ),
        (
            "absolute",
            "read_file",
            json!({ "path": "/etc/passwd" }),
            "sandbox_violation",
        ),
        (
            "write",
            "write_file",
            json!({ "path": "../made", "content": "x" }),
            "sandbox_violation",
        ),
        (
            "nul",
            "read_file",
            json!({ "path": "a\u{0}b" }),
            "invalid_arguments",
        ),
        (
            "private",
            "http_request",
            json!({ "url": url }),
            "sandbox_violation",
        ),
        (
            "scheme",
            "http_request",
            json!({ "url": "file:///etc/passwd" }),
            "invalid_arguments",
        ),
    ] {
        let refused = scene.call(id, tool, &arguments);
        assert_eq!(text(&refused["error"]["class"]), class, "{id}: {refused}");
    }
    assert!(!scene.home.workspace().with_file_name("made").exists());
    assert!(listener.accept().is_err(), "nothing connected");
    let exported = scene.exported();
    for id in ["above", "absolute", "write", "nul", "private", "scheme"] {
        assert!(!stages(exported.call(id)).contains(&"execute"), "{id}");
    }
    // What only the file system can tell is refused there, and shows nothing.
    let link = scene.call("link", "read_file", &json!({ "path": "link/passwd" }));
    assert_eq!(link["error"]["class"], "sandbox_violation", "{link}");
    assert!(!link.to_string().contains("root:"), "{link}");
}

/// Scenario 5.
#[test]
fn sensitive_arguments_stay_out_of_everything_but_the_tool() {
    const PASSWORD: &str = "correct-horse-battery";
    let config = "commands:\n  login:\n    description: Logs in.\n    argv: [sh, -c, 'echo in as $1', login, '{password}']\n    \
                  parameters: { password: { type: string } }\n    class: read\n";
    let mut scene = Scene::new(config);
    let streamed = scene.send(
        "login",
        "Accept: text/event-stream\r\n",
        "login",
        &json!({ "password": PASSWORD }),
    );
    assert!(
        streamed.body.contains("in as [redacted:argument]"),
        "the tool got it: {streamed:?}"
    );
    assert!(!streamed.body.contains(PASSWORD), "{streamed:?}");
    let exported = scene.exported();
    assert_eq!(
        exported.call("login")["model_input"]["password"],
        "[redacted:argument]"
    );
    let everything: String = exported.lines.iter().map(Value::to_string).collect();
    assert!(!everything.contains(PASSWORD));
    let (_, log) = scene.served.stop();
    assert!(!log.contains(PASSWORD), "{log}");
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(scene.home.data_dir().join(file)).unwrap_or_default();
        assert!(
            !bytes
                .windows(PASSWORD.len())
                .any(|part| part == PASSWORD.as_bytes()),
            "{file}"
        );
    }
}

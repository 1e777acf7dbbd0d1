//! One host, every way in, and then a look at everything.

use std::thread;

use serde_json::{Value, json};

use super::{BY_SHAPE, IN_ENVIRONMENT, IN_SENSITIVE_FIELD, KEY_LINE, Laid, check, post, streamed};

fn laid() -> Laid {
    let config = format!(
        "mode: bypass\n\
         rules:\n  - {{ rule: 'ask shell(logger *)', reason: somebody looks }}\n\
         a2e: {{ audit: {{ path: audit.jsonl }} }}\n\
         commands:\n  login:\n    description: 'Logs in, for instance with {IN_ENVIRONMENT} or {BY_SHAPE}'\n\
         \x20   argv: [sh, -c, 'echo got \"$1\"; echo \"$1\" >&2; exit 3', sh, '{{pin}}']\n\
         \x20   parameters: {{ pin: {{ type: string, description: 'such as {BY_SHAPE}', required: true }} }}\n\
         tools:\n  login: {{ sensitive: [/pin] }}\n  {BY_SHAPE}: {{ hidden: true }}\n"
    );
    let laid = Laid::new(&config);
    laid.home.write(
        "notes.txt",
        &format!("the key is {IN_ENVIRONMENT}\nand {BY_SHAPE}\n"),
    );
    let key = format!("-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----\n");
    laid.home.write("key.pem", &key);
    laid
}

/// Commands whose output holds what their text does not.
fn commands() -> Vec<String> {
    let (head, tail) = IN_ENVIRONMENT.split_at(14);
    let (shape_head, shape_tail) = BY_SHAPE.split_at(20);
    vec![
        format!("printf %s%s '{head}' '{tail}'"),
        // Written in two pieces, with time in between.
        format!("printf %s '{head}'; sleep 0.4; printf '%s\\n' '{tail}'"),
        format!(
            "printf %s '{shape_head}'; sleep 0.4; printf '%s\\n' '{shape_tail}' >&2; printf '%s\\n' '{shape_tail}'"
        ),
        format!("printf %s%s '{head}' '{tail}' | base64 -w0"),
        format!("printf x%s%s '{head}' '{tail}' | base64 -w0"),
        format!("printf xy%s%s '{head}' '{tail}' | base64 -w0"),
        format!("printf %s%s '{head}' '{tail}' | od -An -tx1 | tr -d ' \\n'"),
        format!("cat key.pem notes.txt; echo {BY_SHAPE} >&2; exit 4"),
    ]
}

/// Tools and arguments by which a sentinel comes in: in arguments, files, errors and names.
fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        (
            "echo",
            json!({ "message": format!("say {IN_ENVIRONMENT} and {BY_SHAPE}") }),
        ),
        ("read_file", json!({ "path": "notes.txt" })),
        ("read_file", json!({ "path": "key.pem" })),
        (
            "read_file",
            json!({ "path": format!("missing/{BY_SHAPE}.txt") }),
        ),
        ("grep", json!({ "pattern": "the key|and|BEGIN|c2Vu" })),
        ("grep", json!({ "pattern": format!("({IN_ENVIRONMENT}") })),
        (
            "write_file",
            json!({ "path": "copy.txt", "content": format!("{IN_ENVIRONMENT} {BY_SHAPE}") }),
        ),
        ("login", json!({ "pin": IN_SENSITIVE_FIELD })),
        ("login", json!({ "pin": [IN_SENSITIVE_FIELD] })),
        (
            "http_request",
            json!({ "url": format!("http://user:{BY_SHAPE}@127.0.0.1:9/{BY_SHAPE}") }),
        ),
        (BY_SHAPE, json!({ "x": IN_SENSITIVE_FIELD })),
        (
            "run_code",
            json!({ "code": format!("print('{BY_SHAPE}'); raise ValueError('{IN_ENVIRONMENT}')") }),
        ),
    ];
    calls.extend(
        commands()
            .into_iter()
            .map(|command| ("shell", json!({ "command": command }))),
    );
    calls
}

#[test]
fn a_secret_is_in_nothing_that_is_written_or_sent() {
    let laid = laid();
    let served = laid.serve();
    check("the banner", served.banner.as_bytes());
    let mut http = served.connect(&laid.home);
    let mut ids = Vec::new();
    for (tool, arguments) in calls() {
        let result = post(&mut http, &format!("/tools/{tool}/call"), &arguments);
        ids.extend(result["invocation_id"].as_str().map(str::to_owned));
        post(&mut http, &format!("/tools/{tool}/explain"), &arguments);
        let events = streamed(
            &served,
            &laid.home,
            &format!("/tools/{tool}/call"),
            &arguments,
        );
        assert!(events.contains("invocation_id"), "{events}");
    }
    for path in [
        "/tools?hidden=true",
        "/tools/login",
        "/openapi.json",
        "/approvals",
        "/rules",
        "/host",
    ] {
        check(
            path,
            served.socket(&laid.home).get(path).unwrap().body.as_bytes(),
        );
    }
    for path in [
        format!("/invocations/{BY_SHAPE}"),
        format!("/sessions/{BY_SHAPE}"),
        format!("/tools/{BY_SHAPE}"),
    ] {
        check("a problem", http.get(&path).unwrap().body.as_bytes());
    }
    over_a2e(&laid, &format!("http://{}", served.address));
    over_the_command_line(&laid);
    approved(&laid, &served);
    laid.check_disk();
    let banner = served.banner.clone();
    let (_, log) = served.stop();
    check("the log", log.as_bytes());
    // Settings that fit no tool are told by their name.
    assert!(
        format!("{banner}{log}").contains("`tools.[redacted:github]`"),
        "{banner}{log}"
    );
    laid.check_disk();
    check(
        "the audit file",
        &std::fs::read(laid.beside("audit.jsonl")).unwrap(),
    );
    records(&laid, &ids);
    // What was asked for is still done with the real values.
    assert_eq!(
        laid.home.read("copy.txt"),
        format!("{IN_ENVIRONMENT} {BY_SHAPE}")
    );
}

/// Through the A2E client of the command line.
fn over_a2e(laid: &Laid, url: &str) {
    let token = laid.home.data_dir().join("token");
    let to = ["--connect", url, "--token-file", token.to_str().unwrap()];
    for (tool, arguments) in calls() {
        laid.run(&[&["call", tool, "--json", &arguments.to_string()][..], &to].concat());
    }
}

/// Through the running host's socket.
fn over_the_command_line(laid: &Laid) {
    for (tool, arguments) in calls() {
        let words = words(&arguments);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        laid.run(&[&["call", tool][..], &words].concat());
        if tool == "login" || tool == "echo" {
            laid.run(&[&["explain", tool][..], &words].concat());
        }
    }
    laid.run(&["tools", "--json"]).expect(0);
    laid.run(&["tools", "login", "--format", "a2e"]).expect(0);
}

/// Arguments as words of the command line.
fn words(arguments: &Value) -> Vec<String> {
    arguments
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key}:={value}"))
        .collect()
}

/// A call that a person is asked about.
fn approved(laid: &Laid, served: &crate::served::Served) {
    let mut http = served.connect(&laid.home);
    let command = json!({ "command": format!("logger {BY_SHAPE} {IN_ENVIRONMENT}") }).to_string();
    let asking = thread::spawn(move || http.post("/tools/shell/call", &command).unwrap().body);
    let question = (0..1_000).find_map(|_| {
        let listed = laid.run(&["approvals", "--json"]).expect(0).json();
        let found = listed["approvals"][0]["ask_id"].as_str().map(str::to_owned);
        if found.is_none() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
        found
    });
    let id = question.expect("somebody is asked");
    let shown = laid.run(&["approvals", "show", &id]).expect(0);
    assert!(
        shown.stdout.contains("[redacted:github]"),
        "{}",
        shown.stdout
    );
    laid.run(&["approvals", "deny", &id, "--feedback", BY_SHAPE])
        .expect(0);
    check(
        "the answer to a question",
        asking.join().unwrap().as_bytes(),
    );
}

/// What the record tells, in every way it can be told.
fn records(laid: &Laid, ids: &[String]) {
    assert!(ids.len() > 10);
    let told = laid
        .run(&["journal", "tail", "-n", "10000", "--json"])
        .expect(0)
        .stdout;
    for mark in [
        "[redacted:env_sentinel_api_key]",
        "[redacted:github]",
        "[redacted:argument]",
        "[redacted:private_key]",
    ] {
        assert!(told.contains(mark), "{mark} is nowhere in the record");
    }
    assert!(
        told.contains(r#""redactions":{"#),
        "results say what was taken out"
    );
    laid.run(&["journal", "tail", "-n", "10000"]).expect(0);
    laid.run(&["journal", "verify"]).expect(0);
    for id in ids {
        laid.run(&["journal", "show", id]).expect(0);
        laid.run(&["journal", "show", id, "--json"]).expect(0);
    }
    if laid.run(&["journal", "--help"]).stdout.contains("export") {
        for format in ["jsonl", "agent-tool", "a2e-audit"] {
            let export = laid
                .run(&["journal", "export", "--format", format])
                .expect(0);
            assert!(
                export.stdout.contains("[redacted:") || format == "a2e-audit",
                "{format}"
            );
        }
    }
}

#[test]
fn a_host_of_a_command_s_own_keeps_secrets_as_well() {
    let laid = laid();
    for (tool, arguments) in calls() {
        laid.configured(&["call", tool, "--json", &arguments.to_string()]);
    }
    laid.configured(&["tools"]).expect(0);
    laid.configured(&["doctor"]);
    laid.check_disk();
}

#[test]
fn errors_before_there_is_a_host_are_clean() {
    let laid = laid();
    laid.run(&["call", "echo", "--config", BY_SHAPE]).expect(2);
    laid.run(&["call", "echo", "--json", &format!("@{BY_SHAPE}")]);
}

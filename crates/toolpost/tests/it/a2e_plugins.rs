//! Plugins of an A2E host file, written for another host: loaded, driven and held as this host holds everything it runs.
//!
//! The plugins build on a stand-in for the SDK with the same base classes and constructors. They run in real processes, and
//! the messages go over the pipes of `toolpost serve --stdio a2e`.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use serde_json::{Value, json};

use crate::home::Home;

const PATIENCE: Duration = Duration::from_secs(60);

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/a2e_plugins")
}

/// A Python that has pydantic, which the classes of messages are made with.
fn python() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned();
    let python = root.join("target/peers/bin/python");
    assert!(python.exists(), "hint: `cargo xtask test` makes it");
    python.to_str().unwrap().to_owned()
}

/// A host over pipes with the plugins of a file.
struct PluginHost {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Messages that were read while another one was waited for.
    early: VecDeque<Value>,
    welcome: Value,
}

impl PluginHost {
    fn start(home: &Home, plugins: &Value, flags: &[&str]) -> Self {
        let folder = home.workspace().parent().unwrap().join("host");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(
            fixtures().join("host/plugins.py"),
            folder.join("plugins.py"),
        )
        .unwrap();
        let audit = json!({ "enabled": true, "path": "logs/audit.jsonl" });
        let limits = json!({ "max_workers": 8 });
        let file = json!({ "host_id": "suite", "plugins": plugins, "audit": audit, "global_limits": limits,
            "transport": { "type": "subprocess" } });
        fs::write(folder.join("host.yaml"), file.to_string()).unwrap();
        home.write_user(&format!(
            "amplifier: {{ python: '{}', core: stand_in }}\napprovals: {{ timeout: 2s }}\n",
            python()
        ));
        let file = folder.join("host.yaml");
        let sdk = fixtures().join("sdk");
        let mut all = vec![
            "serve",
            "--stdio",
            "a2e",
            "--a2e-config",
            file.to_str().unwrap(),
        ];
        all.extend(["--a2e-import-path", sdk.to_str().unwrap()]);
        all.extend(flags);
        let mut child = home
            .command(&all)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if told.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut host = Self {
            child,
            input,
            lines,
            early: VecDeque::new(),
            welcome: Value::Null,
        };
        let caps = ["memory", "echo", "proc", "chains", "unruly"];
        host.send(&json!({ "type": "handshake/req", "id": "h", "agent_caps": caps }));
        host.welcome = host.answer("h");
        host
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message that fits.
    fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.early.iter().position(&fits) {
            return self.early.remove(place).unwrap();
        }
        loop {
            let message = self.lines.recv_timeout(PATIENCE).expect("a message");
            if fits(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    fn answer(&mut self, id: &str) -> Value {
        self.next(|message| {
            message["req_id"] == id && !message["type"].as_str().unwrap().ends_with("event")
        })
    }

    fn ask(&mut self, kind: &str, id: &str, mut fields: Value) -> Value {
        fields["type"] = json!(kind);
        fields["id"] = json!(id);
        self.send(&fields);
        self.answer(id)
    }

    fn call(&mut self, id: &str, tool: &str, arguments: &Value) -> Value {
        self.ask(
            "tool/call/req",
            id,
            json!({ "tool_name": tool, "arguments": arguments, "timeout": 60 }),
        )
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn plugin(name: &str, kind: &str, class: &str, metadata: &Value) -> Value {
    json!({ "name": name, "type": kind, "cls": format!("plugins.{class}"), "metadata": metadata })
}

#[test]
fn a_message_is_validated_handled_and_answered_as_the_plugin_says() {
    let home = Home::new();
    let notes = plugin("notes", "memory", "Memory", &json!({}));
    let mut host = PluginHost::start(&home, &json!([notes]), &[]);
    // The class has no name, so its metadata raises; the entry's name stands in.
    let entry = json!({ "capability": "memory", "enabled": true,
        "metadata": { "name": "notes", "type": "memory", "priority": 0, "exclusive": false } });
    assert_eq!(host.welcome["accepted_caps"], json!([entry]));
    assert_eq!(host.welcome["ok"], true);
    let stored = host.ask("memory/store/req", "m1", json!({ "entries": ["a", "b"] }));
    assert_eq!(
        (&stored["type"], &stored["stored"]),
        (&json!("memory/store/resp"), &json!(["a", "b"]))
    );
    assert!(stored["ts"].is_f64() && stored["id"].is_string());
    // One instance keeps its state for the session.
    assert_eq!(
        host.ask("memory/store/req", "m2", json!({ "entries": ["c"] }))["stored"],
        json!(["a", "b", "c"])
    );
    let invalid = host.ask("memory/store/req", "m3", json!({ "entries": [1] }));
    assert_eq!(
        (&invalid["type"], &invalid["code"]),
        (&json!("error"), &json!("parse_error"))
    );
    assert!(
        invalid["message"]
            .as_str()
            .unwrap()
            .contains("valid string"),
        "{invalid}"
    );
    let missing = host.ask("memory/store/req", "m4", json!({}));
    assert_eq!(missing["code"], "schema_violation");
    let raised = host.ask("memory/store/req", "m5", json!({ "entries": ["fail"] }));
    assert_eq!(
        (&raised["code"], &raised["message"]),
        (&json!("internal_error"), &json!("the store is closed"))
    );
    // An error of the plugin's own goes on the wire as it is.
    let refused = host.ask("memory/store/req", "m6", json!({ "entries": ["refuse"] }));
    assert_eq!(
        (&refused["code"], &refused["detail"], &refused["retryable"]),
        (&json!("quota"), &json!({ "left": 0 }), &json!(true))
    );
    // A repeat has the same answer and does not store again.
    assert_eq!(
        host.ask("memory/store/req", "m1", json!({ "entries": ["a", "b"] })),
        stored
    );
    let unserved = host.ask("weather/now/req", "w", json!({}));
    assert_eq!(unserved["code"], "capability_missing");
    host.end();
    let audit = fs::read_to_string(
        home.workspace()
            .parent()
            .unwrap()
            .join("host/logs/audit.jsonl"),
    )
    .unwrap();
    assert!(
        audit.lines().any(|line| line.contains(r#""by":"Memory""#)),
        "{audit}"
    );
    let record = home.run(&["journal", "tail", "--json"]).stdout;
    assert!(
        record.contains(r#""tool_id":"a2e.memory/store:notes""#),
        "one step per plugin: {record}"
    );
}

#[test]
fn priority_exclusive_and_broadcast() {
    let home = Home::new();
    let echo = |name: &str, takes: &str, priority: i64, exclusive: bool| {
        let metadata =
            json!({ "priority": priority, "exclusive": exclusive, "says": name, "takes": takes });
        plugin(name, "echo", "Echo", &metadata)
    };
    let plugins = json!([
        echo("low", "echo/say/req", 1, false),
        echo("high", "echo/say/req", 5, false),
        echo("other", "echo/only/req", 1, false),
        echo("alone", "echo/only/req", 2, true),
    ]);
    let mut host = PluginHost::start(&home, &plugins, &["--allow", "a2e.echo/*"]);
    let caps: Vec<&Value> = host.welcome["accepted_caps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cap| &cap["metadata"]["priority"])
        .collect();
    assert_eq!(
        caps,
        [&json!(1), &json!(5), &json!(1), &json!(2)],
        "one entry per plugin, in the file's order"
    );
    let first = host.ask("echo/say/req", "e1", json!({ "text": "hello" }));
    let second = host.answer("e1");
    assert_eq!(
        (&first["by"], &second["by"]),
        (&json!("high"), &json!("low"))
    );
    // Each answers once, also where an answer has no id of its own.
    for text in ["plain", "fail"] {
        let answers = [
            host.ask("echo/say/req", text, json!({ "text": text })),
            host.answer(text),
        ];
        assert_ne!(answers[0]["id"], answers[1]["id"]);
        assert_eq!(answers[1]["by"], "low", "{answers:?}");
    }
    assert_eq!(
        host.ask("echo/only/req", "e2", json!({ "text": "hello" }))["by"],
        "alone"
    );
    assert!(
        !host
            .early
            .iter()
            .any(|message| message["req_id"] == "plain" || message["req_id"] == "fail")
    );
    // Nobody else answered: the next answer is that of the next request.
    let inside = host.ask("echo/only/req", "e3", json!({ "text": "push" }));
    assert_eq!(inside["by"], "alone");
    let event = host.next(|message| message["type"] == "echo/event");
    assert_eq!(
        (&event["req_id"], &event["text"]),
        (&json!("e3"), &json!("inside"))
    );
    host.send(&json!({ "type": "echo/only/req", "id": "e4", "text": "later" }));
    let later = host.next(|message| message["type"] == "echo/later");
    assert_eq!(later["text"], "outside");
    assert!(later["id"].is_string() && later["ts"].is_f64());
    host.end();
}

#[test]
fn acting_messages_are_decided_by_mode_and_rules() {
    let procs = json!([
        plugin("procs", "procs", "Procs", &json!({})),
        plugin("notes", "memory", "Memory", &json!({}))
    ]);
    let check = |flags: &[&str], kind: &str, fields: Value, expected: &str| {
        let home = Home::new();
        let mut host = PluginHost::start(&home, &procs, flags);
        let answer = host.ask(kind, "p", fields);
        let told = answer["code"]
            .as_str()
            .or(answer["output"].as_str())
            .unwrap_or("stored");
        assert_eq!(told, expected, "{flags:?}: {answer}");
        host.end();
    };
    let spawn = |command: &[&str]| json!({ "cmd": command });
    check(
        &["--mode", "never-ask"],
        "proc/spawn/req",
        spawn(&["echo", "x"]),
        "tool_denied",
    );
    check(
        &["--mode", "bypass"],
        "proc/spawn/req",
        spawn(&["echo", "x"]),
        "x\n",
    );
    check(
        &["--mode", "never-ask", "--allow", "a2e.proc/*"],
        "proc/spawn/req",
        spawn(&["echo", "x"]),
        "x\n",
    );
    check(
        &["--mode", "plan"],
        "proc/spawn/req",
        spawn(&["true"]),
        "tool_denied",
    );
    // Rules about commands of the shell are about this message too.
    let bypass = ["--mode", "bypass", "--deny", "shell(rm *)"];
    check(
        &bypass,
        "proc/spawn/req",
        spawn(&["rm", "-rf", "x"]),
        "tool_denied",
    );
    check(
        &bypass,
        "proc/spawn/req",
        spawn(&["env", "rm", "x"]),
        "tool_denied",
    );
    check(
        &bypass,
        "proc/spawn/req",
        spawn(&["echo", "rm x"]),
        "rm x\n",
    );
    let allow = ["--mode", "never-ask", "--allow", "a2e.proc/spawn(echo *)"];
    check(&allow, "proc/spawn/req", spawn(&["echo", "x"]), "x\n");
    check(
        &allow,
        "proc/spawn/req",
        spawn(&["cat", "x"]),
        "tool_denied",
    );
    // A rule that asks about the step of one plugin asks, also where the message itself is allowed.
    let step = ["--mode", "bypass", "--ask", "a2e.proc/spawn:*"];
    check(
        &step,
        "proc/spawn/req",
        spawn(&["echo", "x"]),
        "tool_denied",
    );
    // What only uses the plugin's own state runs, but for the modes without questions.
    let store = || json!({ "entries": ["a"] });
    check(
        &["--mode", "default"],
        "memory/store/req",
        store(),
        "stored",
    );
    check(
        &["--mode", "plan"],
        "memory/store/req",
        store(),
        "tool_denied",
    );
    check(
        &["--mode", "never-ask"],
        "memory/store/req",
        store(),
        "tool_denied",
    );
    check(
        &["--mode", "default", "--deny", "a2e.memory/*"],
        "memory/store/req",
        store(),
        "tool_denied",
    );
}

#[test]
fn arguments_do_not_change_the_type_that_was_decided() {
    let home = Home::new();
    let procs = json!([plugin("procs", "procs", "Procs", &json!({}))]);
    let mut host = PluginHost::start(&home, &procs, &["--mode", "default"]);
    let hidden = json!({ "type": "proc/spawn/req", "id": "1", "cmd": ["touch", "spawned"] });
    let answer = host.call("s", "a2e.proc/status", &hidden);
    assert_eq!(
        answer["data"]["data"]["responses"][0]["asked"], "proc/status/req",
        "{answer}"
    );
    assert!(!home.workspace().join("spawned").exists());
    host.end();
}

#[test]
fn long_answers_are_sent_whole_and_ids_are_not_reused() {
    let home = Home::new();
    let plugins = json!([
        plugin("notes", "memory", "Memory", &json!({})),
        plugin("a2e", "tools", "Calculator", &json!({})),
    ]);
    let mut host = PluginHost::start(&home, &plugins, &["--allow", "a2e_plugin.*"]);
    for (id, length) in [("l1", 60_000), ("l2", 400_000)] {
        let stored = host.ask(
            "memory/store/req",
            id,
            json!({ "entries": ["x".repeat(length)] }),
        );
        assert_eq!(
            stored["stored"]
                .as_array()
                .and_then(|all| all.last()?.as_str())
                .map(str::len),
            Some(length)
        );
    }
    let store = |text: &str| json!({ "type": "memory/store/req", "id": "l3", "entries": [text] });
    host.send(&store("one"));
    host.send(&store("two"));
    let answers = [host.answer("l3"), host.answer("l3")];
    let refused = answers
        .iter()
        .find(|answer| answer["type"] == "error")
        .expect("a refusal");
    assert_eq!(refused["code"], "invalid_message");
    // A plugin cannot be called like the namespace of messages.
    let added = host.call("a", "add", &json!({ "left": 2, "right": 3 }));
    assert_eq!(added["data"]["data"]["sum"], 5, "{added}");
    host.end();
}

#[test]
fn a_rule_about_a_message_holds_for_plugins_too() {
    let home = Home::new();
    let plugins = json!([
        plugin("procs", "procs", "Procs", &json!({})),
        plugin("chain", "chains", "Chain", &json!({})),
    ]);
    let mut host = PluginHost::start(
        &home,
        &plugins,
        &["--mode", "bypass", "--deny", "a2e.proc/spawn"],
    );
    let answer = host.ask("chain/req", "c", json!({ "steps": ["send"] }));
    assert!(
        answer["outputs"][0].as_str().unwrap().contains("denied"),
        "{answer}"
    );
    host.end();
}

#[test]
fn plugins_reach_each_other_through_the_host() {
    let home = Home::new();
    let plugins = json!([
        plugin("notes", "memory", "Memory", &json!({})),
        plugin("calculator", "tools", "Calculator", &json!({})),
        plugin("procs", "procs", "Procs", &json!({})),
        plugin("chain", "chains", "Chain", &json!({})),
    ]);
    let allow = [
        "--mode",
        "never-ask",
        "--allow",
        "a2e.chain*",
        "--allow",
        "a2e.memory/*",
        "--allow",
        "calculator.*",
    ];
    let mut host = PluginHost::start(&home, &plugins, &allow);
    let steps = json!({ "steps": ["memory", "tool", "send", "nobody"] });
    let answer = host.ask("chain/req", "c", steps);
    let outputs = &answer["outputs"];
    assert_eq!(outputs[0], json!(["by the chain"]), "{answer}");
    assert_eq!(outputs[1]["sum"], 5);
    // What the rules do not allow the agent, they do not allow the plugin.
    assert!(
        outputs[2].as_str().unwrap().contains("was denied"),
        "{answer}"
    );
    assert_eq!(outputs[3], true);
    host.end();
}

#[test]
fn unruly_plugins_harm_nobody_else() {
    let home = Home::new();
    let plugins = json!([
        plugin("unruly", "unruly", "Unruly", &json!({})),
        plugin("notes", "memory", "Memory", &json!({})),
        plugin("broken", "memory", "Missing", &json!({})),
    ]);
    home.write(
        "toolpost.yaml",
        "tools: { 'a2e.unruly/do': { timeout: 2s } }\n",
    );
    let mut host = PluginHost::start(&home, &plugins, &["--mode", "bypass"]);
    let unruly =
        |host: &mut PluginHost, how: &str| host.ask("unruly/do/req", how, json!({ "how": how }));
    assert_eq!(unruly(&mut host, "print")["how"], "print");
    assert_eq!(unruly(&mut host, "flood")["how"], "flood");
    let events = host
        .early
        .iter()
        .filter(|message| message["type"] == "unruly/event")
        .count();
    assert!((1..=1_000).contains(&events), "{events} events of 5000");
    assert_eq!(unruly(&mut host, "rubbish")["type"], "error");
    assert_eq!(unruly(&mut host, "exit")["type"], "error");
    assert_eq!(unruly(&mut host, "large")["type"], "error");
    assert_eq!(unruly(&mut host, "hang")["code"], "timeout");
    assert_eq!(unruly(&mut host, "crash")["type"], "error");
    // The host and the other plugins go on; what was in the process is gone with it.
    assert_eq!(
        host.ask("memory/store/req", "m", json!({ "entries": ["a"] }))["stored"],
        json!(["a"])
    );
    assert_eq!(host.ask("ping", "p", json!({}))["type"], "pong");
    host.end();
}

#[test]
fn tools_plugins_lose_nothing() {
    let home = Home::new();
    let plugins = json!([plugin("calculator", "tools", "Calculator", &json!({}))]);
    let mut host = PluginHost::start(&home, &plugins, &["--mode", "bypass"]);
    let listed = host.ask("tool/list/req", "l1", json!({}));
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["add", "meet", "give", "grow"],
        "the host's own tools are left out, and the deferred one"
    );
    let add = &listed["tools"][0];
    let parameter = |name: &str| json!({ "name": name, "type": "integer", "description": format!("the {name}"), "required": true });
    assert_eq!(
        add["input_parameters"],
        json!([parameter("right"), parameter("left")]),
        "the author's order"
    );
    assert_eq!(add["output_parameters"], json!([parameter("sum")]));
    assert_eq!(
        (
            &add["streaming"],
            &add["idempotent"],
            &add["tags"],
            &add["version"],
            &add["toolkit"]
        ),
        (
            &json!(false),
            &json!(true),
            &json!(["math", "basic"]),
            &json!("2.1.0"),
            &json!("arithmetic")
        )
    );
    assert!(
        add.get("input_schema").is_none(),
        "the parameters tell all of it"
    );
    let found = host.ask("tool/list/req", "l2", json!({ "query": "sums" }));
    assert_eq!(found["tools"][0]["name"], "add", "the plugin's own search");
    // Not streamed, so the answer holds the events, with the data of the plugin.
    let added = host.call("a1", "add", &json!({ "left": 2, "right": 3 }));
    let (data, events) = (&added["data"]["data"], &added["data"]["events"]);
    assert_eq!(data, &json!({ "sum": 5, "order": ["left", "right"] }));
    assert_eq!(
        (&events[0]["kind"], &events[0]["data"]),
        (&json!("progress"), &json!({ "pct": 50, "message": "half" }))
    );
    assert_eq!(
        (&events[1]["kind"], &events[1]["data"]),
        (&json!("chart"), &json!({ "points": [1, 2] }))
    );
    host.ask("tool/list/req", "l3", json!({ "include_deferred": true }));
    let whole = host.call("a2", "whole", &json!({}));
    assert_eq!(
        (
            &whole["data"]["success"],
            &whole["data"]["exit_code"],
            &whole["data"]["error_code"]
        ),
        (&json!(false), &json!(4), &json!("brittle"))
    );
    assert!(
        whole["data"]["error"]
            .as_str()
            .unwrap()
            .contains("it broke")
    );
    assert_eq!(
        (
            &whole["data"]["data"],
            &whole["data"]["summary"],
            &whole["data"]["truncated"]
        ),
        (&json!({ "partial": 1 }), &json!("half done"), &json!(true))
    );
    let values = [
        ("text", json!("one\ntwo")),
        ("list", json!([1, { "a": 2 }])),
        ("number", json!(5)),
        ("no", json!(false)),
    ];
    for (value, data) in values {
        let given = host.call(value, "give", &json!({ "value": value }));
        assert_eq!(given["data"]["data"], data, "{given}");
    }
    // Four calls that wait for each other can only end together.
    for id in ["b1", "b2", "b3", "b4"] {
        host.send(&json!({ "type": "tool/call/req", "id": id, "tool_name": "meet", "arguments": {}, "timeout": 60 }));
    }
    for id in ["b1", "b2", "b3", "b4"] {
        assert_eq!(host.answer(id)["data"]["success"], true);
    }
    assert_eq!(host.call("g", "grow", &json!({}))["data"]["success"], true);
    std::thread::sleep(Duration::from_millis(600));
    let grown = host.ask("tool/list/req", "l4", json!({}));
    assert!(
        grown["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "grown"),
        "{grown}"
    );
    let raised = host.call("g2", "grown", &json!({}));
    assert!(
        raised["data"]["error"]
            .as_str()
            .unwrap()
            .contains("it is too young"),
        "{raised}"
    );
    host.end();
}

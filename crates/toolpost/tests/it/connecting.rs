//! `toolpost connect`: what clients are told, and which host they are sent to.

use serde_json::Value;

use crate::{
    home::{Home, Ran},
    served::Served,
};

const CLIENTS: [&str; 6] = [
    "claude-code",
    "claude-desktop",
    "vscode",
    "cursor",
    "codex",
    "goose",
];

/// The program lies wherever it was built.
fn named(mut ran: Ran) -> Ran {
    let program = env!("CARGO_BIN_EXE_toolpost");
    ran.stdout = ran.stdout.replace(program, "[PROGRAM]");
    ran.stderr = ran.stderr.replace(program, "[PROGRAM]");
    ran
}

#[test]
fn connect_tells_each_client_in_its_own_form() {
    let home = Home::new();
    for client in CLIENTS {
        for way in ["http", "stdio"] {
            let arguments = ["connect", client, &format!("--{way}")];
            let ran = named(home.run(&arguments));
            home.compare(&format!("connect_{client}_{way}"), &arguments, &ran);
        }
    }
    home.check("connect_bad_name", &["connect", "codex", "--name=-x"]);
}

#[test]
fn connect_sends_clients_to_the_host_that_really_runs() {
    let home = Home::new();
    let told = |arguments: &[&str]| -> Value {
        serde_json::from_str(&home.run(arguments).stdout).unwrap()
    };
    let before = told(&["connect", "codex", "--json"]);
    assert_eq!(before["host_is_running"], false);
    assert!(
        before["command"]
            .as_str()
            .unwrap()
            .contains("http://127.0.0.1:8765/mcp"),
        "{before}"
    );
    let over_pipes = ["connect", "codex", "--stdio", "--json"];
    assert_eq!(told(&over_pipes)["host_is_running"], false);
    // On a port that no configuration names.
    let host = Served::start(&home, &[]);
    let url = format!("http://{}/mcp", host.address);
    for client in CLIENTS {
        let told = told(&["connect", client, "--http", "--json"]);
        assert_eq!(told["host_is_running"], true, "{told}");
        assert!(told["snippet"].as_str().unwrap().contains(&url), "{told}");
    }
    assert_eq!(told(&over_pipes)["host_is_running"], true);
    let ran = home.run(&["connect", "codex"]);
    assert!(
        ran.stdout.contains(&url) && !ran.stderr.contains("no host"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

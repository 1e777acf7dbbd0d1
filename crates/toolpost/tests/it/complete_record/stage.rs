//! Everything that one host can have around it: rules, hooks, two authorities, an MCP server, a module, a command.

use std::{path::PathBuf, process::Command};

use serde_json::json;

use crate::{
    authorities::stub::{Manner, StubEndpoint},
    exported::Exported,
    home::{Home, Ran},
    modules::place::python,
    served::Served,
};

/// A secret of the host's environment, which no record may hold.
pub(super) const SECRET: &str = "a-secret-of-the-host-s-environment";

/// The token of the caller `ci`, which belongs to the tenant `acme`.
pub(super) const TENANT_TOKEN: &str = "the token of ci";

/// Its SHA-256.
const TENANT_TOKEN_HASH: &str = "656bb29a7a924cad3e384ea321423b2eb64758ec02c7e185b7f8bf5bc790a49f";

const CONFIG: &str = r#"
mode: default
rules:
  - deny read_file(secret.txt)
  - ask write_file(.ask/**)
  - deny shell(rm *)
  - allow shell(sleep *)
  - allow shell(touch *)
  - { rule: allow shell, principal: ci }
  - allow demo.*
  - allow tool-desk.*
  - delegate opa write_file(delegated/**)
  - delegate desk write_file(desk/**)
authorities:
  opa: { url: 'ENDPOINT', timeout: 50s }
  desk: { command: [sh, ./desk.sh], timeout: 50s }
hooks:
  - { name: rename, event: before, tools: write_file, when: 'write_file(model.txt)', command: [sh, ./rename.sh], timeout: 50s }
  - { name: voter, event: before, tools: echo, command: [sh, ./voter.sh], timeout: 50s }
  - { name: withholder, event: after, tools: echo, command: [sh, ./withholder.sh], timeout: 50s }
tools:
  write_file: { defaults: { create_directories: true } }
  demo.read_preview: { max_inline_chars: 1000 }
  demo.read_ref: { keep: ref_only }
  demo.read_redact: { keep: redact }
  demo.read_drop: { max_inline_chars: 1000, keep: drop }
mcp:
  servers:
    demo: { command: python3, args: [./server.py], readable: [./tools.json] }
commands:
  count_words:
    description: Counts the words of a file.
    argv: [wc, -w, "{path}"]
    parameters: { path: { type: path } }
    class: read
tokens:
  - { name: ci, tenant: acme, sha256: "HASH" }
include: [plan.yaml]
amplifier: { core: stand_in, install: offline, python: 'PYTHON' }
"#;

/// The home of the session, its configuration beside the workspace, and the endpoint that decides.
pub(super) struct Stage {
    pub(super) home: Home,
    pub(super) endpoint: StubEndpoint,
}

impl Stage {
    pub(super) fn new() -> Self {
        let endpoint =
            StubEndpoint::deciding(
                |input| match input["arguments"]["path"] == "delegated/a.txt" {
                    true => Manner::Answers(
                        r#"{"result": {"decision": "allow", "reason": "open to all"}}"#,
                    ),
                    false => Manner::Answers(r#"{"result": {"allow": false, "reason": "closed"}}"#),
                },
            );
        let stage = Self {
            home: Home::new(),
            endpoint,
        };
        let config = CONFIG
            .replace("ENDPOINT", &stage.endpoint.url)
            .replace("HASH", TENANT_TOKEN_HASH)
            .replace("PYTHON", python());
        stage.write("trusted.yaml", &config);
        stage.write(
            "desk.sh",
            r#"echo '{"decision":"allow","reason":"the desk is open"}'"#,
        );
        stage.write(
            "rename.sh",
            r#"sed 's/.*"content": *"\([^"]*\)".*/{"arguments":{"path":"model.txt","content":"by-hook","create_directories":true},"reason":"one name for all"}/'"#,
        );
        stage.write(
            "voter.sh",
            r#"read -r call; case "$call" in *"vote no"*) echo '{"decision":"deny","reason":"the voter says no"}';; esac"#,
        );
        stage.write(
            "withholder.sh",
            r#"read -r call; case "$call" in *"keep this"*) echo '{"continue":false,"reason":"not for the model"}';; esac"#,
        );
        stage.prepare_sources();
        stage.prepare_workspace();
        stage
    }

    /// The MCP server and the mount plan.
    fn prepare_sources(&self) {
        let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let server = std::fs::read_to_string(crates.join("tests/mcp/server.py")).unwrap();
        self.write("server.py", &server);
        let names = [
            "add",
            "read_preview",
            "read_ref",
            "read_redact",
            "read_drop",
        ];
        let tools = names
            .map(|name| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } }));
        self.write("tools.json", &json!(tools).to_string());
        let module = crates.join("../modules/tests/modules/tool-desk");
        self.write(
            "plan.yaml",
            &json!({ "tools": [{ "module": "tool-desk", "source": module }] }).to_string(),
        );
    }

    fn prepare_workspace(&self) {
        let workspace = self.home.workspace();
        for folder in ["hollow", "many"] {
            std::fs::create_dir(workspace.join(folder)).unwrap();
        }
        self.home.write("notes.txt", "one two three\n");
        self.home.write("secret.txt", "nobody reads this\n");
        self.home
            .write("large.txt", &"a line of a large file\n".repeat(2_000));
        // Far more than a search gets through before its deadline, on no more disk than one file needs.
        self.home.write("many/found.txt", "needle\n");
        self.home
            .write("many/0.txt", &"some words without an end \n".repeat(40_000));
        for number in 1..4_000 {
            std::fs::hard_link(
                workspace.join("many/0.txt"),
                workspace.join(format!("many/{number}.txt")),
            )
            .unwrap();
        }
    }

    /// Writes a file beside the configuration.
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home.workspace().with_file_name(name), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command
            .arg("--config")
            .arg(self.home.workspace().with_file_name("trusted.yaml"));
        command.envs([
            ("PATH", std::env::var("PATH").unwrap().as_str()),
            ("DEMO_TOKEN", SECRET),
        ]);
        command
    }

    pub(super) fn serve(&self) -> Served {
        Served::spawn(&mut self.command(&["serve", "--http", "127.0.0.1:0"]))
    }

    pub(super) fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().unwrap()).expect(0)
    }

    pub(super) fn export(&self) -> Exported {
        Exported::read(
            &self
                .run(&["journal", "export", "--format", "agent-tool"])
                .stdout,
        )
    }
}

//! What a plugin of an A2E file can read beside that file. The plugin is a real process that tries.

use std::fs;

use serde_json::{Value, json};

use crate::{home::Home, http::Http, modules::place::python, served::Served};

const PLUGIN: &str = r#"
import types

import helper
from package import part


class Request:
    def __init__(self, id, type, tool_name, arguments, **others):
        self.id, self.type, self.tool_name, self.arguments = id, type, tool_name, arguments


class Looking:
    name = "looking"

    def setup(self, host, config):
        pass

    def set_event_callback(self, callback):
        pass

    def supported_messages(self):
        return {"tool/list/req": types.SimpleNamespace, "tool/call/req": Request}

    def handle(self, message):
        if message.type == "tool/list/req":
            parameter = {"name": "path", "type": "string", "description": "a file", "required": True}
            tools = [{"name": "look", "description": "Reads a file", "input_parameters": [parameter]}]
            return types.SimpleNamespace(type="tool/list/resp", req_id=message.id, tools=tools)
        try:
            with open(message.arguments["path"]) as file:
                seen = file.read()
        except OSError as error:
            seen = "refused: " + type(error).__name__
        data = {"success": True, "data": {"seen": seen, "code": helper.WORD + part.WORD}}
        return types.SimpleNamespace(type="tool/call/resp", req_id=message.id, data=data)
"#;

/// Files beside the host's file, and whether a plugin may read them.
const FILES: [(&str, bool); 15] = [
    ("plugin.py", true),
    ("helper.py", true),
    ("package/part.py", true),
    ("package/table.csv", true),
    ("models/small.bin", true),
    ("words.txt", true),
    ("host.yaml", false),
    ("other.yaml", false),
    (".env", false),
    (".hidden.py", false),
    (".ssh/id", false),
    ("notes.txt", false),
    ("data/customers.csv", false),
    ("models.txt", false),
    ("../beside.txt", false),
];

fn place(home: &Home, folder: &std::path::Path) {
    for (name, _) in FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match name {
            "plugin.py" => PLUGIN.to_owned(),
            "helper.py" | "package/part.py" => "WORD = 'content'\n".to_owned(),
            "host.yaml" => host_file(),
            _ => "content".to_owned(),
        };
        fs::write(path, text).unwrap();
    }
    // What would make the folder above the place to import from.
    fs::write(folder.join("__init__.py"), "").unwrap();
    home.write_user(&format!(
        "mode: bypass\namplifier: {{ python: '{}', core: stand_in }}\n",
        python()
    ));
}

fn host_file() -> String {
    let metadata = json!({ "model": "models/small.bin", "lists": { "words": ["words.txt"] }, "not": "../beside.txt",
        "folder": ".", "hidden": ".env", "own": "host.yaml" });
    let plugin = json!({ "name": "looking", "type": "tools", "cls": "plugin.Looking", "metadata": metadata });
    let transport = json!({ "type": "http", "config": { "token": "content-of-a-token" } });
    json!({ "plugins": [plugin], "transport": transport }).to_string()
}

fn look(operator: &mut Http, path: &str) -> Value {
    let answer = operator
        .post("/tools/look/call", &json!({ "path": path }).to_string())
        .unwrap()
        .json();
    answer["structured_content"].clone()
}

fn serve(home: &Home, folder: &std::path::Path) -> Served {
    let host_file = folder.join("host.yaml");
    let words = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--a2e-config",
        host_file.to_str().unwrap(),
    ];
    let mut command = home.command(&words);
    command.env("PATH", std::env::var("PATH").unwrap());
    Served::spawn(&mut command)
}

#[test]
fn a_plugin_reads_code_and_what_its_metadata_names_and_nothing_else_beside_the_file() {
    let home = Home::new();
    let folder = home.user_file().parent().unwrap().join("agents/host");
    place(&home, &folder);
    let host = serve(&home, &folder);
    let mut operator = host.socket(&home);
    for (name, may) in FILES {
        let path = folder.join(name);
        let seen = look(&mut operator, path.to_str().unwrap());
        assert_eq!(
            seen["code"], "contentcontent",
            "{name}: {seen} {}",
            host.banner
        );
        let text = seen["seen"].as_str().unwrap();
        assert_eq!(!text.starts_with("refused: "), may, "{name}: {text}");
        assert!(!text.contains("content-of-a-token"), "{name}");
    }
}

/// In the workspace everything else is the plugin's to read, as for every module; the token is not.
#[test]
fn the_hosts_file_is_hidden_from_plugins_in_the_workspace_too() {
    let home = Home::new();
    let folder = home.workspace();
    place(&home, &folder);
    let host = serve(&home, &folder);
    let mut operator = host.socket(&home);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    assert_eq!(look(&mut operator, &path("notes.txt"))["seen"], "content");
    let seen = look(&mut operator, &path("host.yaml"));
    assert!(
        seen["seen"].as_str().unwrap().starts_with("refused: "),
        "{seen}"
    );
}

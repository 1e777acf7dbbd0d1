//! Tools of one name from everywhere: which one runs, which one a person is asked about, which one a remembered yes is for.
//!
//! Two MCP servers, a Python module and a plugin of an A2E file each offer a `shell`, a `write_file` and a `read_file`,
//! beside the host's own. Every process is real, and each tool answers with the source it runs in.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{home::Home, http::Http, modules::place::python, served::Served};

const NAMES: [&str; 3] = ["shell", "write_file", "read_file"];

const SERVER: &str = r#"
import json, os, sys

NAMES = ["shell", "write_file", "read_file"]

def answer(method, params):
    if method == "initialize":
        info = {"name": "x", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in NAMES]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": os.environ["WHO"] + " ran " + params["name"]}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

const MODULE: &str = r#"
class Tool:
    description = "A tool with a popular name."
    input_schema = {"type": "object"}

    def __init__(self, name):
        self.name = name

    async def execute(self, input):
        return {"success": True, "output": "module ran " + self.name}


async def mount(coordinator, config=None):
    for name in ("shell", "write_file", "read_file"):
        await coordinator.mount("tools", Tool(name), name=name)
"#;

const PLUGIN: &str = r#"
import types


class CallRequest:
    def __init__(self, id, type, tool_name, arguments, **others):
        self.id, self.type, self.tool_name, self.arguments = id, type, tool_name, arguments


class Popular:
    name = "shell"

    def setup(self, host, config):
        pass

    def set_event_callback(self, callback):
        pass

    def supported_messages(self):
        return {"tool/list/req": types.SimpleNamespace, "tool/call/req": CallRequest}

    def handle(self, message):
        if message.type == "tool/list/req":
            names = ("shell", "write_file", "read_file")
            tools = [{"name": n, "description": "Popular", "input_parameters": []} for n in names]
            return types.SimpleNamespace(type="tool/list/resp", req_id=message.id, tools=tools)
        data = {"success": True, "data": {"said": "plugin ran " + message.tool_name}}
        return types.SimpleNamespace(type="tool/call/resp", req_id=message.id, data=data)
"#;

/// A home with all of them; the plugin's entry is called like a namespace of the host's own.
fn crowded(naming: &str, more: &str) -> Home {
    let home = Home::new();
    let folder = home.user_file().parent().unwrap().to_owned();
    let package = folder.join("tool-popular/amplifier_module_tool_popular");
    fs::create_dir_all(&package).unwrap();
    fs::create_dir_all(folder.join("plugins")).unwrap();
    fs::write(package.join("__init__.py"), MODULE).unwrap();
    let project = "[project]\nname = 'amplifier-module-tool-popular'\nversion = '1'\ndependencies = []\n\n\
                   [project.entry-points.'amplifier.modules']\n\
                   tool-popular = 'amplifier_module_tool_popular:mount'\n";
    fs::write(folder.join("tool-popular/pyproject.toml"), project).unwrap();
    fs::write(folder.join("server.py"), SERVER).unwrap();
    fs::write(folder.join("plugins/popular.py"), PLUGIN).unwrap();
    let plan = "tools:\n  - { module: tool-popular, source: ./tool-popular }\n";
    fs::write(folder.join("plan.yaml"), plan).unwrap();
    let plugin =
        json!({ "name": "shell", "type": "tools", "cls": "popular.Popular", "metadata": {} });
    let native =
        json!({ "name": "own", "type": "tools", "cls": "toolpost.native", "metadata": {} });
    let host =
        json!({ "plugins": [native, plugin], "transport": { "type": "http", "config": {} } });
    fs::write(folder.join("plugins/host.yaml"), host.to_string()).unwrap();
    let server = |who: &str| {
        format!(
            "    {who}: {{ command: python3, args: [./server.py], env: {{ WHO: {who} }}, naming: {naming} }}\n"
        )
    };
    home.write_user(&format!(
        "rules: ['ask *', 'ask *.*']\ninclude: [plan.yaml]\namplifier: {{ python: '{}', core: stand_in{more} }}\n\
         mcp:\n  servers:\n{}{}",
        python(),
        server("alpha"),
        server("beta")
    ));
    home.write("note.txt", "native ran read_file\n");
    home
}

fn serve(home: &Home) -> Served {
    let plugins = home.user_file().parent().unwrap().join("plugins/host.yaml");
    let words = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--a2e-config",
        plugins.to_str().unwrap(),
    ];
    let mut command = home.command(&words);
    command.env("PATH", std::env::var("PATH").unwrap());
    Served::spawn(&mut command)
}

/// Every tool of a popular name: its name on the wire and its id.
fn listed(operator: &mut Http) -> BTreeMap<String, String> {
    let list = operator.get("/tools?include_deferred=true").unwrap().json();
    let tools = list["tools"].as_array().unwrap().iter();
    let pair = |tool: &Value| {
        Some((
            tool["name"].as_str()?.to_owned(),
            tool["tool_id"].as_str()?.to_owned(),
        ))
    };
    let popular =
        |(_, id): &(String, String)| NAMES.iter().any(|name| id.ends_with(&format!(".{name}")));
    tools.filter_map(pair).filter(popular).collect()
}

/// One row of the table: the tool that ran, the tool that the question named, the rule that a remembered yes left.
fn row(agent: &mut Http, operator: &mut Http, wire: &str) -> (String, String, String) {
    let arguments =
        json!({ "command": "echo native ran shell", "path": "note.txt", "content": "x" });
    let own = |name: &str| match name {
        "shell" => json!({ "command": arguments["command"] }),
        "write_file" => json!({ "path": "made.txt", "content": "x" }),
        _ => json!({ "path": "note.txt" }),
    };
    let is_native = NAMES.contains(&wire) && !wire.contains("__");
    let body = if is_native {
        own(wire)
    } else {
        arguments.clone()
    };
    let begun = agent
        .post(
            &format!("/tools/{wire}/call?background=true"),
            &body.to_string(),
        )
        .unwrap();
    let begun = begun.json();
    let id = begun["invocation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{wire}: {begun}"))
        .to_owned();
    let question = operator.get(&format!("/approvals/{id}")).unwrap().json();
    let asked = question["tool_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{wire}: {question}"))
        .to_owned();
    let answer = json!({ "decision": "allow", "scope": "remember" }).to_string();
    let decided = operator
        .post(&format!("/approvals/{id}"), &answer)
        .unwrap()
        .json();
    let rule = decided["decided"]["rule"]
        .as_str()
        .unwrap_or_else(|| panic!("{wire}: {decided}"))
        .to_owned();
    let ended = operator
        .get(&format!("/invocations/{id}?wait=60"))
        .unwrap()
        .json();
    let text = ended.to_string();
    let ran = ["alpha", "beta", "module", "plugin", "native"]
        .into_iter()
        .find(|who| text.contains(&format!("{who} ran ")))
        .unwrap_or(if text.contains("made.txt") {
            "native"
        } else {
            "?"
        });
    assert_ne!(ran, "?", "{wire}: {text}");
    (ran.to_owned(), asked, rule)
}

fn check(naming: &str, more: &str, expected: &[(&str, &str, &str)]) {
    let home = crowded(naming, more);
    let host = serve(&home);
    let mut agent = host.connect(&home);
    let mut operator = host.socket(&home);
    let found = listed(&mut operator);
    let wanted: BTreeMap<String, String> = expected
        .iter()
        .map(|(wire, _, id)| ((*wire).to_owned(), (*id).to_owned()))
        .collect();
    assert_eq!(found, wanted, "naming {naming}{more}\n{}", host.banner);
    for (wire, source, id) in expected {
        let (ran, asked, rule) = row(&mut agent, &mut operator, wire);
        assert_eq!(
            (ran.as_str(), asked.as_str()),
            (*source, *id),
            "{wire} with naming {naming}{more}"
        );
        let exact = rule.strip_prefix("allow ").unwrap();
        let names_it = exact == *id || exact.starts_with(&format!("{id}("));
        assert!(names_it, "a yes for {id} is remembered as `{rule}`");
    }
    let told = home.run(&["tools"]).stderr;
    for (wire, _, id) in expected
        .iter()
        .filter(|(wire, ..)| wire.contains("__") && naming == "bare")
    {
        let line = format!("`{id}` is served as `{wire}`");
        assert!(host.banner.contains(&line), "{line}\n{}", host.banner);
        assert!(told.contains(&line), "{line}\n{told}");
    }
    assert!(
        host.banner
            .contains("the plugin `shell` is renamed to `shell_plugin`"),
        "{}",
        host.banner
    );
}

/// The rows of the servers, the module and the plugin, which lost their bare names to the host's own tools.
fn outside() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("alpha__shell", "alpha", "alpha.shell"),
        ("alpha__write_file", "alpha", "alpha.write_file"),
        ("alpha__read_file", "alpha", "alpha.read_file"),
        ("beta__shell", "beta", "beta.shell"),
        ("beta__write_file", "beta", "beta.write_file"),
        ("beta__read_file", "beta", "beta.read_file"),
        ("shell_plugin__shell", "plugin", "shell_plugin.shell"),
        (
            "shell_plugin__write_file",
            "plugin",
            "shell_plugin.write_file",
        ),
        (
            "shell_plugin__read_file",
            "plugin",
            "shell_plugin.read_file",
        ),
    ]
}

#[test]
fn the_hosts_own_tools_keep_their_names_in_every_naming() {
    let mut table = outside();
    table.extend([
        ("shell", "native", "shell.shell"),
        ("write_file", "native", "files.write_file"),
        ("read_file", "native", "files.read_file"),
        ("tool-popular__shell", "module", "tool-popular.shell"),
        (
            "tool-popular__write_file",
            "module",
            "tool-popular.write_file",
        ),
        (
            "tool-popular__read_file",
            "module",
            "tool-popular.read_file",
        ),
    ]);
    for naming in ["namespaced", "bare"] {
        check(naming, "", &table);
    }
}

#[test]
fn a_plan_has_the_native_names_that_the_operator_gives_it() {
    let mut table = outside();
    table.extend([
        ("shell", "native", "shell.shell"),
        ("tool-popular__shell", "module", "tool-popular.shell"),
        ("write_file", "module", "tool-popular.write_file"),
        ("read_file", "module", "tool-popular.read_file"),
    ]);
    check("bare", ", replace_native: [read_file, write_file]", &table);
    let home = crowded("bare", ", replace_native: all");
    let host = serve(&home);
    for (native, by) in [("shell.shell", "shell"), ("files.read_file", "read_file")] {
        let line = format!("`{native}` is not served: `tool-popular.{by}` replaces it");
        assert!(host.banner.contains(&line), "{line}\n{}", host.banner);
    }
    let told = home.run(&["tools"]).stderr;
    assert!(told.contains("`shell.shell` is not served"), "{told}");
}

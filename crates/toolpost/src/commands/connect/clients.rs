//! The clients, and the setup that each of them needs.

use clap::ValueEnum;
use serde_json::{Value, json};

/// The variable of the clients' token. A reference to it keeps the token out of shared files.
pub(super) const VARIABLE: &str = "TOOLPOST_TOKEN";

/// A client with a known setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AgentClient {
    ClaudeCode,
    ClaudeDesktop,
    Vscode,
    Cursor,
    Codex,
    Goose,
    /// Agents that use the A2E SDK for Python.
    A2e,
}

/// The way of the client to the host.
pub(super) enum ClientTransport {
    /// The address of `/mcp`.
    Address(String),
    /// The command that the client starts.
    Pipes { program: String, words: Vec<String> },
}

pub(super) struct ConnectRecipe {
    /// A shell command, if the client has one for it.
    pub(super) command: Option<String>,
    /// The file for the snippet.
    pub(super) file: &'static str,
    pub(super) snippet: Option<String>,
    pub(super) notes: Vec<String>,
}

impl ConnectRecipe {
    fn of(file: &'static str, snippet: String) -> Self {
        Self {
            command: None,
            file,
            snippet: Some(snippet),
            notes: Vec::new(),
        }
    }

    fn or_run(mut self, command: String) -> Self {
        self.command = Some(command);
        self
    }

    fn note(mut self, note: &str) -> Self {
        self.notes.push(note.to_owned());
        self
    }
}

impl AgentClient {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Vscode => "vscode",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Goose => "goose",
            Self::A2e => "a2e",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Goose => "goose",
            Self::A2e => "A2E SDK for Python",
        }
    }

    /// Whether the client has no way to send a token to a host on this machine.
    pub(super) fn prefers_pipes(self) -> bool {
        match self {
            Self::ClaudeDesktop => true,
            Self::ClaudeCode
            | Self::Vscode
            | Self::Cursor
            | Self::Codex
            | Self::Goose
            | Self::A2e => false,
        }
    }

    /// Whether it reads the token from its environment; the others prompt for it or need it in their file.
    pub(super) fn reads_environment(self) -> bool {
        match self {
            Self::ClaudeCode | Self::Cursor | Self::Codex | Self::Goose | Self::A2e => true,
            Self::ClaudeDesktop | Self::Vscode => false,
        }
    }

    pub(super) fn recipe(self, name: &str, reach: &ClientTransport) -> ConnectRecipe {
        match self {
            Self::ClaudeCode => claude_code(name, reach),
            Self::ClaudeDesktop => claude_desktop(name, reach),
            Self::Vscode => vscode(name, reach),
            Self::Cursor => cursor(name, reach),
            Self::Codex => codex(name, reach),
            Self::Goose => goose(name, reach),
            Self::A2e => a2e(reach),
        }
    }
}

/// A program that lists the tools with the SDK's own client.
fn a2e(reach: &ClientTransport) -> ConnectRecipe {
    let transport = match reach {
        ClientTransport::Address(address) => {
            let base = text(address.strip_suffix("/mcp").unwrap_or(address));
            format!("TransportConfig(type=\"http\", config=HTTPTransportConfig(base_url={base}))")
        }
        ClientTransport::Pipes { program, words } => {
            let words = words
                .iter()
                .map(|word| if word == "mcp" { "a2e" } else { word });
            let command =
                shlex::try_join(std::iter::once(program.as_str()).chain(words)).unwrap_or_default();
            let command = text(&command);
            format!(
                "TransportConfig(type=\"subprocess\", config=SubprocessTransportConfig(command={command}))"
            )
        }
    };
    let (config, token) = match reach {
        ClientTransport::Address(_) => {
            ("HTTPTransportConfig", format!("os.environ[\"{VARIABLE}\"]"))
        }
        ClientTransport::Pipes { .. } => ("SubprocessTransportConfig", "\"\"".to_owned()),
    };
    let snippet = format!(
        "import logging\nimport os\n\n\
         from a2e.caps.tools.client import ToolAPI\n\
         from a2e.core.client.client import A2EClient\n\
         from a2e.core.transports import TransportConfig, build_transport, {config}\n\n\
         log = logging.getLogger(\"agent\")\n\
         transport = build_transport({transport}, log)\n\
         client = A2EClient(transport=transport, logger=log, auth_token={token}, agent_caps=[\"tools\"])\n\
         client.connect()\n\
         for tool in ToolAPI(client).list():\n    print(tool.name)\n\
         client.disconnect()\n"
    );
    ConnectRecipe::of("a Python program that has the A2E SDK", snippet)
}

/// A quoted text that JSON, TOML and YAML all read. Only JSON would allow this control character unescaped.
fn text(text: &str) -> String {
    json!(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A list of texts that all three read.
fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|one| text(one)).collect();
    format!("[{}]", texts.join(", "))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

fn command_line(program: &str, words: &[String]) -> String {
    let all = std::iter::once(program).chain(words.iter().map(String::as_str));
    all.map(quoted).collect::<Vec<_>>().join(" ")
}

/// An `mcpServers` file, which several clients share.
fn servers(name: &str, entry: &Value) -> String {
    pretty(&json!({ "mcpServers": { name: entry } }))
}

fn started(program: &str, words: &[String]) -> Value {
    json!({ "command": program, "args": words })
}

fn claude_code(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str = "`.mcp.json` in the project";
    match reach {
        ClientTransport::Address(url) => {
            let bearer = format!("Bearer ${{{VARIABLE}}}");
            let entry =
                json!({ "type": "http", "url": url, "headers": { "Authorization": bearer } });
            // In single quotes the shell passes the reference on to the client, which documents that it resolves
            // references in `.mcp.json`; that is the file of the scope `project`.
            let command = format!(
                "claude mcp add --scope project --transport http {name} {url} --header 'Authorization: {bearer}'"
            );
            ConnectRecipe::of(FILE, servers(name, &entry)).or_run(command)
        }
        ClientTransport::Pipes { program, words } => {
            let command = format!("claude mcp add {name} -- {}", command_line(program, words));
            ConnectRecipe::of(FILE, servers(name, &started(program, words))).or_run(command)
        }
    }
}

fn claude_desktop(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str = "`claude_desktop_config.json` (Settings, Developer, Edit Config)";
    match reach {
        ClientTransport::Pipes { program, words } => {
            ConnectRecipe::of(FILE, servers(name, &started(program, words)))
                .note("restart Claude Desktop afterwards")
        }
        ClientTransport::Address(url) => {
            let entry = json!({
                "command": "npx",
                "args": ["-y", "mcp-remote", url, "--header", format!("Authorization:${{{VARIABLE}}}")],
                "env": { VARIABLE: "Bearer PUT-THE-TOKEN-HERE" },
            });
            ConnectRecipe::of(FILE, servers(name, &entry)).note(
                "this client has no access to your variables or to addresses of this machine, so a bridge \
                       (`mcp-remote`, requires Node) sends the token; `--stdio` needs neither",
            )
        }
    }
}

fn vscode(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str =
        "`.vscode/mcp.json` in the project, or the user's with `MCP: Open User Configuration`";
    match reach {
        ClientTransport::Address(url) => {
            let bearer = format!("Bearer ${{input:{name}-token}}");
            let entry =
                json!({ "type": "http", "url": url, "headers": { "Authorization": bearer } });
            let input = json!({
                "type": "promptString",
                "id": format!("{name}-token"),
                "description": "Toolpost's token",
                "password": true,
            });
            ConnectRecipe::of(
                FILE,
                pretty(&json!({ "servers": { name: entry }, "inputs": [input] })),
            )
            .note("VS Code asks for the token once and keeps it encrypted")
        }
        ClientTransport::Pipes { program, words } => {
            let mut entry = started(program, words);
            entry["type"] = json!("stdio");
            let mut named = entry.clone();
            named["name"] = json!(name);
            ConnectRecipe::of(FILE, pretty(&json!({ "servers": { name: entry } })))
                .or_run(format!("code --add-mcp {}", quoted(&named.to_string())))
        }
    }
}

fn cursor(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str = "`~/.cursor/mcp.json`, or `.cursor/mcp.json` in the project";
    match reach {
        ClientTransport::Address(url) => {
            let bearer = format!("Bearer ${{env:{VARIABLE}}}");
            ConnectRecipe::of(
                FILE,
                servers(
                    name,
                    &json!({ "url": url, "headers": { "Authorization": bearer } }),
                ),
            )
        }
        ClientTransport::Pipes { program, words } => {
            ConnectRecipe::of(FILE, servers(name, &started(program, words)))
        }
    }
}

fn codex(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str = "`~/.codex/config.toml`";
    match reach {
        ClientTransport::Address(url) => {
            let snippet = format!(
                "[mcp_servers.{name}]\nurl = {}\nbearer_token_env_var = \"{VARIABLE}\"",
                text(url)
            );
            ConnectRecipe::of(FILE, snippet).or_run(format!(
                "codex mcp add {name} --url {url} --bearer-token-env-var {VARIABLE}"
            ))
        }
        ClientTransport::Pipes { program, words } => {
            let snippet = format!(
                "[mcp_servers.{name}]\ncommand = {}\nargs = {}",
                text(program),
                list(words)
            );
            ConnectRecipe::of(FILE, snippet).or_run(format!(
                "codex mcp add {name} -- {}",
                command_line(program, words)
            ))
        }
    }
}

fn goose(name: &str, reach: &ClientTransport) -> ConnectRecipe {
    const FILE: &str = "`~/.config/goose/config.yaml`";
    // Quoted, since a name like `on` or `7` is no text in YAML. The description is required there.
    let name = text(name);
    let head = format!(
        "extensions:\n  {name}:\n    enabled: true\n    name: {name}\n    description: Tools of this workspace\n    \
         timeout: 300\n"
    );
    match reach {
        ClientTransport::Address(url) => {
            let rest = format!(
                "    type: streamable_http\n    uri: {}\n    env_keys: [{VARIABLE}]\n    headers:\n      \
                 Authorization: \"Bearer ${{{VARIABLE}}}\"",
                text(url)
            );
            ConnectRecipe::of(FILE, head + &rest)
        }
        ClientTransport::Pipes { program, words } => {
            let rest = format!(
                "    type: stdio\n    cmd: {}\n    args: {}",
                text(program),
                list(words)
            );
            ConnectRecipe::of(FILE, head + &rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use serde_json::Value;

    use super::{AgentClient, ClientTransport, VARIABLE};

    #[test]
    fn every_recipe_names_the_host_and_no_token() {
        let address = ClientTransport::Address("http://127.0.0.1:8765/mcp".to_owned());
        let words = ["serve", "--stdio", "mcp", "--workspace", "/a b"]
            .map(str::to_owned)
            .to_vec();
        let pipes = ClientTransport::Pipes {
            program: "/bin/toolpost".to_owned(),
            words,
        };
        for client in mcp_clients() {
            let word = client
                .to_possible_value()
                .map(|value| value.get_name().to_owned());
            assert_eq!(word.as_deref(), Some(client.word()));
            let told = client.recipe("tools", &address);
            let text = told.snippet.unwrap_or_default();
            assert!(
                text.contains("http://127.0.0.1:8765/mcp") && text.contains("tools"),
                "{text}"
            );
            assert!(
                text.contains(VARIABLE) || text.contains("${input:"),
                "{text}"
            );
            let told = client.recipe("tools", &pipes);
            let text = told.snippet.unwrap_or_default();
            assert!(text.contains("--stdio") && text.contains("/a b"), "{text}");
            assert!(told.command.is_none_or(|command| command.contains("/a b")));
        }
    }

    fn mcp_clients() -> impl Iterator<Item = &'static AgentClient> {
        AgentClient::value_variants()
            .iter()
            .filter(|client| **client != AgentClient::A2e)
    }

    #[test]
    fn the_python_of_a2e_comes_to_the_host_by_either_way() {
        let address = AgentClient::A2e.recipe(
            "tools",
            &ClientTransport::Address("http://127.0.0.1:8765/mcp".to_owned()),
        );
        let text = address.snippet.unwrap_or_default();
        assert!(
            text.contains("base_url=\"http://127.0.0.1:8765\"") && text.contains(VARIABLE),
            "{text}"
        );
        let words = ["serve", "--stdio", "mcp", "--workspace", "/a b"]
            .map(str::to_owned)
            .to_vec();
        let pipes = AgentClient::A2e.recipe(
            "tools",
            &ClientTransport::Pipes {
                program: "toolpost".to_owned(),
                words,
            },
        );
        let text = pipes.snippet.unwrap_or_default();
        assert!(
            text.contains("command=\"toolpost serve --stdio a2e --workspace '/a b'\""),
            "{text}"
        );
    }

    /// The client's view of its snippet.
    fn parsed(client: AgentClient, text: &str) -> Value {
        match client {
            AgentClient::ClaudeCode
            | AgentClient::ClaudeDesktop
            | AgentClient::Vscode
            | AgentClient::Cursor => serde_json::from_str(text).expect(text),
            AgentClient::Codex => {
                serde_json::to_value(text.parse::<toml::Table>().expect(text)).expect(text)
            }
            AgentClient::Goose => serde_saphyr::from_str(text).expect(text),
            AgentClient::A2e => unreachable!("it is no client of MCP"),
        }
    }

    #[test]
    fn every_snippet_is_read_as_it_was_meant() {
        let url = "http://127.0.0.1:8765/mcp";
        let odd = "/a b/\"q\" \\ # ${X} \u{7f}\u{1} ü: -";
        let words = ["serve", "--stdio", "mcp", "--workspace", odd]
            .map(str::to_owned)
            .to_vec();
        let address = ClientTransport::Address(url.to_owned());
        let pipes = ClientTransport::Pipes {
            program: odd.to_owned(),
            words,
        };
        for name in ["tools", "on", "7"] {
            for client in mcp_clients() {
                let (section, command, at) = match client {
                    AgentClient::ClaudeCode | AgentClient::Cursor => {
                        ("mcpServers", "command", "url")
                    }
                    AgentClient::ClaudeDesktop => ("mcpServers", "command", "command"),
                    AgentClient::Vscode => ("servers", "command", "url"),
                    AgentClient::Codex => ("mcp_servers", "command", "url"),
                    AgentClient::Goose => ("extensions", "cmd", "uri"),
                    AgentClient::A2e => unreachable!("it is no client of MCP"),
                };
                let told = client.recipe(name, &address).snippet.unwrap_or_default();
                let expected = if *client == AgentClient::ClaudeDesktop {
                    "npx"
                } else {
                    url
                };
                assert_eq!(
                    parsed(*client, &told)[section][name][at],
                    expected,
                    "{told}"
                );
                let told = client.recipe(name, &pipes).snippet.unwrap_or_default();
                let entry = parsed(*client, &told)[section][name].clone();
                assert_eq!(
                    (&entry[command], &entry["args"][4]),
                    (&odd.into(), &odd.into()),
                    "{told}"
                );
                if *client == AgentClient::Goose {
                    assert_eq!(entry["name"], name);
                    assert!(entry["description"].is_string(), "{told}");
                }
            }
        }
    }
}

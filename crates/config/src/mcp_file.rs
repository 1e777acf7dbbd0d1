//! A list of MCP servers in the format of other programs (`mcpServers`, or `servers` in an editor's `mcp.json`),
//! translated to this host's configuration.
//!
//! Several programs with different keys share such a file, so an unsupported key is no error; but each one is reported
//! in a notice. A server with an entry that cannot be used is reported, and the others run.

mod server;

use std::path::Path;

use crate::{
    ConfigErrors, ConfigNotice, LocatedValue,
    error::ConfigSourceText,
    jsonc,
    mcp_entry::{McpSaid, is_name, is_reserved_name},
    reading::{ConfigTable, ConfigTreeReader},
    snippet::shown,
    yaml::{MAX_BYTES, tree::YamlValue},
};

/// The key of the servers in various programs.
const SERVERS: [&str; 4] = ["mcpServers", "servers", "mcp_servers", "context_servers"];

/// A list of MCP servers, translated.
#[derive(Clone, Debug)]
pub struct McpServersFile {
    servers: Vec<(String, McpSaid)>,
    /// Keys that have no meaning here, or another one than their place suggests, in the order of the file.
    pub notices: Vec<ConfigNotice>,
}

impl McpServersFile {
    /// Translates the text of a file. `name` is its name in messages, `folder` the base of its relative paths.
    pub fn parse(text: &str, name: &str, folder: &Path) -> Result<Self, ConfigErrors> {
        if text.len() > MAX_BYTES {
            return Err(crate::ConfigError::too_large(name).into());
        }
        // Without the text: a line of such a file may contain a token and must not be shown.
        let source = ConfigSourceText { name, text: "" };
        let tree = jsonc::read(text).map_err(|complaint| source.error(complaint))?;
        let mut reading = ConfigTreeReader::new(source);
        let servers = match tree.value {
            YamlValue::Table(entries) => servers(
                ConfigTable::new(String::new(), tree.at, entries),
                folder,
                &mut reading,
            ),
            other => {
                reading.wrong_kind::<()>(
                    tree.at,
                    "the whole file",
                    "a table with `mcpServers`",
                    &other,
                );
                Vec::new()
            }
        };
        let servers = servers.into_iter().map(
            |LocatedValue {
                 value: (server, said),
                 at,
             }| {
                (
                    server,
                    McpSaid {
                        place: source.place(at),
                        ..said
                    },
                )
            },
        );
        Ok(Self {
            servers: servers.collect(),
            notices: reading.finish()?,
        })
    }

    /// The names of the servers, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn said(&self) -> impl Iterator<Item = (&str, &McpSaid)> {
        self.servers
            .iter()
            .map(|(name, said)| (name.as_str(), said))
    }
}

fn servers(
    mut root: ConfigTable,
    folder: &Path,
    reading: &mut ConfigTreeReader<'_>,
) -> Vec<LocatedValue<(String, McpSaid)>> {
    // Some editors keep the list within their own settings.
    let mut outer = reading.table(&mut root, "mcp");
    let table = outer.as_mut().unwrap_or(&mut root);
    let found = SERVERS.into_iter().find(|key| table.has(key));
    let Some(key) = found else {
        let hint = "add a table `mcpServers` with the servers by name".to_owned();
        reading.complain(table.at, "the file lists no MCP servers".to_owned(), hint);
        return Vec::new();
    };
    let listed = reading.table(table, key);
    if let Some(inputs) = table.take_entry("inputs") {
        let why = "the host does not prompt for inputs; keep the values in variables and write `${env:NAME}`";
        reading.ignored(inputs.key.at, "inputs".to_owned(), why);
    }
    reading.ignore_the_rest(table, "it is not a list of MCP servers");
    let mut servers: Vec<LocatedValue<(String, McpSaid)>> = Vec::new();
    for entry in listed.into_iter().flat_map(ConfigTable::into_entries) {
        let given = entry.key.value;
        let at = entry.key.at;
        let name = legal_name(&given);
        let mut said = match entry.value.value {
            YamlValue::Table(entries) => {
                let path = format!("{key}.{}", shown(&given));
                server::read(
                    ConfigTable::new(path, entry.value.at, entries),
                    folder,
                    reading,
                )
            }
            other => unusable(format!("expected a table, found {}", other.kind())),
        };
        if name.is_empty() {
            let message = format!(
                "`{}` is left out: a server's name requires an ASCII letter or digit",
                shown(&given)
            );
            reading.notice(at, given, message);
            continue;
        }
        if servers.iter().any(|earlier| earlier.value.0 == name) {
            let message = format!(
                "`{}` is left out: its name becomes `{name}`, and another server already has that name",
                shown(&given)
            );
            reading.notice(at, given, message);
            continue;
        }
        if name != given {
            let message = format!(
                "the server `{}` is renamed to `{name}`, also in its tools' ids",
                shown(&given)
            );
            reading.notice(at, given, message);
        }
        if is_reserved_name(&name) {
            let reason = format!(
                "`{name}` is reserved for the host's own tools\nhint: give the server another name"
            );
            said = McpSaid {
                unusable: Some(reason),
                ..said
            };
        }
        servers.push(LocatedValue {
            value: (name, said),
            at,
        });
    }
    servers
}

fn unusable(reason: String) -> McpSaid {
    McpSaid {
        unusable: Some(reason),
        ..McpSaid::default()
    }
}

/// The nearest name that is valid for a server here.
fn legal_name(given: &str) -> String {
    if is_name(given) {
        return given.to_owned();
    }
    let mut name = String::new();
    for c in given.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        };
        if !(matches!(c, '-' | '_') && (name.is_empty() || name.ends_with(['-', '_']))) {
            name.push(c);
        }
    }
    name.truncate(48);
    name.trim_end_matches(['-', '_']).to_owned()
}

//! `mcp`: from entries to the settings of servers. No message here quotes a value of `env`, `headers` or `args`, since
//! it may be a secret.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use toolpost_model::changes_code;

use crate::{
    ConfigDuration, FilePosition, LocatedValue, McpReach, McpSection, McpServerEntry, McpText,
    McpValue,
    error::{ConfigComplaint, ConfigSourceText},
    host_config::McpPiece,
    mcp_entry::{McpSaid, is_clear_program, is_name, is_reserved_name},
    snippet::shown,
};

use super::{
    http::is_host,
    limits::{check_deadline, check_lifetime, check_range, size},
    network::is_framing,
    path_complaint,
    sandbox::is_variable,
};

/// The longest plausible wait for the start of a server.
const LONGEST_CONNECT: Duration = Duration::from_secs(600);
/// The longest plausible wait of a client.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

pub(super) fn check(
    mcp: &McpSection,
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<(String, McpSaid)>> {
    let waits = ConfigDuration::new(Duration::from_millis(1))..=ConfigDuration::new(LONGEST_WAIT);
    check_range("mcp.approval_wait", mcp.approval_wait, waits, complaints);
    let mut checked = Vec::with_capacity(mcp.servers.len());
    for (name, LocatedValue { value: entry, at }) in &mcp.servers {
        complaints.extend(name_complaint(name, *at));
        let said = McpEntryCheck {
            name: shown(name),
            entry,
            at: *at,
            complaints,
        }
        .said();
        let said = McpSaid {
            place: source.place(*at),
            ..said
        };
        checked.push(LocatedValue {
            value: (name.clone(), said),
            at: *at,
        });
    }
    checked
}

fn name_complaint(name: &str, at: FilePosition) -> Option<ConfigComplaint> {
    if is_reserved_name(name) {
        let message = format!("`{name}` is reserved for the host's own tools");
        return Some(
            ConfigComplaint::new(at, message).hint(Some("give the server another name".to_owned())),
        );
    }
    let message = format!("`{}` is not a name for a server", shown(name));
    let hint =
        "use up to 48 letters, digits, `_` and `-`, without `__`, beginning with a letter or digit";
    (!is_name(name)).then(|| ConfigComplaint::new(at, message).hint(Some(hint.to_owned())))
}

/// An entry during its check.
struct McpEntryCheck<'a> {
    /// Safe to print.
    name: String,
    entry: &'a McpServerEntry,
    at: FilePosition,
    complaints: &'a mut Vec<ConfigComplaint>,
}

impl McpEntryCheck<'_> {
    fn key(&self, part: &str) -> String {
        format!("mcp.servers.{}.{part}", self.name)
    }

    fn complain(&mut self, at: FilePosition, message: String, hint: Option<&str>) {
        self.complaints
            .push(ConfigComplaint::new(at, message).hint(hint.map(ToOwned::to_owned)));
    }

    fn said(mut self) -> McpSaid {
        let entry = self.entry;
        self.numbers();
        self.confines();
        let env = self.values("env", &entry.env, Self::variable_complaint);
        let headers = self.values("headers", &entry.headers, Self::header_complaint);
        let said = McpSaid {
            reach: self.reach(),
            env,
            headers,
            disabled: entry.disabled.map(|disabled| disabled.value),
            required: entry.required.map(|required| required.value),
            era: entry.era.map(|era| era.value),
            naming: entry.naming.map(|naming| naming.value),
            share: entry.share.map(|share| share.value),
            start: entry.start.map(|start| start.value),
            new_tools: entry.new_tools.map(|new| new.value),
            allow: entry.tools.allow.as_ref().map(|allow| plain(&allow.value)),
            deny: plain(&entry.tools.deny),
            timeout: entry.timeout.map(|timeout| timeout.value.into()),
            connect_timeout: entry.connect_timeout.map(|timeout| timeout.value.into()),
            idle_stop: entry.idle_stop.map(|idle| idle.value.into()),
            max_message: entry.max_message.map(|size| size.value.into()),
            sandbox: entry.sandbox.map(|sandbox| sandbox.value),
            pass: plain(&entry.pass),
            readable: entry
                .readable
                .iter()
                .map(|path| path.value.clone())
                .collect(),
            writable: entry
                .writable
                .iter()
                .map(|path| path.value.clone())
                .collect(),
            reads: entry
                .reads
                .as_ref()
                .map(|reads| reads.value.iter().map(|path| path.value.clone()).collect()),
            files: Vec::new(),
            place: String::new(),
            unusable: None,
        };
        self.globs();
        said
    }

    fn numbers(&mut self) {
        let entry = self.entry;
        check_deadline(&self.key("timeout"), entry.timeout, self.complaints);
        let connect =
            ConfigDuration::new(Duration::from_millis(1))..=ConfigDuration::new(LONGEST_CONNECT);
        check_range(
            &self.key("connect_timeout"),
            entry.connect_timeout,
            connect,
            self.complaints,
        );
        check_lifetime(&self.key("idle_stop"), entry.idle_stop, self.complaints);
        check_range(
            &self.key("max_message"),
            entry.max_message,
            size(1 << 10)..=size(1 << 30),
            self.complaints,
        );
    }

    fn confines(&mut self) {
        let entry = self.entry;
        let reads = entry.reads.as_ref().map_or(&[][..], |reads| &reads.value);
        let lists = [
            ("readable", &entry.readable[..]),
            ("writable", &entry.writable),
            ("reads", reads),
        ];
        for (part, paths) in lists {
            let key = self.key(part);
            self.complaints
                .extend(paths.iter().filter_map(|path| path_complaint(&key, path)));
        }
        let cwd = self.key("cwd");
        self.complaints.extend(
            entry
                .cwd
                .as_ref()
                .and_then(|path| path_complaint(&cwd, path)),
        );
        let key = self.key("pass");
        for name in &entry.pass {
            if !is_variable(&name.value) {
                let message = format!(
                    "`{}` in `{key}` is not the name of a variable",
                    shown(&name.value)
                );
                self.complain(
                    name.at,
                    message,
                    Some("write only the name; values belong under `env`"),
                );
            } else if changes_code(&name.value) {
                let message = format!(
                    "`{}` in `{key}` is never passed on: it changes which code is loaded",
                    shown(&name.value)
                );
                self.complain(
                    name.at,
                    message,
                    Some("set its value under `env`, where it is visible"),
                );
            }
        }
    }

    fn globs(&mut self) {
        let tools = &self.entry.tools;
        let lists = [
            ("tools.allow", tools.allow.as_ref().map(|list| &list.value)),
            ("tools.deny", Some(&tools.deny)),
        ];
        for (part, list) in lists {
            let key = self.key(part);
            for pattern in list.into_iter().flatten() {
                let bad = pattern.value.is_empty() || globset::Glob::new(&pattern.value).is_err();
                if bad {
                    let message =
                        format!("`{}` in `{key}` is not a pattern", shown(&pattern.value));
                    self.complain(
                        pattern.at,
                        message,
                        Some("write the name of a tool, with `*` for any characters"),
                    );
                }
            }
        }
    }

    /// The way to reach the server, if the entry has one.
    fn reach(&mut self) -> Option<McpReach> {
        let entry = self.entry;
        self.transport();
        match (&entry.command, &entry.url) {
            (Some(command), None) => self.program(command),
            (None, Some(url)) => {
                let url = self.url(url)?;
                Some(McpReach::Http {
                    url,
                    headers: BTreeMap::new(),
                })
            }
            (Some(_), Some(url)) => {
                self.complain(
                    url.at,
                    format!("`{}` cannot be combined with `command`", self.key("url")),
                    Some("remove one: a server is a program or an endpoint"),
                );
                None
            }
            (None, None) => {
                let further = [
                    ("args", entry.args.as_ref().map(|args| args.at)),
                    ("cwd", entry.cwd.as_ref().map(|cwd| cwd.at)),
                ];
                for (part, at) in further {
                    if let Some(at) = at {
                        self.complain(
                            at,
                            format!("`{}` requires a `command`", self.key(part)),
                            None,
                        );
                    }
                }
                None
            }
        }
    }

    fn transport(&mut self) {
        let entry = self.entry;
        let Some(LocatedValue { value, at }) = &entry.transport else {
            return;
        };
        let key = self.key("type");
        let (message, hint) = match value.as_str() {
            "stdio" if entry.url.is_some() => (
                format!("`{key}` is `stdio`, but the server has a `url`"),
                "leave `type` out",
            ),
            "http" | "streamable-http" | "streamableHttp" | "streamable_http"
                if entry.command.is_some() =>
            {
                (
                    format!("`{key}` is `{value}`, but the server has a `command`"),
                    "leave `type` out",
                )
            }
            "stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http" => return,
            "sse" => (
                format!("`{key}` is `sse`, which is not supported"),
                "most such servers also offer streamable HTTP, often at the same host with `/mcp` at the end; write `type: http` and that `url`",
            ),
            other => (
                format!("`{key}` is `{}`", shown(other)),
                "write `stdio` or `http`",
            ),
        };
        self.complain(*at, message, Some(hint));
    }

    fn program(&mut self, command: &LocatedValue<String>) -> Option<McpReach> {
        let entry = self.entry;
        let key = self.key("command");
        if command.value.trim().is_empty() || command.value.contains('\0') {
            self.complain(command.at, format!("`{key}` is not a program"), None);
        } else if command.value.contains(' ') && !command.value.contains('/') {
            self.complain(
                command.at,
                format!("`{key}` contains spaces"),
                Some("write the arguments under `args`"),
            );
        } else if !is_clear_program(&command.value) {
            let hint = "write a name that is found in PATH, `./FILE` for a file beside this one, or an absolute path";
            self.complain(
                command.at,
                format!("`{key}` is neither a name nor an unambiguous path"),
                Some(hint),
            );
        }
        let args = entry.args.iter().flat_map(|args| &args.value);
        let args: Vec<_> = args.filter_map(|word| self.text("args", word)).collect();
        let cwd = entry.cwd.as_ref().and_then(|cwd| {
            let text = LocatedValue {
                value: cwd.value.to_string_lossy().into_owned(),
                at: cwd.at,
            };
            self.text("cwd", &text)
        });
        let command = self.text("command", command)?;
        Some(McpReach::Program {
            command,
            args,
            cwd,
            folder: PathBuf::new(),
            env: BTreeMap::new(),
        })
    }

    fn url(&mut self, url: &LocatedValue<String>) -> Option<McpText> {
        let text = self.text("url", url)?;
        if let Some(plain) = text.as_plain()
            && let Err(why) = check_url(plain)
        {
            self.complain(
                url.at,
                format!("`{}` {why}", self.key("url")),
                Some("write a URL such as `https://mcp.example.org/mcp`"),
            );
        }
        Some(text)
    }

    fn text(&mut self, part: &str, written: &LocatedValue<String>) -> Option<McpText> {
        match McpText::parse(&written.value, Path::new("")) {
            Ok(text) => Some(text),
            Err(error) => {
                let message = format!("`{}`: {error}", self.key(part));
                self.complain(written.at, message, Some(error.hint()));
                None
            }
        }
    }

    fn values(
        &mut self,
        part: &str,
        written: &BTreeMap<String, LocatedValue<McpValue>>,
        name_complaint: fn(&mut Self, &str, FilePosition),
    ) -> BTreeMap<String, McpText> {
        let mut values = BTreeMap::new();
        for (name, LocatedValue { value, at }) in written {
            name_complaint(self, name, *at);
            let key = self.key(&format!("{part}.{}", shown(name)));
            let text = match value {
                McpValue::Text(text) => match self.text(
                    &format!("{part}.{}", shown(name)),
                    &LocatedValue {
                        value: text.clone(),
                        at: *at,
                    },
                ) {
                    Some(text) => text,
                    None => continue,
                },
                McpValue::File(path) => {
                    let path = LocatedValue {
                        value: path.clone(),
                        at: *at,
                    };
                    self.complaints.extend(path_complaint(&key, &path));
                    McpText::of(McpPiece::File(path.value))
                }
                McpValue::Variable(variable) => {
                    if !is_variable(variable) {
                        self.complain(
                            *at,
                            format!("`{key}.env` is not the name of a variable"),
                            None,
                        );
                    }
                    McpText::of(McpPiece::Variable {
                        name: variable.clone(),
                        default: None,
                    })
                }
            };
            values.insert(name.clone(), text);
        }
        values
    }

    fn variable_complaint(&mut self, name: &str, at: FilePosition) {
        if !is_variable(name) {
            let message = format!(
                "`{}` in `{}` is not the name of a variable",
                shown(name),
                self.key("env")
            );
            self.complain(at, message, None);
        }
    }

    fn header_complaint(&mut self, name: &str, at: FilePosition) {
        if let Some(why) = header_problem(name) {
            self.complain(
                at,
                format!("`{}` in `{}` {why}", shown(name), self.key("headers")),
                None,
            );
        }
        if self.entry.command.is_some() {
            self.complain(
                self.at,
                format!(
                    "`{}` cannot be combined with `command`",
                    self.key("headers")
                ),
                Some("set variables under `env` instead"),
            );
        }
    }
}

/// Why a header cannot be set on every request.
pub(crate) fn header_problem(name: &str) -> Option<&'static str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > 128 || !name.bytes().all(legal) {
        Some("is not the name of a header")
    } else if is_framing(&lower) || lower == "accept" || lower.starts_with("mcp-") {
        Some("is a header that the protocol sets itself")
    } else {
        None
    }
}

/// Why a text is no endpoint.
pub(crate) fn check_url(text: &str) -> Result<(), &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or("is not a URL")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return Err("is neither `http` nor `https`");
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("contains a user or password; send it under `headers` instead");
    }
    if !is_host(host) || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err("is not a URL");
    }
    Ok(())
}

fn plain(list: &[LocatedValue<String>]) -> Vec<String> {
    list.iter().map(|text| text.value.clone()).collect()
}

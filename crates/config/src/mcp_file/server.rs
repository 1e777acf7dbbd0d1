//! A server of such a list.

use std::{collections::BTreeMap, path::Path, time::Duration};

use crate::{
    FilePosition, LocatedValue, McpReach, McpText,
    check::mcp::{check_url, header_problem},
    mcp_entry::{McpSaid, program},
    reading::{ConfigTable, ConfigTreeReader},
    snippet::shown,
    yaml::tree::YamlValue,
};

/// Keys of other programs, with their replacements here.
const ELSEWHERE: [(&str, &str); 12] = [
    ("alwaysAllow", "use rules to allow calls"),
    ("autoApprove", "use rules to allow calls"),
    (
        "trust",
        "use rules to allow calls, and `sources` to trust a server's statements",
    ),
    (
        "disabledTools",
        "`mcp.servers.NAME.tools.deny` in `toolpost.yaml` leaves tools out",
    ),
    (
        "enabledTools",
        "`mcp.servers.NAME.tools.allow` in `toolpost.yaml` chooses tools",
    ),
    (
        "includeTools",
        "`mcp.servers.NAME.tools.allow` in `toolpost.yaml` chooses tools",
    ),
    (
        "excludeTools",
        "`mcp.servers.NAME.tools.deny` in `toolpost.yaml` leaves tools out",
    ),
    (
        "envFile",
        "`${file:PATH}` refers to a file that holds one value",
    ),
    (
        "oauth",
        "a token is sent with `headers`, as `Bearer ${env:NAME}`",
    ),
    (
        "auth",
        "a token is sent with `headers`, as `Bearer ${env:NAME}`",
    ),
    ("description", "it is never shown"),
    ("icon", "it is never shown"),
];

/// Why a server cannot be used.
struct UnusableServerReason(String);

pub(super) fn read(
    mut server: ConfigTable,
    folder: &Path,
    reading: &mut ConfigTreeReader<'_>,
) -> McpSaid {
    let disabled = reading.lenient_flag(&mut server, "disabled");
    let enabled = reading.lenient_flag(&mut server, "enabled");
    let timeout = timeout(&mut server, reading);
    let mut files = Vec::new();
    let reach = reach(&mut server, folder, &mut files, reading);
    let (reach, unusable) = match reach {
        Ok(reach) => (Some(reach), None),
        Err(UnusableServerReason(reason)) => (None, Some(reason)),
    };
    leave_out(&mut server, reading);
    McpSaid {
        reach,
        unusable,
        disabled: disabled.or(enabled.map(|enabled| !enabled)),
        timeout,
        files,
        ..McpSaid::default()
    }
}

fn reach(
    server: &mut ConfigTable,
    folder: &Path,
    files: &mut Vec<std::path::PathBuf>,
    reading: &mut ConfigTreeReader<'_>,
) -> Result<McpReach, UnusableServerReason> {
    let kind = text(server, &["type", "transport"])?;
    let kind = kind.map(|kind| kind.value);
    let command = text(server, &["command"])?;
    let url = text(server, &["url", "serverUrl", "httpUrl", "uri"])?;
    match kind.as_deref() {
        None
        | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => {}
        Some("sse") => {
            let hint = "most such servers also offer streamable HTTP, often at the same host with `/mcp` at the end";
            return Err(UnusableServerReason(format!(
                "its type is `sse`, which is not supported\nhint: {hint}"
            )));
        }
        Some(other) => {
            return Err(UnusableServerReason(format!(
                "its type is `{}`, which is unknown",
                shown(other)
            )));
        }
    }
    match (command, url) {
        (Some(command), None) => program_reach(&command.value, server, folder, files),
        (None, Some(url)) => {
            let url = parsed("url", &url.value, folder)?;
            if let Some(plain) = url.as_plain() {
                check_url(plain).map_err(|why| UnusableServerReason(format!("its `url` {why}")))?;
            }
            let headers = values(server, &["headers", "requestInit.headers"], folder)?;
            for name in headers.keys() {
                if let Some(why) = header_problem(name) {
                    return Err(UnusableServerReason(format!(
                        "`{}` in its `headers` {why}",
                        shown(name)
                    )));
                }
            }
            Ok(McpReach::Http { url, headers })
        }
        (Some(_), Some(url)) => {
            reading.ignored(url.at, server.path_of("url"), "the server is a program");
            Err(UnusableServerReason(
                "it has a `command` and a `url`; it can only have one".to_owned(),
            ))
        }
        (None, None) => Err(UnusableServerReason(
            "it has neither a `command` nor a `url`".to_owned(),
        )),
    }
}

fn program_reach(
    command: &str,
    server: &mut ConfigTable,
    folder: &Path,
    files: &mut Vec<std::path::PathBuf>,
) -> Result<McpReach, UnusableServerReason> {
    if command.trim().is_empty() || command.contains('\0') {
        return Err(UnusableServerReason(
            "its `command` is not a program".to_owned(),
        ));
    }
    let cwd = text(server, &["cwd"])?
        .map(|cwd| parsed("cwd", &cwd.value, folder))
        .transpose()?;
    let mut args = Vec::new();
    for (index, word) in words(server)?.iter().enumerate() {
        let beside = cwd.is_none() && (word.starts_with("./") || word.starts_with("../"));
        let word = if beside {
            program(word, folder)
        } else {
            word.clone()
        };
        if beside {
            files.push(word.clone().into());
        }
        args.push(parsed(&format!("args[{index}]"), &word, folder)?);
    }
    let whole = program(command, folder);
    if whole != command {
        files.push(whole.clone().into());
    }
    let env = values(server, &["env"], folder)?;
    let named = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(name) = env.keys().find(|name| !named(name)) {
        return Err(UnusableServerReason(format!(
            "`{}` in its `env` is not the name of a variable",
            shown(name)
        )));
    }
    let command = parsed("command", &whole, folder)?;
    Ok(McpReach::Program {
        command,
        args,
        cwd,
        folder: folder.to_owned(),
        env,
    })
}

fn parsed(key: &str, text: &str, folder: &Path) -> Result<McpText, UnusableServerReason> {
    McpText::parse(text, folder).map_err(|error| {
        UnusableServerReason(format!("in its `{key}`, {error}\nhint: {}", error.hint()))
    })
}

fn text(
    server: &mut ConfigTable,
    keys: &[&str],
) -> Result<Option<LocatedValue<String>>, UnusableServerReason> {
    for key in keys {
        match server.take(key) {
            None => {}
            Some(LocatedValue {
                value: YamlValue::Text(value),
                at,
            }) => return Ok(Some(LocatedValue { value, at })),
            Some(other) => {
                return Err(UnusableServerReason(format!(
                    "its `{key}` is {}, where a text is expected",
                    other.value.kind()
                )));
            }
        }
    }
    Ok(None)
}

fn words(server: &mut ConfigTable) -> Result<Vec<String>, UnusableServerReason> {
    let Some(args) = server.take("args") else {
        return Ok(Vec::new());
    };
    let wrong = |found: &YamlValue| {
        UnusableServerReason(format!(
            "its `args` hold {}, where texts are expected",
            found.kind()
        ))
    };
    match args.value {
        YamlValue::List(items) => items
            .into_iter()
            .map(|item| scalar(&item.value).ok_or_else(|| wrong(&item.value)))
            .collect(),
        other => Err(wrong(&other)),
    }
}

fn values(
    server: &mut ConfigTable,
    keys: &[&str],
    folder: &Path,
) -> Result<BTreeMap<String, McpText>, UnusableServerReason> {
    let mut values = BTreeMap::new();
    for key in keys {
        match server.take(key).map(|found| found.value) {
            None => {}
            Some(YamlValue::Table(entries)) => {
                for entry in entries {
                    let name = entry.key.value;
                    let wrong = || {
                        UnusableServerReason(format!(
                            "`{}` in its `{key}` is not a text",
                            shown(&name)
                        ))
                    };
                    // `null` means an unset variable to some programs.
                    if matches!(entry.value.value, YamlValue::Null) {
                        continue;
                    }
                    let text = scalar(&entry.value.value).ok_or_else(wrong)?;
                    let text = parsed(&format!("{key}.{}", shown(&name)), &text, folder)?;
                    values.insert(name, text);
                }
            }
            Some(other) => {
                return Err(UnusableServerReason(format!(
                    "its `{key}` is {}, where a table is expected",
                    other.kind()
                )));
            }
        }
    }
    Ok(values)
}

fn scalar(value: &YamlValue) -> Option<String> {
    match value {
        YamlValue::Text(text) => Some(text.clone()),
        YamlValue::Flag(flag) => Some(flag.to_string()),
        YamlValue::Whole(number) => Some(number.to_string()),
        YamlValue::Fraction(number) => Some(number.to_string()),
        YamlValue::Null | YamlValue::List(_) | YamlValue::Table(_) => None,
    }
}

/// Some programs use seconds and some milliseconds. Neither a thousand seconds nor one millisecond is plausible.
fn timeout(server: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) -> Option<Duration> {
    let key = server.path_of("timeout");
    let LocatedValue { value, at } = server.take("timeout")?;
    let number = match value {
        YamlValue::Whole(number) => u64::try_from(number).ok().filter(|number| *number > 0),
        _ => None,
    };
    let Some(number) = number else {
        reading.ignored(at, key, "it is not a whole number above zero");
        return None;
    };
    let (read, unit) = if number >= 1000 {
        (Duration::from_millis(number), "milliseconds")
    } else {
        (Duration::from_secs(number), "seconds")
    };
    reading.notice(at, key.clone(), format!("`{key}` is read as {unit}"));
    Some(read.min(Duration::from_secs(24 * 60 * 60)))
}

/// Reports every key without a meaning here.
fn leave_out(server: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) {
    for (key, instead) in ELSEWHERE {
        let path = server.path_of(key);
        let Some(entry) = server.take_entry(key) else {
            continue;
        };
        let why = match (key, &entry.value.value) {
            ("alwaysAllow" | "autoApprove", YamlValue::List(tools)) => rules(server, tools),
            _ => instead.to_owned(),
        };
        notice(entry.key.at, path, &why, reading);
    }
    reading.ignore_the_rest(server, "this host has no such key");
}

fn notice(at: FilePosition, path: String, why: &str, reading: &mut ConfigTreeReader<'_>) {
    reading.ignored(at, path, why);
}

/// The rules with the effect of another program's list of allowed tools.
fn rules(server: &ConfigTable, tools: &[LocatedValue<YamlValue>]) -> String {
    let name = server.path().rsplit('.').next().unwrap_or_default();
    let named = tools.iter().filter_map(|tool| match &tool.value {
        YamlValue::Text(tool) => Some(format!("`allow {name}.{}`", shown(tool))),
        _ => None,
    });
    let named: Vec<String> = named.take(3).collect();
    let more = if tools.len() > named.len() {
        " and so on"
    } else {
        ""
    };
    format!("use rules to allow calls: {}{more}", named.join(", "))
}

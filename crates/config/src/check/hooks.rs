//! `hooks`: from entries to valid [`HookConfig`]s.

use std::time::Duration;

use toolpost_model::{RuleError, Selector, ToolPattern};

use crate::{
    ConfigDuration, HookConfig, HookEntry, LocatedValue,
    error::{ConfigComplaint, ConfigSourceText},
    located::FilePosition,
    snippet::shown,
};

use super::{limits::check_range, path_complaint, rules::error_message, sandbox::check_variables};

/// The longest wait for a hook, equal to the host's limit for all waits before a call.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) fn check(
    hooks: &[LocatedValue<HookEntry>],
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<HookConfig>> {
    let mut checked: Vec<LocatedValue<HookConfig>> = Vec::with_capacity(hooks.len());
    for LocatedValue { value: entry, at } in hooks {
        let name = &entry.name;
        if !is_name(&name.value) {
            let message = format!("`{}` is not a name for a hook", shown(&name.value));
            let hint =
                "use up to 64 letters, digits, `_` and `-`, beginning with a letter".to_owned();
            complaints.push(ConfigComplaint::new(name.at, message).hint(Some(hint)));
        } else if checked
            .iter()
            .any(|earlier| earlier.value.name == name.value)
        {
            let message = format!("there are two hooks called `{}`", name.value);
            complaints.push(ConfigComplaint::new(name.at, message));
        }
        let key = |part: &str| format!("hooks.{}.{part}", shown(&name.value));
        let events = entry.event.value.values();
        if events.is_empty() {
            let message = format!("`{}` is empty, so the hook would never run", key("event"));
            complaints.push(ConfigComplaint::new(entry.event.at, message));
        }
        let range = ConfigDuration::new(Duration::from_millis(1))..=ConfigDuration::new(LONGEST);
        check_range(&key("timeout"), entry.timeout, range, complaints);
        let writable = entry.writable.iter();
        complaints.extend(writable.filter_map(|path| path_complaint(&key("writable"), path)));
        check_variables(&key("environment"), &entry.environment, complaints);
        check_command(&key("command"), &entry.command, complaints);
        let hook = HookConfig {
            name: name.value.clone(),
            events: events.iter().map(|event| event.value).collect(),
            tools: tools(&key("tools"), entry, complaints),
            when: when(&key("when"), entry, complaints),
            command: entry
                .command
                .value
                .iter()
                .map(|word| word.value.clone())
                .collect(),
            files: Vec::new(),
            standing: entry
                .standing
                .map(|standing| standing.value)
                .unwrap_or_default(),
            timeout: entry.timeout.map(|timeout| timeout.value.into()),
            profile: entry
                .profile
                .map_or(HookConfig::PROFILE, |profile| profile.value),
            writable: entry
                .writable
                .iter()
                .map(|path| path.value.clone())
                .collect(),
            environment: entry
                .environment
                .iter()
                .map(|name| name.value.clone())
                .collect(),
            place: source.place(*at),
        };
        checked.push(LocatedValue {
            value: hook,
            at: *at,
        });
    }
    checked
}

fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(legal)
}

/// Checks the command line of an operator's program.
pub(super) fn check_command(
    key: &str,
    command: &LocatedValue<Vec<LocatedValue<String>>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    let Some(program) = command.value.first() else {
        let hint =
            "write the program and its arguments, such as `[python3, ./guard.py]`".to_owned();
        complaints
            .push(ConfigComplaint::new(command.at, format!("`{key}` is empty")).hint(Some(hint)));
        return;
    };
    for word in command
        .value
        .iter()
        .filter(|word| word.value.contains('\0'))
    {
        complaints.push(ConfigComplaint::new(
            word.at,
            format!("`{key}` holds a NUL character"),
        ));
    }
    let text = &program.value;
    let is_file = ["/", "./", "../"]
        .iter()
        .any(|begin| text.starts_with(begin));
    if text.trim().is_empty() {
        complaints.push(ConfigComplaint::new(
            program.at,
            format!("the program in `{key}` is empty"),
        ));
    } else if !is_file && text.contains('/') {
        // It would depend on the folder that the program starts in, where agents can write.
        let message = format!(
            "the program `{}` is neither a name nor an unambiguous path",
            shown(text)
        );
        let hint = "write a name that is found in PATH, `./FILE` for a file beside this one, or an absolute path";
        complaints.push(ConfigComplaint::new(program.at, message).hint(Some(hint.to_owned())));
    }
}

/// The place of a word that may have none of its own.
fn place(own: FilePosition, outer: FilePosition) -> FilePosition {
    if own == FilePosition::default() {
        outer
    } else {
        own
    }
}

fn tools(key: &str, entry: &HookEntry, complaints: &mut Vec<ConfigComplaint>) -> Vec<ToolPattern> {
    let Some(tools) = &entry.tools else {
        return Vec::new();
    };
    if tools.value.values().is_empty() {
        let hint = "leave the key out for every tool".to_owned();
        complaints
            .push(ConfigComplaint::new(tools.at, format!("`{key}` is empty")).hint(Some(hint)));
    }
    let mut patterns = Vec::new();
    for pattern in tools.value.values() {
        match pattern.value.parse::<ToolPattern>() {
            Ok(parsed) => patterns.push(parsed),
            Err(error) => {
                let at = place(pattern.at, tools.at);
                complaints.push(ConfigComplaint::new(
                    at,
                    format!("`{key}`: {}", error_message(&error)),
                ));
            }
        }
    }
    patterns
}

fn when(key: &str, entry: &HookEntry, complaints: &mut Vec<ConfigComplaint>) -> Option<Selector> {
    let LocatedValue { value: text, at } = entry.when.as_ref()?;
    let mut complain =
        |message: String| complaints.push(ConfigComplaint::new(*at, format!("`{key}`: {message}")));
    match text.trim().parse::<Selector>() {
        Ok(selector) => return Some(selector),
        Err(RuleError::Form(_)) => {
            complain(format!("`{}` is not a selector of calls", shown(text)));
        }
        Err(error) => complain(error_message(&error)),
    }
    None
}

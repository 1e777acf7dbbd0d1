//! `tools` and `sources`: possible names of tools, and plausible settings.

use std::collections::BTreeMap;

use toolpost_model::ToolPattern;

use crate::{
    LocatedValue, SourceEntry, ToolEntry, error::ConfigComplaint, nearest::suggestion, profiles,
    snippet::shown,
};

use super::limits::{check_chars, check_count, check_deadline, check_range, size};

/// The longest name that model providers accept.
const LONGEST_NAME: usize = 64;

pub(super) fn check(
    tools: &BTreeMap<String, LocatedValue<ToolEntry>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    for (key, entry) in tools {
        if key.len() > 256 || key.parse::<ToolPattern>().is_err() {
            let message = format!(
                "`{}` is not the name or id of a tool, nor a pattern of them",
                shown(key)
            );
            complaints.push(ConfigComplaint::new(entry.at, message));
        }
        let tool = &entry.value;
        let name = shown(key);
        let at = |setting: &str| format!("tools.{name}.{setting}");
        check_deadline(&at("timeout"), tool.timeout, complaints);
        check_deadline(&at("ceiling"), tool.ceiling, complaints);
        check_chars(&at("max_inline_chars"), tool.max_inline_chars, complaints);
        check_range(
            &at("argument_bytes"),
            tool.argument_bytes,
            size(1)..=size(1 << 30),
            complaints,
        );
        check_count(&at("concurrency"), tool.concurrency, complaints);
        if let (Some(timeout), Some(ceiling)) = (tool.timeout, tool.ceiling)
            && timeout.value > ceiling.value
        {
            let (timeout, at, ceiling) = (timeout.value, timeout.at, ceiling.value);
            let message = format!(
                "`tools.{name}.timeout` is {timeout}, longer than its `ceiling`, which is {ceiling}"
            );
            complaints.push(ConfigComplaint::new(at, message));
        }
        complaints.extend(
            tool.name
                .as_ref()
                .and_then(|wanted| name_complaint(key, wanted)),
        );
        let pointers = tool
            .sensitive
            .iter()
            .map(|pointer| (pointer.value.as_str(), pointer.at));
        let meant = tool
            .arguments
            .iter()
            .map(|(pointer, kinds)| (pointer.as_str(), kinds.at));
        for (pointer, at) in pointers
            .chain(meant)
            .filter(|(pointer, _)| !is_pointer(pointer))
        {
            let message = format!("`{}` is not a JSON pointer", shown(pointer));
            let hint = "begin with a slash, such as `/path` or `/login/pin`".to_owned();
            complaints.push(ConfigComplaint::new(at, message).hint(Some(hint)));
        }
        for kinds in tool
            .arguments
            .values()
            .filter(|kinds| kinds.value.0.is_empty())
        {
            complaints.push(ConfigComplaint::new(
                kinds.at,
                "the list of meanings is empty",
            ));
        }
    }
}

fn name_complaint(key: &str, name: &LocatedValue<String>) -> Option<ConfigComplaint> {
    if key.contains('*') {
        let message = format!(
            "`tools.{}.name` would give one name to several tools",
            shown(key)
        );
        return Some(ConfigComplaint::new(name.at, message).hint(Some("name one tool".to_owned())));
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let good = (1..=LONGEST_NAME).contains(&name.value.len()) && name.value.bytes().all(legal);
    (!good).then(|| {
        let hint = format!("use up to {LONGEST_NAME} letters, digits, `_` and `-`");
        ConfigComplaint::new(
            name.at,
            format!("`{}` is not a name for a tool", shown(&name.value)),
        )
        .hint(Some(hint))
    })
}

/// A pointer to a part of the arguments. The empty pointer would be all of them.
fn is_pointer(text: &str) -> bool {
    let escapes = |part: &str| {
        part.split('~')
            .skip(1)
            .all(|rest| rest.starts_with(['0', '1']))
    };
    text.starts_with('/') && text.len() <= 1024 && text.split('/').all(escapes)
}

pub(super) fn check_sources(
    sources: &BTreeMap<String, LocatedValue<SourceEntry>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    for (name, entry) in sources {
        if name.trim().is_empty() || name.len() > 256 {
            complaints.push(ConfigComplaint::new(
                entry.at,
                format!("`{}` is not the name of a source", shown(name)),
            ));
        }
        let source = &entry.value;
        check_count(
            &format!("sources.{}.concurrency", shown(name)),
            source.concurrency,
            complaints,
        );
        if let Some(profile) = &source.profile
            && !profiles::NAMES.contains(&profile.value.as_str())
        {
            let message = format!("there is no profile `{}`", shown(&profile.value));
            let hint = suggestion(&profile.value, &profiles::NAMES, "the profiles are");
            complaints.push(ConfigComplaint::new(profile.at, message).hint(hint));
        }
    }
}

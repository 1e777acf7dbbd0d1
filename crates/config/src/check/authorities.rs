//! `authorities`: from entries to valid [`AuthorityConfig`]s.

use std::{collections::BTreeMap, time::Duration};

use toolpost_model::AuthorityName;

use crate::{
    AuthorityConfig, AuthorityEntry, AuthorityReachConfig, ConfigDuration, HookConfig,
    LocatedValue,
    error::{ConfigComplaint, ConfigSourceText},
    snippet::shown,
};

use super::{
    hooks::check_command,
    limits::{check_range, size},
    network::prefix,
    path_complaint,
    sandbox::check_variables,
};

/// The longest wait for a decision, equal to the host's limit for all waits before a call.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest time that an answer may be reused.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn check(
    authorities: &BTreeMap<String, LocatedValue<AuthorityEntry>>,
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<AuthorityConfig>> {
    let mut checked = Vec::with_capacity(authorities.len());
    for (name, LocatedValue { value: entry, at }) in authorities {
        let at = *at;
        let name = match name.parse::<AuthorityName>() {
            Ok(name) => name,
            Err(_) => {
                let message = format!("`{}` is not a name for an authority", shown(name));
                let hint =
                    "use up to 64 letters, digits, `_` and `-`, beginning with a letter".to_owned();
                complaints.push(ConfigComplaint::new(at, message).hint(Some(hint)));
                continue;
            }
        };
        let key = |part: &str| format!("authorities.{name}.{part}");
        let millisecond = ConfigDuration::new(Duration::from_millis(1));
        check_range(
            &key("timeout"),
            entry.timeout,
            millisecond..=ConfigDuration::new(LONGEST),
            complaints,
        );
        check_range(
            &key("cache"),
            entry.cache,
            millisecond..=ConfigDuration::new(OLDEST),
            complaints,
        );
        let reach = match (&entry.url, &entry.command) {
            (Some(url), None) => endpoint(entry, url, &key, complaints),
            (None, Some(command)) => program(entry, command, &key, complaints),
            (Some(_), Some(_)) | (None, None) => {
                let message = format!("the authority `{name}` needs either a `url` or a `command`");
                complaints.push(ConfigComplaint::new(at, message));
                None
            }
        };
        let Some(reach) = reach else { continue };
        let value = AuthorityConfig {
            name,
            reach,
            timeout: entry
                .timeout
                .map_or(AuthorityConfig::TIMEOUT, |timeout| timeout.value.into()),
            cache: entry.cache.map(|cache| cache.value.into()),
            place: source.place(at),
        };
        checked.push(LocatedValue { value, at });
    }
    checked
}

fn endpoint(
    entry: &AuthorityEntry,
    url: &LocatedValue<String>,
    key: &impl Fn(&str) -> String,
    complaints: &mut Vec<ConfigComplaint>,
) -> Option<AuthorityReachConfig> {
    let of_program = [
        ("profile", entry.profile.map(|profile| profile.at)),
        ("writable", entry.writable.first().map(|path| path.at)),
        ("environment", entry.environment.first().map(|name| name.at)),
    ];
    refuse("command", of_program, key, complaints);
    check_range(
        &key("max_answer"),
        entry.max_answer,
        size(1)..=size(1 << 20),
        complaints,
    );
    let Some(whole) = prefix(&url.value) else {
        // There may be a password before an `@`.
        let quoted = match url.value.contains('@') {
            true => "a text with `@`".to_owned(),
            false => format!("`{}`", shown(&url.value)),
        };
        let hint = "write scheme, host and path, such as `http://127.0.0.1:8181/v1/data/toolpost/decision`";
        let message = format!(
            "{quoted} in `{}` is not the address of a policy endpoint",
            key("url")
        );
        complaints.push(ConfigComplaint::new(url.at, message).hint(Some(hint.to_owned())));
        return None;
    };
    Some(AuthorityReachConfig::Endpoint {
        url: whole,
        credential: entry
            .credential
            .as_ref()
            .map(|credential| credential.value.clone()),
        max_answer: entry
            .max_answer
            .map_or(AuthorityConfig::MAX_ANSWER, |most| most.value.into()),
    })
}

fn program(
    entry: &AuthorityEntry,
    command: &LocatedValue<Vec<LocatedValue<String>>>,
    key: &impl Fn(&str) -> String,
    complaints: &mut Vec<ConfigComplaint>,
) -> Option<AuthorityReachConfig> {
    let of_endpoint = [
        (
            "credential",
            entry.credential.as_ref().map(|credential| credential.at),
        ),
        ("max_answer", entry.max_answer.map(|most| most.at)),
    ];
    refuse("url", of_endpoint, key, complaints);
    complaints.extend(
        entry
            .writable
            .iter()
            .filter_map(|path| path_complaint(&key("writable"), path)),
    );
    check_variables(&key("environment"), &entry.environment, complaints);
    check_command(&key("command"), command, complaints);
    Some(AuthorityReachConfig::Program {
        command: command
            .value
            .iter()
            .map(|word| word.value.clone())
            .collect(),
        files: Vec::new(),
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
    })
}

/// Reports keys that are only valid beside `other`.
fn refuse<const COUNT: usize>(
    other: &str,
    keys: [(&str, Option<crate::FilePosition>); COUNT],
    key: &impl Fn(&str) -> String,
    complaints: &mut Vec<ConfigComplaint>,
) {
    for (name, at) in keys {
        let message = || format!("`{}` requires `{other}`", key(name));
        complaints.extend(at.map(|at| ConfigComplaint::new(at, message())));
    }
}

//! `tokens`: names and hashes. No message here quotes the content of `sha256`, since it may be the token itself.

use std::collections::BTreeSet;

use crate::{
    LocatedValue, TokenConfig, TokenEntry, error::ConfigComplaint, snippet::shown,
    yaml::shape::HASH_COMMAND,
};

const NAME_HINT: &str = "use up to 64 letters, digits, `_`, `-` and `.`";

pub(super) fn check(
    entries: &[LocatedValue<TokenEntry>],
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<TokenConfig>> {
    let mut tokens = Vec::with_capacity(entries.len());
    let mut names = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    for entry in entries {
        let TokenEntry {
            name,
            role,
            tenant,
            sha256,
        } = &entry.value;
        if !is_name(&name.value) {
            complaints.push(name_complaint(name));
        } else if !names.insert(name.value.as_str()) {
            let message = format!("there are two tokens named `{}`", shown(&name.value));
            complaints.push(ConfigComplaint::new(name.at, message));
        }
        if let Some(tenant) = tenant.as_ref().filter(|tenant| !is_name(&tenant.value)) {
            let message = format!("`{}` is not a name for a tenant", shown(&tenant.value));
            complaints
                .push(ConfigComplaint::new(tenant.at, message).hint(Some(NAME_HINT.to_owned())));
        }
        match decode(&sha256.value) {
            None => complaints.push(hash_complaint(sha256)),
            // A token with two names would leave the name in records undecided.
            Some(hash) if !hashes.insert(hash) => {
                complaints.push(ConfigComplaint::new(
                    sha256.at,
                    "two tokens have the same hash",
                ));
            }
            Some(hash) => {
                let token = TokenConfig {
                    name: name.value.clone(),
                    role: *role,
                    tenant: tenant.as_ref().map(|tenant| tenant.value.clone()),
                    sha256: hash,
                };
                tokens.push(LocatedValue {
                    value: token,
                    at: entry.at,
                });
            }
        }
    }
    tokens
}

fn name_complaint(name: &LocatedValue<String>) -> ConfigComplaint {
    let message = format!("`{}` is not a name for a token", shown(&name.value));
    ConfigComplaint::new(name.at, message).hint(Some(NAME_HINT.to_owned()))
}

fn hash_complaint(sha256: &LocatedValue<String>) -> ConfigComplaint {
    let hint = format!("never write the token itself; `{HASH_COMMAND}` makes its hash");
    ConfigComplaint::new(sha256.at, "`sha256` is not a hash of 64 hex digits").hint(Some(hint))
}

/// The name appears in records and metrics.
pub(super) fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(legal)
}

fn decode(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(hash)
}

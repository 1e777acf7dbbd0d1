//! `http`: addresses, hosts and origins.

use std::{
    net::{Ipv6Addr, SocketAddr},
    time::Duration,
};

use crate::{ConfigDuration, HttpSection, LocatedValue, error::ConfigComplaint, snippet::shown};

use super::limits::{check_range, size};

/// The longest plausible wait of a client.
const LONGEST_PATIENCE: Duration = Duration::from_secs(60 * 60);

pub(super) fn check(
    http: &HttpSection,
    complaints: &mut Vec<ConfigComplaint>,
) -> Option<LocatedValue<SocketAddr>> {
    let listed = |list: &Option<LocatedValue<Vec<LocatedValue<String>>>>| {
        list.iter().flat_map(|list| list.value.clone()).collect()
    };
    let hosts: Vec<LocatedValue<String>> = listed(&http.allowed_hosts);
    let origins: Vec<LocatedValue<String>> = listed(&http.allowed_origins);
    complaints.extend(
        hosts
            .iter()
            .filter(|host| !is_host(&host.value))
            .map(host_complaint),
    );
    complaints.extend(
        origins
            .iter()
            .filter(|origin| !is_origin(&origin.value))
            .map(origin_complaint),
    );
    check_range(
        "http.body_limit",
        http.body_limit,
        size(1 << 10)..=size(1 << 30),
        complaints,
    );
    let waits =
        ConfigDuration::new(Duration::from_millis(1))..=ConfigDuration::new(LONGEST_PATIENCE);
    check_range("http.patience", http.patience, waits, complaints);
    let listen = http.listen.as_ref()?;
    match listen.value.parse() {
        Ok(value) => Some(LocatedValue {
            value,
            at: listen.at,
        }),
        Err(_) => {
            complaints.push(listen_complaint(listen));
            None
        }
    }
}

fn listen_complaint(listen: &LocatedValue<String>) -> ConfigComplaint {
    let message = format!(
        "`http.listen` is `{}`, which is not an address and a port",
        shown(&listen.value)
    );
    let port = listen
        .value
        .strip_prefix("localhost:")
        .filter(|port| port.parse::<u16>().is_ok());
    let example = format!("127.0.0.1:{}", port.unwrap_or("8765"));
    ConfigComplaint::new(listen.at, message)
        .hint(Some(format!("write it with numbers, such as `{example}`")))
}

fn host_complaint(host: &LocatedValue<String>) -> ConfigComplaint {
    let message = format!(
        "`{}` in `http.allowed_hosts` is not a host",
        shown(&host.value)
    );
    let hint =
        "write a name or an address, with or without a port, such as `tools.example.org:8765`";
    ConfigComplaint::new(host.at, message).hint(Some(hint.to_owned()))
}

fn origin_complaint(origin: &LocatedValue<String>) -> ConfigComplaint {
    let message = format!(
        "`{}` in `http.allowed_origins` is not an origin",
        shown(&origin.value)
    );
    let hint = "write scheme and host without a path, such as `https://app.example.org`";
    ConfigComplaint::new(origin.at, message).hint(Some(hint.to_owned()))
}

/// A host name or address, with or without a port. Wildcards are refused, since they would admit every host.
pub(super) fn is_host(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = text
        .split_once(':')
        .map_or((text, None), |(name, port)| (name, Some(port)));
    is_name(name) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let legal = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        legal && !label.is_empty() && label.len() <= 63 && !label.starts_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A browser's `Origin` header. Extensions have schemes of their own, so any scheme is accepted.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let legal =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.chars().all(legal)
        && is_host(host)
}

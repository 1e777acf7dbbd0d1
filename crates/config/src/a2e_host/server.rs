//! `server` and `auth_token`: the address, and the authentication of agents.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toolpost_model::Secret;

use crate::{HostConfig, HttpSection, LocatedValue, snippet::shown};

use crate::reading::{ConfigTable, ConfigTreeReader};

pub(super) fn read(
    root: &mut ConfigTable,
    http: &mut HttpSection,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<Secret> {
    let token = reading.text(root, "auth_token");
    let Some(mut server) = reading.table(root, "server") else {
        return token.and_then(|token| secret("auth_token", token, reading));
    };
    http.listen = listen(&mut server, reading);
    let misplaced = reading.text(&mut server, "auth_token");
    reading.name_the_rest(&server, "A2E", &["host", "port"]);
    match (token, misplaced) {
        (Some(token), misplaced) => {
            if let Some(misplaced) = misplaced {
                let why = "the `auth_token` at the top level overrides it";
                reading.ignored(misplaced.at, "server.auth_token".to_owned(), why);
            }
            secret("auth_token", token, reading)
        }
        (None, Some(token)) => {
            let message =
                "`server.auth_token` is used as `auth_token`, which belongs at the top level";
            reading.notice(token.at, "server.auth_token".to_owned(), message.to_owned());
            secret("server.auth_token", token, reading)
        }
        (None, None) => None,
    }
}

/// The address to listen on. Without a host this stays on loopback, although other hosts then listen on all addresses.
fn listen(
    server: &mut ConfigTable,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<LocatedValue<String>> {
    let default = HostConfig::default().http.listen;
    let written_host = reading.text(server, "host");
    let port = reading.whole::<u16>(server, "port");
    let host = match &written_host {
        Some(host) => address(host, reading)?,
        None => {
            let message = format!(
                "`server.host` is missing, so the host listens on {} only",
                default.ip()
            );
            reading.notice(server.at, "server.host".to_owned(), message);
            default.ip()
        }
    };
    let at = written_host
        .map(|host| host.at)
        .or(port.map(|port| port.at))?;
    let address = SocketAddr::new(host, port.map_or(default.port(), |port| port.value));
    Some(LocatedValue {
        value: address.to_string(),
        at,
    })
}

/// An address, or `localhost`. Other names would have to be looked up, and their addresses may change.
fn address(host: &LocatedValue<String>, reading: &mut ConfigTreeReader<'_>) -> Option<IpAddr> {
    let bare = host
        .value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(&host.value);
    if bare.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let parsed = bare.parse().ok();
    if parsed.is_none() {
        let message = format!(
            "`server.host` is `{}`, which is not an address",
            shown(&host.value)
        );
        let hint =
            "write an address such as `127.0.0.1`, `localhost`, or `0.0.0.0` for every address"
                .to_owned();
        reading.complain(host.at, message, hint);
    }
    parsed
}

/// A token that is long enough to keep callers out.
fn secret(
    key: &str,
    token: LocatedValue<String>,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<Secret> {
    let LocatedValue { value, at } = token;
    if value.trim().is_empty() {
        reading.notice(
            at,
            key.to_owned(),
            format!("`{key}` is empty and is ignored"),
        );
        return None;
    }
    // Used literally, the token would be known to all readers of the file's template.
    if value.starts_with("${") || value.starts_with("{{") {
        let message = format!("`{key}` is a placeholder, which the host does not fill in");
        reading.complain(
            at,
            message,
            "fill it in before the host reads the file".to_owned(),
        );
        return None;
    }
    Some(Secret::new(value))
}

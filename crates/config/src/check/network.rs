//! `network`: URL prefixes, and credentials. No message here quotes the content of `env` or `scheme`, since an
//! operator may have put the credential itself there by mistake.

use toolpost_model::ToolPattern;

use crate::{
    CredentialConfig, CredentialEntry, CredentialSource, LocatedValue, NetworkSection,
    error::{ConfigComplaint, ConfigSourceText},
    snippet::shown,
};

use super::{
    http::is_host,
    limits::{check_range, size},
    path_complaint,
    tokens::is_name,
};

/// Headers of the request itself; setting one of them could change the request's meaning.
const FRAMING: [&str; 10] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
];

/// Whether a header, in lower case, belongs to the request itself.
pub(super) fn is_framing(lower: &str) -> bool {
    FRAMING.contains(&lower) || lower.starts_with("proxy-")
}

#[derive(Clone, Debug)]
pub(crate) struct CheckedNetworkValues {
    pub(crate) private: Vec<LocatedValue<String>>,
    /// With their files as written.
    pub(crate) credentials: Vec<LocatedValue<CredentialConfig>>,
}

pub(super) fn check(
    network: &NetworkSection,
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> CheckedNetworkValues {
    check_range(
        "network.max_body",
        network.max_body,
        size(1 << 10)..=size(1 << 30),
        complaints,
    );
    let private = check_prefixes("network.private", &network.private, complaints);
    let mut credentials = Vec::with_capacity(network.credentials.len());
    for (name, entry) in &network.credentials {
        let at = entry.at;
        if !is_name(name) {
            let message = format!("`{}` is not a name for a credential", shown(name));
            let hint = "use up to 64 letters, digits, `_`, `-` and `.`".to_owned();
            complaints.push(ConfigComplaint::new(at, message).hint(Some(hint)));
        }
        if let Some(value) = credential(name, entry, source, complaints) {
            credentials.push(LocatedValue { value, at });
        }
    }
    CheckedNetworkValues {
        private,
        credentials,
    }
}

fn credential(
    name: &str,
    entry: &LocatedValue<CredentialEntry>,
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Option<CredentialConfig> {
    let LocatedValue {
        value:
            CredentialEntry {
                file,
                env,
                header,
                scheme,
                urls,
                tools,
            },
        at,
    } = entry;
    let key = |part: &str| format!("network.credentials.{}.{part}", shown(name));
    complaints.extend(
        file.as_ref()
            .and_then(|file| path_complaint(&key("file"), file)),
    );
    complaints.extend(
        env.as_ref()
            .and_then(|env| variable_complaint(&key("env"), env)),
    );
    complaints.extend(
        header
            .as_ref()
            .and_then(|header| header_complaint(&key("header"), header)),
    );
    complaints.extend(
        scheme
            .as_ref()
            .and_then(|scheme| scheme_complaint(&key("scheme"), scheme)),
    );
    if urls.is_none() && tools.is_none() {
        let hint = "list URL prefixes under `urls`, such as `https://api.example.org/`, or tools under `tools`";
        let complaint = ConfigComplaint::new(
            *at,
            "the credential has neither `urls` nor `tools`, so it is never used",
        );
        complaints.push(complaint.hint(Some(hint.to_owned())));
    }
    let mut listed = |part: &str, written: &Option<LocatedValue<Vec<LocatedValue<String>>>>| {
        let Some(LocatedValue { value, at }) = written else {
            return Vec::new();
        };
        if value.is_empty() {
            let message = format!(
                "`{}` is empty, so the credential could never be sent",
                key(part)
            );
            complaints.push(
                ConfigComplaint::new(*at, message)
                    .hint(Some("remove it, or add an entry".to_owned())),
            );
        }
        value.clone()
    };
    let urls = listed("urls", urls);
    let tools = listed("tools", tools);
    let urls = check_prefixes(&key("urls"), &urls, complaints);
    let tools = check_tools(&key("tools"), &tools, complaints);
    let kept = match (file, env) {
        (Some(file), None) => Some(CredentialSource::File(file.value.clone())),
        (None, Some(env)) => Some(CredentialSource::Variable(env.value.clone())),
        (Some(_), Some(_)) => {
            complaints.push(ConfigComplaint::new(
                *at,
                "the credential has a `file` and an `env`; it can only have one",
            ));
            None
        }
        (None, None) => {
            let hint =
                "write it into a file that only you can read, and write its path under `file`";
            let complaint =
                ConfigComplaint::new(*at, "the credential has neither a `file` nor an `env`");
            complaints.push(complaint.hint(Some(hint.to_owned())));
            None
        }
    };
    let header = header
        .as_ref()
        .map_or(CredentialConfig::HEADER, |header| header.value.as_str());
    let usual = header
        .eq_ignore_ascii_case(CredentialConfig::HEADER)
        .then(|| "Bearer".to_owned());
    let scheme = scheme
        .as_ref()
        .map_or(usual, |scheme| Some(scheme.value.clone()));
    Some(CredentialConfig {
        name: name.to_owned(),
        source: kept?,
        header: header.to_owned(),
        scheme: scheme.filter(|scheme| !scheme.is_empty()),
        urls: urls.into_iter().map(|url| url.value).collect(),
        tools,
        place: source.place(*at),
    })
}

fn check_tools(
    key: &str,
    written: &[LocatedValue<String>],
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<ToolPattern> {
    let mut tools = Vec::with_capacity(written.len());
    for LocatedValue { value, at } in written {
        match value.parse::<ToolPattern>() {
            Ok(pattern) => tools.push(pattern),
            Err(_) => {
                let message = format!("`{}` in `{key}` is not the name of a tool", shown(value));
                let hint = "write a name, an id such as `commands.deploy`, or a pattern with `*`"
                    .to_owned();
                complaints.push(ConfigComplaint::new(*at, message).hint(Some(hint)));
            }
        }
    }
    tools
}

/// Variables are in capitals. A token that was pasted here almost always has lower-case letters.
fn variable_complaint(key: &str, env: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let legal = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let text = &env.value;
    let good = text.len() <= 64
        && text.bytes().all(legal)
        && text.starts_with(|c: char| !c.is_ascii_digit());
    (!good || text.is_empty()).then(|| {
        let hint = "write the name in capitals, such as `API_TOKEN`; never the value itself";
        ConfigComplaint::new(env.at, format!("`{key}` is not the name of a variable"))
            .hint(Some(hint.to_owned()))
    })
}

fn header_complaint(key: &str, header: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let text = &header.value;
    let lower = text.to_ascii_lowercase();
    let message = if text.is_empty() || text.len() > 64 || !text.bytes().all(legal) {
        format!("`{key}` is not the name of a header")
    } else if is_framing(&lower) {
        format!("`{key}` is `{text}`, which cannot carry a credential")
    } else {
        return None;
    };
    let hint = "write a name such as `Authorization` or `X-Api-Key`".to_owned();
    Some(ConfigComplaint::new(header.at, message).hint(Some(hint)))
}

fn scheme_complaint(key: &str, scheme: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let legal = scheme
        .value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (!legal || scheme.value.len() > 32).then(|| {
        let hint = "write one word, such as `Bearer` or `token`; never the value itself";
        ConfigComplaint::new(scheme.at, format!("`{key}` is not a word"))
            .hint(Some(hint.to_owned()))
    })
}

/// URL prefixes with a path after the host, so that no longer host name begins with one of them.
fn check_prefixes(
    key: &str,
    written: &[LocatedValue<String>],
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<String>> {
    let mut prefixes = Vec::with_capacity(written.len());
    for LocatedValue { value, at } in written {
        match prefix(value) {
            Some(value) => prefixes.push(LocatedValue { value, at: *at }),
            None => {
                // There may be a password before an `@`.
                let quoted = if value.contains('@') {
                    "a text with `@`".to_owned()
                } else {
                    format!("`{}`", shown(value))
                };
                let message = format!("{quoted} in `{key}` is not a URL prefix");
                let hint = "write scheme and host, with or without a path, such as `http://127.0.0.1:8080/api/`";
                complaints.push(ConfigComplaint::new(*at, message).hint(Some(hint.to_owned())));
            }
        }
    }
    prefixes
}

/// No user, query, fragment or wildcard: the comparison uses scheme, host, port and path alone.
pub(super) fn prefix(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (host, path) = rest
        .find('/')
        .map_or((rest, "/"), |slash| rest.split_at(slash));
    let clean =
        |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '*' | '\\' | '"' | '<' | '>');
    let climbs = path.split('/').any(|part| matches!(part, "." | ".."));
    let good = matches!(scheme.as_str(), "http" | "https")
        && is_host(host)
        && path.chars().all(clean)
        && !climbs;
    good.then(|| format!("{scheme}://{}{path}", host.to_ascii_lowercase()))
}

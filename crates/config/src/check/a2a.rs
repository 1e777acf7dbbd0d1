//! `a2a`: the values on the card.

use crate::{
    A2aSection, LocatedValue,
    error::ConfigComplaint,
    snippet::{printable, shown},
};

use super::{a2e::host_id_complaint, http::is_host};

/// About the length that a list of agents shows.
const LONGEST_DESCRIPTION: usize = 1_000;

pub(super) fn check(a2a: &A2aSection, complaints: &mut Vec<ConfigComplaint>) {
    complaints.extend(
        a2a.name
            .as_ref()
            .and_then(|name| host_id_complaint("a2a.name", name)),
    );
    complaints.extend(a2a.description.as_ref().and_then(description_complaint));
    complaints.extend(
        a2a.url
            .as_ref()
            .filter(|url| !is_address(&url.value))
            .map(url_complaint),
    );
}

fn description_complaint(written: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let length = written.value.chars().count();
    let message = if written.value.trim().is_empty() {
        "`a2a.description` is empty".to_owned()
    } else if length > LONGEST_DESCRIPTION {
        format!(
            "`a2a.description` has {length} characters; it can have up to {LONGEST_DESCRIPTION}"
        )
    } else if written
        .value
        .chars()
        .any(|c| c != '\n' && printable(c) != [c])
    {
        "`a2a.description` holds a character that cannot be printed".to_owned()
    } else {
        return None;
    };
    Some(ConfigComplaint::new(written.at, message))
}

fn url_complaint(url: &LocatedValue<String>) -> ConfigComplaint {
    let message = format!(
        "`a2a.url` is `{}`, which is not the URL of an agent",
        shown(&url.value)
    );
    let hint = "write the whole address, such as `https://tools.example.org/a2a`";
    ConfigComplaint::new(url.at, message).hint(Some(hint.to_owned()))
}

/// A web address without a user, a query or a fragment, so that clients can append paths.
fn is_address(text: &str) -> bool {
    let Some(rest) = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
    else {
        return false;
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let legal = |c: char| c.is_ascii_alphanumeric() || "/-._~%:@!$&'()*+,;=".contains(c);
    is_host(host) && path.chars().all(legal)
}

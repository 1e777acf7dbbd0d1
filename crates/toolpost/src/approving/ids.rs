//! Finds questions by the part of their id that users type.

use toolpost_model::{InvocationId, PermissionRequest};

use crate::exit::UsageError;

/// The digits that are shown. Ids begin with the time, so only their ends differ.
const SHORT: usize = 8;

/// The end of an id, long enough to be unique among open questions.
pub(crate) fn short(id: InvocationId) -> String {
    let hex = id.to_hex();
    hex[hex.len() - SHORT..].to_owned()
}

/// The one question with an id that begins or ends so.
pub(crate) fn find<'a>(
    questions: &'a [PermissionRequest],
    typed: &str,
) -> anyhow::Result<&'a PermissionRequest> {
    let digits: String = typed
        .chars()
        .filter(|&c| c != '-')
        .collect::<String>()
        .to_ascii_lowercase();
    if digits.len() < 4 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        let message = format!(
            "`{typed}` is no id\nhint: give the eight digits that `toolpost approvals` shows"
        );
        return Err(UsageError(message).into());
    }
    let fits = |question: &&PermissionRequest| {
        let hex = question.ask_id.to_hex();
        hex.starts_with(&digits) || hex.ends_with(&digits)
    };
    let mut found = questions.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => anyhow::bail!(
            "no question `{typed}` waits for an answer\n\
             hint: it may have been answered, withdrawn or expired; `toolpost journal show` tells, by the whole id"
        ),
        (Some(_), Some(_)) => Err(UsageError(format!(
            "more than one question is called `{typed}`\nhint: give more digits"
        ))
        .into()),
    }
}

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
            "`{typed}` is not a question id\nhint: give the eight digits that `toolpost approvals` shows"
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
            "question `{typed}` is not open\n\
             hint: it may be answered, withdrawn or expired; check with `toolpost journal show` and the full id"
        ),
        (Some(_), Some(_)) => Err(UsageError(format!(
            "`{typed}` matches more than one question\nhint: give more digits"
        ))
        .into()),
    }
}

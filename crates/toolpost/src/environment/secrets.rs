//! Variables of the host's environment with names of secrets. Their values are kept out of everything that is written
//! or shown.

use std::ffi::OsString;

use toolpost_model::{Secret, holds_secret};

/// Shorter values are not redacted, because ordinary words would match them.
const SHORTEST: usize = 8;

/// The kind and the value of each.
pub(crate) fn secrets() -> Vec<(String, Secret)> {
    of(std::env::vars_os())
}

fn of(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, Secret)> {
    let mut found = Vec::new();
    for (name, value) in environment {
        let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
            continue;
        };
        let value = value.trim();
        if holds_secret(&name) && value.len() >= SHORTEST {
            found.push((format!("env_{}", name.to_lowercase()), Secret::new(value)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn names_decide_and_short_values_are_left_out() {
        let given = [
            ("GITHUB_TOKEN", " a-secret-of-mine\n"),
            ("Db_Password", "correct horse"),
            ("API_KEY", "short"),
            ("MAX_TOKENS", "100000000"),
            ("SSH_KEY_FILE", "/home/me/.ssh/id"),
            ("PATH", "/usr/bin:/bin"),
        ];
        let found = of(given
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())));
        let found: Vec<_> = found
            .iter()
            .map(|(kind, value)| (kind.as_str(), value.reveal()))
            .collect();
        assert_eq!(
            found,
            [
                ("env_github_token", "a-secret-of-mine"),
                ("env_db_password", "correct horse")
            ]
        );
    }
}

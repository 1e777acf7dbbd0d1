//! Environment variables that no child process ever gets, under any configuration, and variables that hold secrets.

/// Prefixes of variables that change the code that a program loads or runs.
const LOADERS: [&str; 7] = [
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "PYTHON",
    "PERL5",
    "GLIBC_",
    "MALLOC_",
];
/// Complete names of such variables.
const LOADED: [&str; 22] = [
    "BASHOPTS",
    "BASH_ENV",
    "CLASSPATH",
    "ENV",
    "GCONV_PATH",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SHELLOPTS",
    "_JAVA_OPTIONS",
];
/// Words in names of variables that hold secrets.
const SECRETS: [&str; 7] = [
    "KEY",
    "SECRET",
    "TOKEN",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
];
/// Ends of such names.
const SECRET_ENDS: [&str; 4] = ["_PASS", "_PWD", "_PAT", "_WEBHOOK"];
/// Ends of names of variables that hold the place, size or kind of a secret, and not the secret itself.
const ABOUT_SECRETS: [&str; 15] = [
    "_ALGORITHM",
    "_COUNT",
    "_DIR",
    "_ENDPOINT",
    "_FILE",
    "_LENGTH",
    "_LIMIT",
    "_NAME",
    "_PATH",
    "_SIZE",
    "_SOCK",
    "_TIMEOUT",
    "_TOKENS",
    "_TTL",
    "_TYPE",
];
/// Prefixes of variables in which clouds and agents keep secrets or the access to them.
const KEEPERS: [&str; 10] = [
    "AWS_", "AZURE_", "DBUS_", "DOCKER_", "GCLOUD_", "GCP_", "GOOGLE_", "GPG_", "KUBE", "SSH_",
];
/// Prefixes of variables that are for the host alone, not for its children.
const OWN: [&str; 2] = ["TOOLPOST_", "XDG_RUNTIME_DIR"];
/// The few of git's variables that only name people.
const NAMES_OF_PEOPLE: [&str; 2] = ["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Why a variable is never passed to a child process, in words that fit behind "because". Case does not matter: some
/// programs look at both.
pub fn never_passed(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    if begins(&NAMES_OF_PEOPLE) {
        None
    } else if begins(&LOADERS) || LOADED.contains(&name.as_str()) {
        Some("it changes the code that a program runs")
    } else if name.starts_with("GIT_") {
        Some("it changes the files that git reads or the programs that it runs")
    } else if is_secret_like(&name) || begins(&KEEPERS) {
        Some("by its name, it holds a secret or the path to one")
    } else if begins(&OWN) {
        Some("only the host sets it")
    } else {
        None
    }
}

/// Whether a variable changes, by its name, the code that a program loads or runs. No child ever gets one.
pub fn changes_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    begins(&LOADERS) || LOADED.contains(&name.as_str()) || begins(&OWN)
}

/// Whether a variable holds a secret, by its name, so that its value is redacted wherever it would be written or shown.
/// Narrower than the variables kept from children: a region or the path of a key file is no secret.
pub fn holds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    is_secret_like(&name) && !ABOUT_SECRETS.iter().any(|end| name.ends_with(end))
}

/// Expects the name in capitals.
fn is_secret_like(name: &str) -> bool {
    SECRETS.iter().any(|word| name.contains(word))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::holds_secret;

    #[test]
    fn names_of_secrets() {
        for name in [
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "DB_PASS",
            "GH_PAT",
            "SESSION_COOKIE",
            "SLACK_WEBHOOK",
        ] {
            assert!(holds_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "AWS_REGION",
            "KEY_FILE",
            "MAX_TOKENS",
            "TOKEN_TYPE",
            "SSH_AUTH_SOCK",
        ] {
            assert!(!holds_secret(name), "{name}");
        }
    }
}

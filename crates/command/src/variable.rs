//! The meaning of variables when they are set.

/// Whether a rule need not mention the variable. Language, time zone, colour and verbosity change the output of
/// programs and not their effects.
pub(crate) fn is_free(name: &str) -> bool {
    match name {
        "CARGO_TERM_COLOR" | "CI" | "CLICOLOR" | "CLICOLOR_FORCE" | "COLORTERM" | "COLUMNS" => true,
        "DEBIAN_FRONTEND" | "FORCE_COLOR" | "LANG" | "LANGUAGE" | "LINES" | "NODE_ENV"
        | "NO_COLOR" => true,
        "PYTHONUNBUFFERED" | "RUST_BACKTRACE" | "RUST_LIB_BACKTRACE" | "RUST_LOG" | "TERM"
        | "TZ" => true,
        name => name.starts_with("LC_"),
    }
}

/// Whether a change of the variable in the shell makes later commands uncertain: the search path of programs, the code
/// that they load, the shell's word splitting, and the places of settings.
pub(crate) fn changes_the_shell(name: &str) -> bool {
    const BEGINNINGS: [&str; 10] = [
        "BASH",
        "CARGO_",
        "DYLD_",
        "GIT_",
        "LD_",
        "NPM_CONFIG_",
        "PERL",
        "PYTHON",
        "RUST",
        "npm_config_",
    ];
    match name {
        name if is_free(name) => false,
        "CDPATH" | "EDITOR" | "ENV" | "EXECIGNORE" | "FIGNORE" | "FPATH" | "GLOBIGNORE"
        | "HOME" | "IFS" => true,
        "JAVA_TOOL_OPTIONS" | "NODE_OPTIONS" | "NODE_PATH" | "OLDPWD" | "PAGER" | "PATH"
        | "PWD" => true,
        "POSIXLY_CORRECT" | "PROMPT_COMMAND" | "PS0" | "PS1" | "PS2" | "PS4" | "RUBYLIB"
        | "RUBYOPT" => true,
        "SHELL" | "SHELLOPTS" | "TMPDIR" | "VISUAL" | "XDG_CONFIG_HOME" | "ZDOTDIR" => true,
        name => BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning)),
    }
}

/// Whether the variable is a number to the shell. The shell evaluates its value, so that `RANDOM='x[$(rm y)]'` runs a
/// command.
pub(crate) fn is_number(name: &str) -> bool {
    matches!(
        name,
        "BASHPID"
            | "EUID"
            | "HISTCMD"
            | "LINENO"
            | "OPTIND"
            | "PPID"
            | "RANDOM"
            | "SECONDS"
            | "SRANDOM"
            | "UID"
    )
}

/// Whether a word is a valid name of a variable.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Splits `NAME=value` into name and value, as `env` and the shell do.
pub(crate) fn split_assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    is_name(name).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_variables() {
        for (name, free, changing) in [
            ("LANG", true, false),
            ("LC_ALL", true, false),
            ("CARGO_TERM_COLOR", true, false),
            ("CARGO_HOME", false, true),
            ("PYTHONUNBUFFERED", true, false),
            ("PYTHONPATH", false, true),
            ("PATH", false, true),
            ("LD_PRELOAD", false, true),
            ("X", false, false),
        ] {
            assert_eq!(
                (is_free(name), changes_the_shell(name)),
                (free, changing),
                "{name}"
            );
        }
    }
}

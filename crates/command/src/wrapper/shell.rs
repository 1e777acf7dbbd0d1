//! Scripts that are given to shells.

use super::WrappedStart;
use crate::opaque::OpaqueReason;
use crate::programs::ProgramLaunch;

/// A script that another shell, or this one, runs.
pub(crate) struct ShellScript {
    pub(crate) text: String,
    /// For explanations: `sh -c`.
    pub(crate) label: String,
    /// Whether the command that runs the script needs an allow, too.
    pub(crate) stays: bool,
    pub(crate) dialect: ShellDialect,
}

impl ShellScript {
    pub(crate) fn of(text: String, label: &str, dialect: ShellDialect) -> Self {
        Self {
            text,
            label: label.to_owned(),
            stays: false,
            dialect,
        }
    }
}

/// The shell that reads a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShellDialect {
    /// This shell, at this point.
    Here,
    /// This shell, at another time.
    Later,
    /// Another bash.
    Bash,
    /// A shell that may have fewer features than bash.
    Posix,
    /// A shell that reads some constructs differently.
    Other,
}

impl ShellDialect {
    /// Why the script may have another meaning than in bash.
    pub(crate) fn doubt(self, script: &str) -> Option<OpaqueReason> {
        // For a shell without these constructs they are other commands: `[[ a > b ]]` writes a file.
        const ONLY_BASH: [&str; 10] = [
            "[[", "((", "<<<", "&>", "|&", "$'", "$\"", "<(", ">(", "function",
        ];
        let unknown = match self {
            Self::Here | Self::Later | Self::Bash => false,
            Self::Posix => ONLY_BASH.iter().any(|form| script.contains(form)),
            Self::Other => true,
        };
        unknown.then_some(OpaqueReason::OtherShell)
    }
}

/// The commands that a shell of this name starts; `None` if it is not a shell.
pub(super) fn starts(name: &str, words: &[String]) -> Option<WrappedStart> {
    let mut dialect = match name {
        "bash" | "rbash" => ShellDialect::Bash,
        "sh" | "dash" | "ash" => ShellDialect::Posix,
        "zsh" | "ksh" | "mksh" | "fish" | "csh" | "tcsh" => ShellDialect::Other,
        _ => return None,
    };
    let mut at = 1;
    let mut takes_script = false;
    let mut reads_input = false;
    while let Some(option) = words
        .get(at)
        .filter(|word| word.len() > 1 && word.starts_with(['-', '+']))
    {
        at += 1;
        match option.as_str() {
            "--" => break,
            "--version" | "--help" => return Some(WrappedStart::Nothing),
            "--norc" | "--noprofile" | "--posix" | "--login" | "--verbose" | "--restricted"
            | "--noediting" => {}
            option if option.starts_with("--") => {
                return Some(WrappedStart::Unknown(OpaqueReason::UnknownWrapper));
            }
            option => {
                // An interactive shell reads start-up files and aliases, which may change the meaning of its words.
                if option.starts_with('-') && option.contains('i') {
                    dialect = ShellDialect::Other;
                }
                takes_script |= option.starts_with('-') && option.contains('c');
                reads_input |= option.contains('s');
                at += option.matches(['o', 'O']).count();
            }
        }
    }
    Some(match words.get(at) {
        Some(script) if takes_script => WrappedStart::Script(ShellScript::of(
            script.clone(),
            &format!("{name} -c"),
            dialect,
        )),
        // The script is dynamic, which makes the command opaque.
        None if takes_script => WrappedStart::Nothing,
        Some(_) if !reads_input => {
            WrappedStart::Launches(ProgramLaunch::hidden(at, "runs the commands of a file"))
        }
        Some(_) | None => WrappedStart::Unknown(OpaqueReason::ReadsCommands),
    })
}

pub(super) fn eval(words: &[String]) -> WrappedStart {
    let at = if words.get(1).is_some_and(|word| word == "--") {
        2
    } else {
        1
    };
    if at >= words.len() {
        return WrappedStart::Nothing;
    }
    WrappedStart::Script(ShellScript::of(
        words[at..].join(" "),
        "eval",
        ShellDialect::Here,
    ))
}

pub(super) fn trap(words: &[String]) -> WrappedStart {
    let at = if words.get(1).is_some_and(|word| word == "--") {
        2
    } else {
        1
    };
    match words.get(at) {
        Some(script) if words.len() > at + 1 && !script.is_empty() && !script.starts_with('-') => {
            WrappedStart::Script(ShellScript {
                stays: true,
                ..ShellScript::of(script.clone(), "trap", ShellDialect::Later)
            })
        }
        Some(_) | None => WrappedStart::Nothing,
    }
}

/// Programs that give the value of an option to a shell, beside their own work.
pub(super) fn after_option(words: &[String], option: &str) -> WrappedStart {
    let script = words
        .iter()
        .position(|word| word == option)
        .and_then(|at| words.get(at + 1));
    match script {
        Some(script) => {
            let label = format!("{} {option}", words[0]);
            WrappedStart::Script(ShellScript {
                stays: true,
                ..ShellScript::of(script.clone(), &label, ShellDialect::Posix)
            })
        }
        None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
    }
}

//! Scripts given to shells.

use super::WrappedStart;
use crate::opaque::OpaqueReason;
use crate::programs::ProgramLaunch;

/// A script that another shell, or this one, is told to run.
pub(crate) struct ShellScript {
    pub(crate) text: String,
    /// For explanations: `sh -c`.
    pub(crate) label: String,
    /// Whether what runs the script is a command to be allowed too.
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

/// Who reads a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShellDialect {
    /// This shell, now.
    Here,
    /// This shell, at some other time.
    Later,
    /// Another bash.
    Bash,
    /// A shell that may know less than bash.
    Posix,
    /// A shell that reads some things differently.
    Other,
}

impl ShellDialect {
    /// Why a script may not mean what bash takes it for.
    pub(crate) fn doubt(self, script: &str) -> Option<OpaqueReason> {
        // To a shell without them, these are other commands: `[[ a > b ]]` writes a file.
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

/// What a shell of this name starts; `None` if it is no shell.
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
                // Start-up files and aliases: what its words mean is then written elsewhere.
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
        // The script is dynamic, and the command is opaque for that.
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

/// Programs that give the value of an option to a shell and do more besides.
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

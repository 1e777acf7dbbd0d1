//! Programs and builtins that start other commands: finds the other command in their words.

mod find;
mod options;
mod shell;

use std::{collections::HashMap, sync::LazyLock};

use crate::analysis::VariableAssignment;
use crate::opaque::OpaqueReason;
use crate::programs::{self, ProgramEntries, ProgramLaunch};
use crate::variable;

pub(crate) use find::FindAction;
use options::WrapperOptionSpec;
pub(crate) use shell::{ShellDialect, ShellScript};

/// The commands that a command starts.
pub(crate) enum WrappedStart {
    /// Nothing that is in its words.
    Nothing,
    /// The command that begins at one of its words.
    Command(InnerCommand),
    Script(ShellScript),
    /// The actions of `find` on the files that it finds.
    Found(Vec<FindAction>),
    /// Commands beside the program's own work; some may not be in its words.
    Launches(ProgramLaunch),
    /// Some command, in an unknown way.
    Unknown(OpaqueReason),
}

/// A command inside a command.
pub(crate) struct InnerCommand {
    /// The index of its first word.
    pub(crate) at: usize,
    /// Whether the outer command needs an allow, too.
    pub(crate) stays: bool,
    /// Whether builtins are builtins there.
    pub(crate) in_shell: bool,
    /// Whether it gets further words beyond those in the text.
    pub(crate) open: bool,
    /// The variables that are set for it.
    pub(crate) assignments: Vec<VariableAssignment>,
    /// The directory it is started in.
    pub(crate) directory: Option<String>,
}

impl InnerCommand {
    fn at(at: usize) -> Self {
        Self {
            at,
            stays: false,
            in_shell: false,
            open: false,
            assignments: Vec::new(),
            directory: None,
        }
    }
}

/// The command that these words start.
pub(crate) fn starts(words: &[String], in_shell: bool) -> WrappedStart {
    let Some(program) = words.first() else {
        return WrappedStart::Nothing;
    };
    let (name, trusted) = match program.rsplit_once('/') {
        None => (program.as_str(), true),
        Some((folder, name)) => (name, is_system_folder(folder)),
    };
    let mut starts = starts_by_name(name, words, in_shell);
    // A program of that name in another folder may do anything: it needs an allow of its own, and the command that it
    // seems to start is checked all the same.
    if !trusted {
        match &mut starts {
            WrappedStart::Command(inner) => inner.stays = true,
            WrappedStart::Script(script) => script.stays = true,
            WrappedStart::Nothing
            | WrappedStart::Found(_)
            | WrappedStart::Launches(_)
            | WrappedStart::Unknown(_) => {}
        }
    }
    starts
}

fn is_system_folder(folder: &str) -> bool {
    matches!(
        folder,
        "/bin" | "/usr/bin" | "/usr/local/bin" | "/sbin" | "/usr/sbin"
    )
}

fn starts_by_name(name: &str, words: &[String], in_shell: bool) -> WrappedStart {
    match name {
        "command" | "builtin" | "exec" if in_shell => in_this_shell(name, words),
        "eval" if in_shell => shell::eval(words),
        "trap" if in_shell => shell::trap(words),
        "." | "source" if in_shell => WrappedStart::Unknown(OpaqueReason::SourcedFile),
        "env" => env(words),
        "find" => find::actions(words),
        "busybox" | "toybox" => multi_call(words),
        "xargs" => match options::XARGS.skip(words) {
            Some(at) => WrappedStart::Command(InnerCommand {
                open: true,
                ..InnerCommand::at(at)
            }),
            None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
        },
        "flock" => flock(words),
        "watch" => watch(words),
        "script" | "su" | "runuser" => shell::after_option(words, "-c"),
        "parallel" | "entr" | "systemd-run" | "start-stop-daemon" | "at" | "batch" | "gdb"
        | "screen" | "tmux" => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
        name => shell::starts(name, words).unwrap_or_else(|| by_table(name, words)),
    }
}

fn by_table(name: &str, words: &[String]) -> WrappedStart {
    match listed(name) {
        None => WrappedStart::Nothing,
        Some(ListedProgram::Launching(entries)) => entries
            .launch(words)
            .map_or(WrappedStart::Nothing, WrappedStart::Launches),
        Some(ListedProgram::Wrapper(spec)) => match spec.skip(words) {
            Some(at) => with_assignments(spec, words, at),
            None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
        },
    }
}

/// A program that the tables list.
enum ListedProgram {
    /// Its only purpose is to start another one, and rules look through it.
    Wrapper(&'static WrapperOptionSpec),
    /// It starts others beside its own work.
    Launching(ProgramEntries),
}

/// The names of the dynamic loader and of interpreters contain versions.
fn listed(name: &str) -> Option<&'static ListedProgram> {
    if name.starts_with("ld-") && name.contains(".so") {
        return LISTED.get("ld.so");
    }
    LISTED.get(name).or_else(|| {
        let has_version = name.ends_with(|c: char| c.is_ascii_digit());
        let without =
            || name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        has_version.then(|| LISTED.get(without())).flatten()
    })
}

/// Both tables in one map, because every command of every call is looked up here.
static LISTED: LazyLock<HashMap<&'static str, ListedProgram>> = LazyLock::new(|| {
    let launching = programs::entries_by_name().into_iter();
    let mut listed: HashMap<_, _> = launching
        .map(|(name, entries)| (name, ListedProgram::Launching(entries)))
        .collect();
    for spec in options::TABLE {
        listed.extend(
            spec.names
                .iter()
                .map(|name| (*name, ListedProgram::Wrapper(spec))),
        );
    }
    listed
});

fn with_assignments(spec: &WrapperOptionSpec, words: &[String], mut at: usize) -> WrappedStart {
    let mut inner = InnerCommand {
        stays: spec.stays,
        ..InnerCommand::at(at)
    };
    while let Some((name, value)) = words
        .get(at)
        .and_then(|word| variable::split_assignment(word))
    {
        if !spec.assigns {
            break;
        }
        inner.assignments.extend(assignment(name, value));
        at += 1;
    }
    WrappedStart::Command(InnerCommand { at, ..inner })
}

fn assignment(name: &str, value: &str) -> Option<VariableAssignment> {
    let assignment = || VariableAssignment {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    };
    (!variable::is_free(name)).then(assignment)
}

/// `command`, `builtin` and `exec`. With `-v` or `-V`, `command` only looks a name up and starts nothing.
fn in_this_shell(name: &str, words: &[String]) -> WrappedStart {
    let looks_up = |word: &String| word.starts_with('-') && word.contains(['v', 'V']);
    if name == "command"
        && words
            .iter()
            .skip(1)
            .take_while(|word| word.starts_with('-'))
            .any(looks_up)
    {
        return WrappedStart::Nothing;
    }
    let spec = match name {
        "exec" => &options::EXEC,
        _ => &options::COMMAND,
    };
    match spec.skip(words) {
        Some(at) => WrappedStart::Command(InnerCommand {
            in_shell: name != "exec",
            ..InnerCommand::at(at)
        }),
        None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
    }
}

fn env(words: &[String]) -> WrappedStart {
    let mut inner = InnerCommand::at(1);
    while let Some(word) = words.get(inner.at) {
        match word.as_str() {
            "-" | "-i" | "--ignore-environment" | "-0" | "--null" | "-v" | "--debug" => {
                inner.at += 1;
            }
            "-u" | "--unset" => inner.at += 2,
            "-C" | "--chdir" => {
                inner.directory = words.get(inner.at + 1).cloned();
                inner.at += 2;
            }
            "--" => {
                inner.at += 1;
                break;
            }
            word if word.starts_with("--unset=") => inner.at += 1,
            word if word.starts_with("--chdir=") => {
                inner.directory = word.strip_prefix("--chdir=").map(str::to_owned);
                inner.at += 1;
            }
            word if word.starts_with('-') => {
                return WrappedStart::Unknown(OpaqueReason::UnknownWrapper);
            }
            _ => break,
        }
    }
    while let Some((name, value)) = words
        .get(inner.at)
        .and_then(|word| variable::split_assignment(word))
    {
        inner.assignments.extend(assignment(name, value));
        inner.at += 1;
    }
    // Without a command it prints the environment.
    if inner.at < words.len() {
        WrappedStart::Command(inner)
    } else {
        WrappedStart::Nothing
    }
}

/// A program with many names needs an allow of its own, and is read further if its applet starts others.
fn multi_call(words: &[String]) -> WrappedStart {
    if words
        .get(1)
        .is_some_and(|applet| matches!(applet.as_str(), "busybox" | "toybox"))
    {
        return WrappedStart::Command(InnerCommand {
            stays: true,
            ..InnerCommand::at(1)
        });
    }
    match words
        .get(1)
        .map(|applet| starts_by_name(applet, &words[1..], false))
    {
        None | Some(WrappedStart::Nothing) => WrappedStart::Nothing,
        Some(WrappedStart::Launches(_)) => WrappedStart::Launches(ProgramLaunch::command(words, 1)),
        Some(
            WrappedStart::Command(_)
            | WrappedStart::Script(_)
            | WrappedStart::Found(_)
            | WrappedStart::Unknown(_),
        ) => WrappedStart::Command(InnerCommand {
            stays: true,
            ..InnerCommand::at(1)
        }),
    }
}

fn flock(words: &[String]) -> WrappedStart {
    match options::FLOCK.skip(words) {
        Some(at)
            if words
                .get(at)
                .is_some_and(|word| matches!(word.as_str(), "-c" | "--command")) =>
        {
            shell::after_option(words, &words[at])
        }
        Some(at) => WrappedStart::Command(InnerCommand::at(at)),
        None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
    }
}

/// Its words are joined and given to a shell.
fn watch(words: &[String]) -> WrappedStart {
    match options::WATCH.skip(words) {
        Some(at) if at < words.len() => WrappedStart::Script(ShellScript::of(
            words[at..].join(" "),
            "watch",
            ShellDialect::Posix,
        )),
        Some(_) => WrappedStart::Nothing,
        None => WrappedStart::Unknown(OpaqueReason::UnknownWrapper),
    }
}

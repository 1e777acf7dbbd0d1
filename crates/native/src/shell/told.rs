//! The end of a process in words.

use toolpost_sandbox::CommandExit;

/// Signals that end processes, by number on Linux.
const SIGNALS: [(i32, &str); 17] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// `exit code 3`, or the signal that ended it.
pub(crate) fn ending(ended: CommandExit) -> String {
    let memory = if ended.out_of_memory {
        ", out of memory"
    } else {
        ""
    };
    match (ended.code, ended.signal) {
        (Some(code), _) => format!("exit code {code}{memory}"),
        (None, Some(signal)) => {
            let name = SIGNALS
                .iter()
                .find(|(number, _)| *number == signal)
                .map(|(_, name)| *name);
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            format!("killed by signal {signal}{name}{memory}")
        }
        (None, None) => format!("ended{memory}"),
    }
}

/// `1 byte`, `2 bytes`.
pub(crate) fn count(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

/// Adds a line to a text, on a line of its own.
pub(crate) fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

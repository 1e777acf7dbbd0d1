//! `find`, which runs commands on what it finds, removes it, or writes lists of it.

use super::WrappedStart;

/// Something `find` does beside looking.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum FindAction {
    /// It runs a command, with the words that are known before anything is found.
    Runs {
        /// The option that says so.
        option: &'static str,
        /// The command.
        words: Vec<String>,
        /// Whether names of what was found follow.
        open: bool,
    },
    /// It writes this file.
    Writes(String),
}

/// What these words of a `find` do.
pub(super) fn actions(words: &[String]) -> WrappedStart {
    let mut actions = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        let option = match word.as_str() {
            "-exec" => "-exec",
            "-execdir" => "-execdir",
            "-ok" => "-ok",
            "-okdir" => "-okdir",
            "-delete" => {
                // Whoever forbids `rm` means this too.
                let words = vec!["rm".to_owned()];
                actions.push(FindAction::Runs {
                    option: "-delete",
                    words,
                    open: true,
                });
                continue;
            }
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                actions.extend(words.get(at).cloned().map(FindAction::Writes));
                at += 1;
                continue;
            }
            _ => continue,
        };
        let command = &words[at..];
        let ends = |index: usize| {
            command[index] == ";"
                || (command[index] == "+" && index > 0 && command[index - 1] == "{}")
        };
        let length = (0..command.len())
            .find(|index| ends(*index))
            .unwrap_or(command.len());
        actions.push(runs(option, &command[..length]));
        at += length;
    }
    if actions.is_empty() {
        WrappedStart::Nothing
    } else {
        WrappedStart::Found(actions)
    }
}

fn runs(option: &'static str, command: &[String]) -> FindAction {
    let known = command
        .iter()
        .take_while(|word| !word.contains("{}"))
        .count();
    FindAction::Runs {
        option,
        words: command[..known].to_vec(),
        open: known < command.len(),
    }
}

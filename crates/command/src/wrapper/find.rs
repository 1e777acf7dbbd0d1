//! `find`, which runs commands on the files that it finds, removes them, or writes lists of them.

use super::WrappedStart;

/// An action of `find` beside searching.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum FindAction {
    /// It runs a command; only the words before the file names are known.
    Runs {
        /// The option that starts it.
        option: &'static str,
        /// The command.
        words: Vec<String>,
        /// Whether names of found files follow.
        open: bool,
    },
    /// It writes this file.
    Writes(String),
}

/// The actions of a `find` with these words.
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
                // A rule against `rm` means this, too.
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

//! Commands in the words of other commands, or in variables.

use super::ScriptWalker;
use super::run::CommandDraft;
use crate::analysis::{SpelledIn, VariableAssignment};
use crate::directory::CommandDirectory;
use crate::programs::{self, HiddenStart, LaunchedCommand, ProgramLaunch, VariableMeaning};
use crate::render;
use crate::wrapper::{ShellDialect, ShellScript};

const UNCLEAR: &str = "starts commands that are known only when it runs";
const CHOSEN_BY_VARIABLE: &str = "runs with a variable that decides which programs start";

/// Commands in more variables than this are not read.
const MOST_VARIABLES: usize = 64;

impl ScriptWalker {
    /// Records a program that starts others, and walks the commands in its words.
    pub(super) fn launch(&mut self, mut draft: CommandDraft, launch: ProgramLaunch) {
        let place = self.found.commands.len();
        let assignments = draft.assignments.clone();
        draft.hides = launch.hidden;
        self.record(draft);
        if self.found.commands.len() == place {
            // The limit on commands is reached.
            return;
        }
        for written in &launch.writes {
            let spelled_in = SpelledIn {
                command: place,
                through: written.through,
                must_be_spelled: true,
            };
            self.written_by_option(&written.path, Some(spelled_in));
        }
        for start in launch.starts {
            self.within.push(render::shortened(&start.label));
            let hidden = HiddenStart {
                through: start.through,
                by_variable: false,
                why: UNCLEAR,
            };
            let assignments = assignments.clone();
            self.spelled(place, hidden, |walker| match start.what {
                LaunchedCommand::Words(words, open) => {
                    let text = open.then(|| format!("{} …", render::command_line(&words)));
                    walker.run(
                        CommandDraft {
                            words,
                            open,
                            assignments,
                            text,
                            hides: None,
                        },
                        false,
                    );
                }
                LaunchedCommand::Script(text) => walker.launched_script(text, assignments),
            });
            self.within.pop();
        }
    }

    /// Notes the commands that variables start or hide for the command at this index.
    pub(super) fn variables_of(&mut self, place: usize) {
        let Some(command) = self
            .found
            .commands
            .get(place)
            .filter(|one| !one.assignments.is_empty())
        else {
            return;
        };
        let mut scripts = Vec::new();
        let mut is_hidden = false;
        for assignment in &command.assignments {
            match programs::variable_meaning(&assignment.name) {
                Some(VariableMeaning::Script) if !self.variables.contains(assignment) => {
                    scripts.push(assignment.clone());
                }
                Some(VariableMeaning::Hides) => is_hidden = true,
                Some(VariableMeaning::Script) | None => {}
            }
        }
        let hidden = HiddenStart {
            through: 0,
            by_variable: true,
            why: CHOSEN_BY_VARIABLE,
        };
        if is_hidden || self.variables.len() + scripts.len() > MOST_VARIABLES {
            self.hide(place, hidden);
        } else {
            for assignment in scripts {
                self.command_in_variable(place, assignment, hidden);
            }
        }
    }

    /// Walks a value that some programs run as a command. Each value is walked once, because all commands may carry it.
    fn command_in_variable(
        &mut self,
        place: usize,
        assignment: VariableAssignment,
        hidden: HiddenStart,
    ) {
        self.within
            .push(render::shortened(&format!("{}=", assignment.name)));
        // `LESSOPEN` has marks before its command.
        let value = assignment
            .value
            .as_deref()
            .unwrap_or_default()
            .trim_start_matches(['|', '-', '!', ' ']);
        let value = value.to_owned();
        self.variables.push(assignment);
        self.spelled(place, hidden, |walker| {
            walker.launched_script(value, Vec::new());
        });
        self.within.pop();
    }

    fn launched_script(&mut self, text: String, assignments: Vec<VariableAssignment>) {
        self.nested_in(
            &ShellScript::of(text, "sh", ShellDialect::Posix),
            assignments,
        );
    }

    /// Walks a command in the words of another command. If a part of it is unknown, the outer command gets a hidden
    /// start instead of an opaque piece. A rule that spells the whole line can still allow it that way, while no rule
    /// can allow an opaque piece.
    fn spelled(&mut self, place: usize, hidden: HiddenStart, walk: impl FnOnce(&mut Self)) {
        let commands = self.found.commands.len();
        let redirects = self.found.redirects.len();
        let opaque = self.found.opaque.len();
        self.apart(|walker| {
            // Programs start others in a folder of their own choice.
            walker.scope.directory = CommandDirectory::Unknown;
            walk(walker);
        });
        let spelled_in = SpelledIn {
            command: place,
            through: hidden.through,
            must_be_spelled: false,
        };
        for command in &mut self.found.commands[commands..] {
            command.spelled_in.get_or_insert(spelled_in);
        }
        let mut is_hidden = self.found.opaque.len() > opaque;
        self.found.opaque.truncate(opaque);
        let written = self.found.redirects.split_off(redirects);
        for mut redirect in written {
            let is_absolute = redirect
                .target
                .as_ref()
                .is_some_and(|target| target.starts_with('/'));
            if is_absolute || redirect.directory != CommandDirectory::Unknown {
                redirect.spelled_in.get_or_insert(spelled_in);
                self.found.redirects.push(redirect);
            } else {
                is_hidden = true;
            }
        }
        if is_hidden {
            self.hide(place, hidden);
        }
    }

    fn hide(&mut self, place: usize, hidden: HiddenStart) {
        let known = self.found.commands[place].hides.get_or_insert(hidden);
        known.through = known.through.max(hidden.through);
        known.by_variable |= hidden.by_variable;
    }
}

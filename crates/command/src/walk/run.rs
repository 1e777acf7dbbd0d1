//! A command that would run: the commands that it starts, and its effect on the shell.

use super::{DirectoriesAfterCommand, ScriptWalker};
use crate::analysis::{SimpleCommand, VariableAssignment};
use crate::builtin::{self, BuiltinEffect};
use crate::directory::CommandDirectory;
use crate::opaque::OpaqueReason;
use crate::programs::HiddenStart;
use crate::render;
use crate::wrapper::{self, FindAction, ShellDialect, WrappedStart};

/// The depth of shells that run shells.
const DEEPEST_SHELL: u8 = 3;
/// The depth of commands that start commands. Each is recorded with all words behind it, so an unlimited depth would
/// cost the square of the length.
const DEEPEST_START: usize = 16;

/// A command as far as it is known yet.
#[derive(Default)]
pub(super) struct CommandDraft {
    pub(super) words: Vec<String>,
    /// Further words follow, which are not literal.
    pub(super) open: bool,
    pub(super) assignments: Vec<VariableAssignment>,
    /// The text to show if the words alone are not enough, without the variables.
    pub(super) text: Option<String>,
    /// The reason why it starts commands that are not in its words.
    pub(super) hides: Option<HiddenStart>,
}

impl CommandDraft {
    fn text_with_assignments(&self) -> String {
        let text = match &self.text {
            Some(text) => render::shortened(text),
            None => render::command_line(&self.words),
        };
        if self.assignments.is_empty() {
            text
        } else {
            render::assignments(&self.assignments) + &text
        }
    }

    /// With `CDPATH`, `cd` may enter a folder that the text does not name.
    fn has_search_path(&self) -> bool {
        self.assignments
            .iter()
            .any(|assignment| assignment.name == "CDPATH")
    }
}

impl ScriptWalker {
    /// `in_shell`: builtins are builtins here, and not programs of the same name.
    pub(super) fn run(&mut self, draft: CommandDraft, in_shell: bool) -> DirectoriesAfterCommand {
        if draft.words.is_empty() && !draft.open {
            return self.ends();
        }
        let before = self.scope.directory.clone();
        match wrapper::starts(&draft.words, in_shell) {
            starts
                if self.within.len() >= DEEPEST_START
                    && !matches!(starts, WrappedStart::Nothing) =>
            {
                self.opaque(&render::command_line(&draft.words), OpaqueReason::TooDeep);
                self.record(draft);
            }
            WrappedStart::Nothing => {
                let effect = match in_shell.then(|| builtin::effect(&draft.words, draft.open)) {
                    Some(BuiltinEffect::Enters(_)) if draft.has_search_path() => {
                        BuiltinEffect::EntersUnknown
                    }
                    Some(effect) => effect,
                    None => BuiltinEffect::Nothing,
                };
                let loads_code = effect == BuiltinEffect::LoadsCode;
                let hides = loads_code.then(|| HiddenStart {
                    through: draft.words.len() - 1,
                    by_variable: false,
                    why: "loads code into the shell",
                });
                self.record(CommandDraft {
                    hides: hides.or(draft.hides),
                    ..draft
                });
                return self.effect(effect, before);
            }
            WrappedStart::Unknown(reason) => {
                self.opaque(&render::command_line(&draft.words), reason);
                self.record(draft);
            }
            WrappedStart::Command(inner) => {
                if draft.words.len() <= inner.at {
                    // Wrappers that need privileges start a shell in this case: `sudo -s`, `chroot x`.
                    let why = "starts a shell that reads its commands from its input";
                    let hidden = HiddenStart {
                        through: draft.words.len() - 1,
                        by_variable: false,
                        why,
                    };
                    let starts_shell = inner.stays && !draft.open;
                    self.record(CommandDraft {
                        hides: starts_shell.then_some(hidden),
                        ..draft
                    });
                } else {
                    return self.start(draft, inner);
                }
            }
            WrappedStart::Script(script) => self.nested(draft, &script),
            WrappedStart::Found(actions) => self.find_actions(draft, actions),
            WrappedStart::Launches(launch) => self.launch(draft, launch),
        }
        self.ends()
    }

    fn start(
        &mut self,
        mut draft: CommandDraft,
        inner: wrapper::InnerCommand,
    ) -> DirectoriesAfterCommand {
        let words = draft.words.split_off(inner.at);
        let label = render::shortened(&draft.words.join(" "));
        let mut assignments = std::mem::take(&mut draft.assignments);
        if inner.stays {
            let outer = [draft.words.as_slice(), words.as_slice()].concat();
            let open = draft.open;
            let text = draft.text.clone();
            self.record(CommandDraft {
                words: outer,
                open,
                assignments: assignments.clone(),
                text,
                hides: None,
            });
        }
        assignments.extend(inner.assignments);
        let open = draft.open || inner.open;
        let text = open.then(|| format!("{} …", render::command_line(&words)));
        let scope = self.scope.clone();
        if let Some(directory) = &inner.directory {
            self.scope.directory = self.scope.directory.enter(directory);
        }
        self.within.push(label);
        let ends = self.run(
            CommandDraft {
                words,
                open,
                assignments,
                text,
                hides: None,
            },
            inner.in_shell,
        );
        self.within.pop();
        if inner.in_shell {
            ends
        } else {
            self.scope = scope;
            self.ends()
        }
    }

    /// A script for a shell, for `eval` or for `trap`.
    fn nested(&mut self, draft: CommandDraft, script: &wrapper::ShellScript) {
        let assignments = draft.assignments.clone();
        if script.stays {
            self.record(draft);
        } else if draft.open {
            self.opaque(&draft.text.unwrap_or_default(), OpaqueReason::DynamicWord);
        }
        self.within.push(script.label.clone());
        self.nested_in(script, assignments);
        self.within.pop();
    }

    /// Walks a script with these variables set for it.
    pub(super) fn nested_in(
        &mut self,
        script: &wrapper::ShellScript,
        assignments: Vec<VariableAssignment>,
    ) {
        if let Some(reason) = script.dialect.doubt(&script.text) {
            self.opaque(&script.text, reason);
        }
        if self.shells == DEEPEST_SHELL {
            self.opaque(&script.text, OpaqueReason::TooDeep);
            return;
        }
        let scope = self.scope.clone();
        if script.dialect == ShellDialect::Later {
            self.scope.directory = CommandDirectory::Unknown;
        }
        let inherited = std::mem::replace(&mut self.inherited, assignments);
        self.shells += 1;
        self.script(&script.text);
        self.shells -= 1;
        self.inherited = inherited;
        if script.dialect != ShellDialect::Here {
            self.scope = scope;
        }
    }

    fn find_actions(&mut self, draft: CommandDraft, actions: Vec<FindAction>) {
        let assignments = draft.assignments.clone();
        self.record(draft);
        for action in actions {
            match action {
                FindAction::Writes(path) => self.written_by_option(&path, None),
                FindAction::Runs {
                    option,
                    words,
                    open,
                } => {
                    let text = open.then(|| format!("{} …", render::command_line(&words)));
                    self.within.push(format!("find {option}"));
                    let assignments = assignments.clone();
                    self.run(
                        CommandDraft {
                            words,
                            open,
                            assignments,
                            text,
                            hides: None,
                        },
                        false,
                    );
                    self.within.pop();
                }
            }
        }
    }

    /// Adds a command to the analysis.
    pub(super) fn record(&mut self, draft: CommandDraft) {
        let text = draft.text_with_assignments();
        if draft.open {
            self.opaque(&text, OpaqueReason::DynamicWord);
        } else if self.scope.changed {
            self.opaque(&text, OpaqueReason::ChangedShell);
        }
        let place = self.found.commands.len();
        self.push(SimpleCommand {
            words: draft.words,
            assignments: draft.assignments,
            opaque: draft.open || self.scope.changed,
            hides: draft.hides,
            spelled_in: None,
            within: self.within.clone(),
            directory: self.scope.directory.clone(),
            text,
        });
        self.variables_of(place);
    }

    fn effect(
        &mut self,
        effect: BuiltinEffect,
        before: CommandDirectory,
    ) -> DirectoriesAfterCommand {
        match effect {
            BuiltinEffect::Nothing => {}
            BuiltinEffect::Enters(target) => {
                self.scope.directory = self.scope.directory.enter(&target);
                return DirectoriesAfterCommand {
                    well: self.scope.directory.clone(),
                    badly: before,
                };
            }
            BuiltinEffect::EntersUnknown => self.scope.directory = CommandDirectory::Unknown,
            BuiltinEffect::ChangesNames | BuiltinEffect::LoadsCode => self.scope.changed = true,
            BuiltinEffect::Evaluates(texts) => {
                for text in texts {
                    self.opaque(&text, OpaqueReason::Evaluated);
                    self.take_apart(&text);
                }
            }
        }
        self.ends()
    }
}

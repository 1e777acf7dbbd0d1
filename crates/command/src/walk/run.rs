//! A command that is about to run: what it starts in turn, and what it changes in the shell.

use super::{Ends, Walker};
use crate::analysis::{Assignment, SimpleCommand};
use crate::builtin::{self, Effect};
use crate::directory::Directory;
use crate::opaque::OpaqueReason;
use crate::render;
use crate::wrapper::{self, Dialect, FindAction, Starts};

/// Shells that are told to run shells.
const DEEPEST_SHELL: u8 = 3;

/// A command as far as it is known.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) words: Vec<String>,
    /// More words follow, which are not literal.
    pub(super) open: bool,
    pub(super) assignments: Vec<Assignment>,
    /// The text to show where the words alone would not tell it.
    pub(super) text: Option<String>,
}

impl Walker {
    /// `in_shell` tells builtins from programs of the same name.
    pub(super) fn run(&mut self, draft: Draft, in_shell: bool) -> Ends {
        if draft.words.is_empty() && !draft.open {
            return self.ends();
        }
        let before = self.scope.directory.clone();
        match wrapper::starts(&draft.words, in_shell) {
            Starts::Nothing => {
                let effect =
                    if in_shell { builtin::effect(&draft.words, draft.open) } else { Effect::Nothing };
                self.record(draft);
                return self.effect(effect, before);
            }
            Starts::Unknown(reason) => {
                self.opaque(&render::command_line(&draft.words), reason);
                self.record(draft);
            }
            Starts::Command(inner) => {
                if draft.words.len() <= inner.at {
                    self.record(draft);
                } else {
                    return self.start(draft, inner);
                }
            }
            Starts::Script(script) => self.nested(draft, &script),
            Starts::Found(actions) => self.find_actions(draft, actions),
        }
        self.ends()
    }

    fn start(&mut self, mut draft: Draft, inner: wrapper::Inner) -> Ends {
        let words = draft.words.split_off(inner.at);
        let label = render::shortened(&draft.words.join(" "));
        let mut assignments = std::mem::take(&mut draft.assignments);
        if inner.stays {
            let outer = [draft.words.as_slice(), words.as_slice()].concat();
            let (open, text) = (draft.open, draft.text.clone());
            self.record(Draft { words: outer, open, assignments: assignments.clone(), text });
        }
        assignments.extend(inner.assignments);
        let open = draft.open || inner.open;
        let text = open.then(|| format!("{} …", render::command_line(&words)));
        let scope = self.scope.clone();
        if let Some(directory) = &inner.directory {
            self.scope.directory = self.scope.directory.enter(directory);
        }
        self.within.push(label);
        let ends = self.run(Draft { words, open, assignments, text }, inner.in_shell);
        self.within.pop();
        if inner.in_shell {
            ends
        } else {
            self.scope = scope;
            self.ends()
        }
    }

    /// A script given to a shell, to `eval` or to `trap`.
    fn nested(&mut self, draft: Draft, script: &wrapper::Script) {
        let label = script.label.clone();
        let assignments = draft.assignments.clone();
        if let Some(reason) = script.dialect.doubt(&script.text) {
            self.opaque(&script.text, reason);
        }
        if script.stays {
            self.record(draft);
        } else if draft.open {
            self.opaque(&draft.text.unwrap_or_default(), OpaqueReason::DynamicWord);
        }
        if self.shells == DEEPEST_SHELL {
            self.opaque(&script.text, OpaqueReason::TooDeep);
            return;
        }
        let scope = self.scope.clone();
        if script.dialect == Dialect::Later {
            self.scope.directory = Directory::Unknown;
        }
        let inherited = std::mem::replace(&mut self.inherited, assignments);
        self.shells += 1;
        self.within.push(label);
        self.script(&script.text);
        self.within.pop();
        self.shells -= 1;
        self.inherited = inherited;
        if script.dialect != Dialect::Here {
            self.scope = scope;
        }
    }

    fn find_actions(&mut self, draft: Draft, actions: Vec<FindAction>) {
        let assignments = draft.assignments.clone();
        self.record(draft);
        for action in actions {
            match action {
                FindAction::Writes(path) => self.written_by_option(&path),
                FindAction::Runs { option, words, open } => {
                    let text = open.then(|| format!("{} …", render::command_line(&words)));
                    self.within.push(format!("find {option}"));
                    self.run(Draft { words, open, assignments: assignments.clone(), text }, false);
                    self.within.pop();
                }
            }
        }
    }

    /// Notes a command as one that runs itself.
    fn record(&mut self, draft: Draft) {
        let text = match &draft.text {
            Some(text) => render::shortened(text),
            None => render::command_line(&draft.words),
        };
        if draft.open {
            self.opaque(&text, OpaqueReason::DynamicWord);
        } else if self.scope.changed {
            self.opaque(&text, OpaqueReason::ChangedShell);
        }
        self.push(SimpleCommand {
            words: draft.words,
            assignments: draft.assignments,
            opaque: draft.open || self.scope.changed,
            within: self.within.clone(),
            directory: self.scope.directory.clone(),
            text,
        });
    }

    fn effect(&mut self, effect: Effect, before: Directory) -> Ends {
        match effect {
            Effect::Nothing => {}
            Effect::Enters(target) => {
                self.scope.directory = self.scope.directory.enter(&target);
                return Ends { well: self.scope.directory.clone(), badly: before };
            }
            Effect::EntersUnknown => self.scope.directory = Directory::Unknown,
            Effect::ChangesNames => self.scope.changed = true,
            Effect::Evaluates(texts) => {
                for text in texts {
                    self.opaque(&text, OpaqueReason::Evaluated);
                    self.take_apart(&text);
                }
            }
        }
        self.ends()
    }
}

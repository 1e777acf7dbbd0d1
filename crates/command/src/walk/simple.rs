//! Simple commands: assignments, redirections and words, in the shell's order.

use brush_parser::ast::{self, CommandPrefixOrSuffixItem as Item};

use super::run::CommandDraft;
use super::{DirectoriesAfterCommand, ScriptWalker};
use crate::analysis::VariableAssignment;
use crate::opaque::OpaqueReason;
use crate::variable;
use crate::word;

impl ScriptWalker {
    pub(super) fn simple(
        &mut self,
        command: &ast::SimpleCommand,
        timed: bool,
    ) -> DirectoriesAfterCommand {
        let mut draft = CommandDraft::default();
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let Some(program) = &command.word_or_name else {
            for item in prefix {
                self.item(item, &mut draft, CommandItemPosition::Alone);
            }
            return self.ends();
        };
        for item in prefix {
            self.item(item, &mut draft, CommandItemPosition::Before);
        }
        // In `time -- command` the parser takes the dashes for the program.
        if !timed || program.value != "--" {
            self.word(&program.value, &mut draft);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut draft, CommandItemPosition::Behind);
        }
        draft
            .assignments
            .splice(0..0, self.inherited.iter().cloned());
        if draft.open {
            let behind = command
                .suffix
                .as_ref()
                .map(|suffix| format!(" {suffix}"))
                .unwrap_or_default();
            draft.text = Some(format!("{program}{behind}"));
        }
        self.run(draft, true)
    }

    /// A command of one word.
    pub(super) fn lone_word(&mut self, word: &ast::Word) -> DirectoriesAfterCommand {
        let mut draft = CommandDraft::default();
        self.word(&word.value, &mut draft);
        draft.assignments.extend(self.inherited.iter().cloned());
        draft.text = draft.open.then(|| word.value.clone());
        self.run(draft, true)
    }

    fn item(&mut self, item: &Item, draft: &mut CommandDraft, place: CommandItemPosition) {
        match (item, place) {
            (Item::IoRedirect(redirect), _) => self.redirect(redirect),
            (Item::Word(word), _) => self.word(&word.value, draft),
            (Item::AssignmentWord(assignment, word), CommandItemPosition::Behind) => {
                match assignment.value {
                    ast::AssignmentValue::Scalar(_) => self.word(&word.value, draft),
                    ast::AssignmentValue::Array(_) => {
                        draft.open = true;
                        self.array_elements(assignment);
                    }
                }
            }
            (Item::AssignmentWord(assignment, _), CommandItemPosition::Before) => {
                draft.assignments.extend(self.assignment(assignment));
            }
            (Item::AssignmentWord(assignment, _), CommandItemPosition::Alone) => {
                self.lasting_assignment(assignment);
            }
            (Item::ProcessSubstitution(_, subshell), _) => {
                draft.open = true;
                self.apart(|walker| walker.list(&subshell.list));
            }
        }
    }

    /// Adds a word before the first one that is not literal. From later words, only the commands in them are found.
    fn word(&mut self, raw: &str, draft: &mut CommandDraft) {
        let literal = self.literal(raw);
        match literal {
            Some(word) if !draft.open => draft.words.push(word),
            Some(_) => {}
            None => draft.open = true,
        }
    }

    /// A variable that is set for one command.
    fn assignment(&mut self, assignment: &ast::Assignment) -> Option<VariableAssignment> {
        let ast::AssignmentName::VariableName(name) = &assignment.name else {
            self.array_elements(assignment);
            return None;
        };
        let ast::AssignmentValue::Scalar(value) = &assignment.value else {
            self.array_elements(assignment);
            return None;
        };
        if variable::is_number(name) {
            self.opaque(&assignment.to_string(), OpaqueReason::Evaluated);
        }
        if variable::is_free(name) {
            self.bystander(&value.value);
            return None;
        }
        // The result of an addition depends on the value before it.
        let value = self.literal(&value.value).filter(|_| !assignment.append);
        if value.is_none() {
            self.opaque(&assignment.to_string(), OpaqueReason::DynamicAssignment);
        }
        Some(VariableAssignment {
            name: name.clone(),
            value,
        })
    }

    /// A variable that is set in the shell itself, for all later commands.
    fn lasting_assignment(&mut self, assignment: &ast::Assignment) {
        match &assignment.name {
            ast::AssignmentName::VariableName(name) => self.variable(name),
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.variable(name);
                if !word::is_plain_arithmetic(index) {
                    self.opaque(&assignment.to_string(), OpaqueReason::Evaluated);
                    self.take_apart(index);
                }
            }
        }
        match &assignment.value {
            ast::AssignmentValue::Scalar(value) => self.bystander(&value.value),
            ast::AssignmentValue::Array(elements) => {
                for (index, element) in elements {
                    if let Some(index) = index {
                        self.opaque(&index.value, OpaqueReason::Evaluated);
                        self.take_apart(&index.value);
                    }
                    self.bystander(&element.value);
                }
            }
        }
    }

    /// Not every reader takes this for an array, in front of a command or as an argument, so it is ambiguous.
    fn array_elements(&mut self, assignment: &ast::Assignment) {
        self.opaque(&assignment.to_string(), OpaqueReason::Ambiguous);
        if let ast::AssignmentName::ArrayElementName(_, index) = &assignment.name {
            self.take_apart(index);
        }
        match &assignment.value {
            ast::AssignmentValue::Scalar(value) => self.take_apart(&value.value),
            ast::AssignmentValue::Array(elements) => {
                for (index, element) in elements {
                    self.take_apart(index.as_ref().map_or("", |index| &index.value));
                    self.take_apart(&element.value);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum CommandItemPosition {
    /// There is no command.
    Alone,
    Before,
    Behind,
}

//! Walks a parsed script and collects the commands that it would run.
//!
//! The parser's types are matched without a catch-all. A construct that a new version of the parser adds therefore does
//! not compile here until its meaning is decided, instead of hiding its commands from the rules.

mod environment;
mod launch;
mod pieces;
mod redirect;
mod run;
mod simple;
mod test;

use brush_parser::ast::{self, SourceLocation as _};

use crate::analysis::{Analysis, SimpleCommand, VariableAssignment};
use crate::directory::CommandDirectory;
use crate::opaque::{OpaquePart, OpaqueReason};
use crate::parse;
use crate::word::{self, WordExpansion};

/// More commands than an operator could look at are not listed.
const MOST_COMMANDS: usize = 512;
/// The depth of scripts inside words of scripts.
const DEEPEST_SUBSTITUTION: u8 = 8;

/// The state of a shell that commands change for the commands after them.
#[derive(Clone, PartialEq, Eq, Default)]
struct ShellScope {
    directory: CommandDirectory,
    /// A name may no longer stand for its program.
    changed: bool,
}

/// The directory after a command succeeded, and after it failed.
struct DirectoriesAfterCommand {
    well: CommandDirectory,
    badly: CommandDirectory,
}

#[derive(Default)]
pub(crate) struct ScriptWalker {
    found: Analysis,
    scope: ShellScope,
    functions: Vec<String>,
    /// The commands that started the nested script.
    within: Vec<String>,
    /// The variables that are set for all commands of the nested script.
    inherited: Vec<VariableAssignment>,
    /// The variables whose commands were already read.
    variables: Vec<VariableAssignment>,
    /// The current depth of scripts inside words.
    substitutions: u8,
    /// The current depth of scripts that a shell gets as an argument.
    shells: u8,
    /// The script has a `#`, which may be a comment for one reader and text for the other.
    has_hash: bool,
}

impl ScriptWalker {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The result, after all functions are known.
    pub(crate) fn finish(mut self) -> Analysis {
        if !self.functions.is_empty() {
            self.mark_function_calls();
        }
        self.found
    }

    /// Marks calls of functions. A function with the name of a program hides that program, wherever in the text it is
    /// defined.
    fn mark_function_calls(&mut self) {
        let functions = &self.functions;
        let is_function = |word: &str| functions.iter().any(|name| name == word);
        for command in &mut self.found.commands {
            let started_by = |entry: &String| entry.split(' ').next().is_some_and(is_function);
            let own = command.words.first().is_some_and(|word| is_function(word));
            if own || command.within.iter().any(started_by) {
                command.opaque = true;
                self.found
                    .opaque
                    .push(OpaquePart::new(&command.text, OpaqueReason::FunctionCalled));
            }
        }
    }

    pub(crate) fn script(&mut self, text: &str) {
        match parse::parse(text) {
            Ok(program) => {
                let has_hash = std::mem::replace(&mut self.has_hash, text.contains('#'));
                for list in &program.complete_commands {
                    self.list(list);
                }
                self.has_hash = has_hash;
            }
            Err(reason) => self.opaque(text, reason),
        }
    }

    fn opaque(&mut self, text: &str, reason: OpaqueReason) {
        if self.found.opaque.len() < MOST_COMMANDS {
            self.found.opaque.push(OpaquePart::new(text, reason));
        }
    }

    fn push(&mut self, command: SimpleCommand) {
        if self.found.commands.len() < MOST_COMMANDS {
            self.found.commands.push(command);
        } else {
            self.opaque(&command.text, OpaqueReason::TooManyCommands);
        }
    }

    /// Walks a part that runs in a shell of its own and leaves the outer shell unchanged.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let scope = self.scope.clone();
        walk(self);
        self.scope = scope;
    }

    /// A script inside a word.
    fn substitution(&mut self, text: &str) {
        if self.substitutions == DEEPEST_SUBSTITUTION {
            self.opaque(text, OpaqueReason::TooDeep);
            return;
        }
        self.substitutions += 1;
        self.apart(|walker| walker.script(text));
        self.substitutions -= 1;
    }

    fn list(&mut self, list: &ast::CompoundList) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            match separator {
                ast::SeparatorOperator::Async => self.apart(|walker| walker.and_or(and_or)),
                ast::SeparatorOperator::Sequence => self.and_or(and_or),
            }
        }
    }

    /// Follows both ways through `&&` and `||`. A directory that depends on a command's outcome is unknown as soon as
    /// both ways come together again.
    fn and_or(&mut self, list: &ast::AndOrList) {
        let mut ends = self.pipeline(&list.first);
        for item in &list.additional {
            ends = match item {
                ast::AndOr::And(pipeline) => {
                    self.scope.directory = ends.well;
                    let next = self.pipeline(pipeline);
                    DirectoriesAfterCommand {
                        well: next.well,
                        badly: ends.badly.or(&next.badly),
                    }
                }
                ast::AndOr::Or(pipeline) => {
                    self.scope.directory = ends.badly;
                    let next = self.pipeline(pipeline);
                    DirectoriesAfterCommand {
                        well: ends.well.or(&next.well),
                        badly: next.badly,
                    }
                }
            };
        }
        self.scope.directory = ends.well.or(&ends.badly);
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) -> DirectoriesAfterCommand {
        let ends = match pipeline.seq.as_slice() {
            [command] => self.command(command, pipeline.timed.is_some()),
            commands => {
                for command in commands {
                    self.apart(|walker| {
                        walker.command(command, pipeline.timed.is_some());
                    });
                }
                self.ends()
            }
        };
        if pipeline.bang {
            DirectoriesAfterCommand {
                well: ends.badly,
                badly: ends.well,
            }
        } else {
            ends
        }
    }

    fn ends(&self) -> DirectoriesAfterCommand {
        DirectoriesAfterCommand {
            well: self.scope.directory.clone(),
            badly: self.scope.directory.clone(),
        }
    }

    fn command(&mut self, command: &ast::Command, timed: bool) -> DirectoriesAfterCommand {
        match command {
            ast::Command::Simple(simple) => return self.simple(simple, timed),
            ast::Command::Compound(compound, redirects) => {
                self.redirects(redirects.as_ref());
                self.compound(compound);
            }
            ast::Command::Function(function) => self.function(function),
            ast::Command::ExtendedTest(test, redirects) => {
                self.redirects(redirects.as_ref());
                self.extended_test(&test.expr);
            }
        }
        self.ends()
    }

    fn compound(&mut self, compound: &ast::CompoundCommand) {
        match compound {
            ast::CompoundCommand::Arithmetic(arithmetic) => self.arithmetic(&arithmetic.expr),
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                for expression in [&clause.initializer, &clause.condition, &clause.updater]
                    .into_iter()
                    .flatten()
                {
                    self.arithmetic(expression);
                }
                self.repeated(|walker| walker.list(&clause.body.list));
            }
            ast::CompoundCommand::BraceGroup(group) => self.list(&group.list),
            ast::CompoundCommand::Subshell(subshell) => {
                self.apart(|walker| walker.list(&subshell.list));
            }
            ast::CompoundCommand::ForClause(clause) => self.for_clause(clause),
            ast::CompoundCommand::CaseClause(clause) => self.case_clause(clause),
            ast::CompoundCommand::IfClause(clause) => self.if_clause(clause),
            ast::CompoundCommand::WhileClause(clause)
            | ast::CompoundCommand::UntilClause(clause) => {
                self.repeated(|walker| {
                    walker.list(&clause.0);
                    walker.list(&clause.1.list);
                });
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                if let Some(name) = &coprocess.name {
                    self.variable(&name.value);
                    // For the parser, a word and a group on the next line are one coprocess with a name. For bash, the
                    // word is a command and the group another.
                    if !is_on_one_line(name, &coprocess.body) {
                        self.apart(|walker| {
                            walker.lone_word(name);
                        });
                    }
                }
                self.apart(|walker| {
                    walker.command(&coprocess.body, false);
                });
            }
        }
    }

    fn for_clause(&mut self, clause: &ast::ForClauseCommand) {
        self.variable(&clause.variable_name);
        for value in clause.values.iter().flatten() {
            self.bystander(&value.value);
        }
        self.repeated(|walker| walker.list(&clause.body.list));
    }

    fn case_clause(&mut self, clause: &ast::CaseClauseCommand) {
        self.bystander(&clause.value.value);
        let before = self.scope.clone();
        let mut after = before.clone();
        for case in &clause.cases {
            // The previous case may fall through into this one.
            self.scope = ShellScope {
                directory: before.directory.clone().or(&after.directory),
                ..after.clone()
            };
            for pattern in &case.patterns {
                self.bystander(&pattern.value);
            }
            if let Some(list) = &case.cmd {
                self.list(list);
            }
            after.join(&self.scope);
        }
        self.scope = after;
    }

    fn if_clause(&mut self, clause: &ast::IfClauseCommand) {
        self.list(&clause.condition);
        let mut before = self.scope.clone();
        self.list(&clause.then);
        let mut after = self.scope.clone();
        for branch in clause.elses.iter().flatten() {
            self.scope = before.clone();
            if let Some(condition) = &branch.condition {
                self.list(condition);
                before = self.scope.clone();
            }
            self.list(&branch.body);
            after.join(&self.scope);
        }
        after.join(&before);
        self.scope = after;
    }

    /// A body that may run any number of times. The end of one round is the beginning of the next, so a `cd` or a
    /// changed name in the body applies to all of the body: a command before the `cd` runs in the new directory from
    /// the second round on. The body is walked once and its commands are corrected afterwards. A second walk would
    /// double the time at every nesting level.
    fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = self.scope.clone();
        let commands = self.found.commands.len();
        let redirects = self.found.redirects.len();
        walk(self);
        if self.scope.directory != before.directory {
            self.scope.directory = CommandDirectory::Unknown;
            for command in &mut self.found.commands[commands..] {
                command.directory = CommandDirectory::Unknown;
            }
            for redirect in &mut self.found.redirects[redirects..] {
                redirect.directory = CommandDirectory::Unknown;
            }
        }
        if self.scope.changed && !before.changed {
            for command in &mut self.found.commands[commands..] {
                command.opaque = true;
                self.found
                    .opaque
                    .push(OpaquePart::new(&command.text, OpaqueReason::ChangedShell));
            }
        }
    }

    /// The body counts at its definition, because any later command may call it.
    fn function(&mut self, function: &ast::FunctionDefinition) {
        match word::read(&function.fname.value) {
            WordExpansion::Literal(name) => self.functions.push(name),
            WordExpansion::Expanded(_) | WordExpansion::Unsure => {
                self.opaque(&function.fname.value, OpaqueReason::Ambiguous);
            }
        }
        let ast::FunctionBody(body, redirects) = &function.body;
        self.apart(|walker| {
            walker.scope.directory = CommandDirectory::Unknown;
            walker.redirects(redirects.as_ref());
            walker.compound(body);
        });
    }

    /// A variable that a construct sets to values that are not followed.
    fn variable(&mut self, name: &str) {
        if !crate::variable::is_name(name) {
            self.opaque(name, OpaqueReason::Ambiguous);
        } else if crate::variable::is_number(name) {
            self.opaque(name, OpaqueReason::Evaluated);
        } else if crate::variable::changes_the_shell(name) {
            self.scope.changed = true;
            self.opaque(name, OpaqueReason::ChangedShell);
        }
    }

    /// The parser also accepts `( (a) )` as arithmetic, so even a number may be a command.
    fn arithmetic(&mut self, expression: &ast::UnexpandedArithmeticExpr) {
        self.opaque(&expression.value, OpaqueReason::Evaluated);
        self.take_apart(&expression.value);
    }
}

impl ShellScope {
    fn join(&mut self, other: &Self) {
        self.directory = std::mem::take(&mut self.directory).or(&other.directory);
        self.changed |= other.changed;
    }
}

fn is_on_one_line(word: &ast::Word, command: &ast::Command) -> bool {
    let ends = word.location().map(|span| span.end.line);
    let begins = command.location().map(|span| span.start.line);
    ends.is_some() && ends == begins
}

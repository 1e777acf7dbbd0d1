//! Finds the commands that a shell text would run, without running it.
//!
//! [`analyze`] reads the text as bash would. It lists the simple commands that would run, the files that are
//! redirected, and the pieces that cannot be known before the shell has expanded them. [`CommandPattern`] matches
//! commands for rules, and [`suggestions`] finds rules that could be offered to an operator.
//!
//! The permission layer requires an allow for every command found, and treats opaque pieces as unknown. The shell tool
//! runs a text in a read-only sandbox if [`Analysis::only_reads`] holds. Nothing in this crate is a boundary: its
//! answers decide whether the host asks, and the sandbox limits what can happen.
//!
//! The crate is pure: it reads no file and runs nothing. A word counts as literal only if two readers agree about it,
//! the parser's tokens and this crate's own scanner. If a single reader ended a word too late, the word would hide a
//! command from the rules.
#![warn(missing_docs)]

mod analysis;
mod builtin;
mod directory;
mod network;
mod opaque;
mod parse;
mod pattern;
mod programs;
mod reads;
mod render;
mod suggest;
mod variable;
mod walk;
mod word;
mod wrapper;

pub use analysis::{
    Analysis, RedirectAccess, ShellRedirect, SimpleCommand, SpelledIn, VariableAssignment, analyze,
    analyze_with,
};
pub use directory::CommandDirectory;
pub use opaque::{OpaquePart, OpaqueReason};
pub use pattern::{CommandPattern, CommandPatternError};
pub use programs::HiddenStart;
pub use render::{command_text, shortened};
pub use suggest::suggestions;

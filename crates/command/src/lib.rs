//! What a shell command would run, told from its text alone.
//!
//! [`analyze`] reads the text as bash would and lists the simple commands that would run, the files that are
//! redirected, and whatever cannot be known before the shell has expanded it. [`CommandPattern`] says which
//! commands a rule is about, [`suggestions`] which rules could be offered to a person.
//!
//! The permission layer asks that every command found is allowed and treats what is opaque as unknown; the
//! shell tool runs what [`Analysis::only_reads`] in a sandbox that can only read. Nothing here is a boundary:
//! the answers decide whether to ask, the sandbox decides what can happen.
//!
//! Everything is pure: no file is looked at and nothing is run. Two readers must agree before a word counts as
//! literal, the parser's tokens and this crate's own scanner, because a word that one of them ends too late
//! would hide a command from the rules.
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

//! `toolpost` without arguments: a page with the first steps.

use crate::{
    exit::CliExit,
    terminal::{BOLD, DIM, say, styled},
};

const PAGE: &[(&str, &str)] = &[
    (
        "toolpost serve",
        "start the host; it says where it listens, what it allows and how to change that",
    ),
    ("toolpost tools", "what can be called here"),
    ("toolpost call read_file path=README.md", "call a tool"),
    (
        "toolpost explain write_file path=x content=y",
        "what would happen to a call, and why",
    ),
    ("toolpost journal tail", "what happened"),
    ("toolpost doctor", "is everything in place?"),
];

#[expect(clippy::unnecessary_wraps, reason = "every command has this form")]
pub(crate) fn run() -> anyhow::Result<CliExit> {
    say!(
        "{} holds the tools of AI agents: files and more, behind permission and on record.\n",
        styled(BOLD, "toolpost")
    );
    for (command, what) in PAGE {
        say!("  {}\n      {}", styled(BOLD, command), styled(DIM, what));
    }
    say!("\n`toolpost --help` lists every command, `toolpost COMMAND --help` its options.");
    Ok(CliExit::Done)
}

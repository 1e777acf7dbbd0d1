//! `toolpost` without arguments: a page with the first steps.

use crate::{
    exit::CliExit,
    terminal::{BOLD, DIM, say, styled},
};

const PAGE: &[(&str, &str)] = &[
    (
        "toolpost serve",
        "start the host and print its address and permissions",
    ),
    ("toolpost tools", "list the tools"),
    ("toolpost call read_file path=README.md", "call a tool"),
    (
        "toolpost explain write_file path=x content=y",
        "explain a call without making it",
    ),
    ("toolpost journal tail", "show the newest records"),
    ("toolpost doctor", "check the setup"),
];

#[expect(clippy::unnecessary_wraps, reason = "every command has this form")]
pub(crate) fn run() -> anyhow::Result<CliExit> {
    say!(
        "{} runs tools for AI agents, with permissions and a record of every call.\n",
        styled(BOLD, "toolpost")
    );
    for (command, purpose) in PAGE {
        say!(
            "  {}\n      {}",
            styled(BOLD, command),
            styled(DIM, purpose)
        );
    }
    say!("\n`toolpost --help` lists every command, `toolpost COMMAND --help` its options.");
    Ok(CliExit::Done)
}

//! `toolpost completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{cli::Cli, exit::CliExit};

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "every command has this form")]
pub(crate) fn run(arguments: &CompletionsArgs) -> anyhow::Result<CliExit> {
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "toolpost",
        &mut std::io::stdout(),
    );
    Ok(CliExit::Done)
}

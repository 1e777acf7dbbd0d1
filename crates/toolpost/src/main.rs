//! The command line: parse, run, exit code. One file per command; results on stdout, messages on stderr.

mod approving;
mod arguments;
mod authorities;
mod cli;
mod client;
mod commands;
mod dropped_flags;
mod environment;
mod exit;
mod hooks;
mod reach;
mod settings;
mod terminal;
mod watching;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use commands::{
    a2a, approvals, artifacts, call, capture, completions, connect, doctor, explain, journal,
    modules, new, reference, serve, tools, trust, validate, watch, welcome,
};

fn main() -> ExitCode {
    // The same binary is the launcher of sandboxed commands. In that role it does nothing else.
    toolpost_sandbox::launch_if_asked();
    // Before any thread starts and any byte is read: the same binary is also the process that runs code.
    toolpost_native::code_worker_if_asked();
    let cli = Cli::try_parse().unwrap_or_else(|error| dropped_flags::add_tip(error).exit());
    match &cli.command {
        Some(Command::Serve(arguments)) if arguments.talks_over_pipes() => {
            terminal::start_logging_aside();
        }
        Some(Command::Journal(arguments)) if arguments.talks_over_pipes() => {
            terminal::start_logging_aside();
        }
        _ => terminal::start_logging(),
    }
    match run(cli) {
        Ok(code) => code.into(),
        Err(error) => {
            terminal::print_error(&error);
            exit::of(&error).into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<exit::CliExit> {
    let Some(command) = cli.command else {
        return welcome::run();
    };
    match command {
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Reference(arguments) => reference::run(&arguments),
        Command::A2a(arguments) => a2a::run(&arguments),
        Command::Journal(arguments) => journal::run(&arguments),
        Command::Artifacts(arguments) => artifacts::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Connect(arguments) => runtime()?.block_on(connect::run(&arguments)),
        Command::Serve(arguments) => runtime()?.block_on(serve::run(arguments)),
        Command::Capture(arguments) => runtime()?.block_on(capture::run(arguments)),
        Command::Tools(arguments) => runtime()?.block_on(tools::run(arguments)),
        Command::Call(arguments) => runtime()?.block_on(call::run(arguments)),
        Command::Watch(arguments) => runtime()?.block_on(watch::run(&arguments)),
        Command::Approvals(arguments) => runtime()?.block_on(approvals::run(arguments)),
        Command::Explain(arguments) => runtime()?.block_on(explain::run(arguments)),
        Command::Validate(arguments) => runtime()?.block_on(validate::run(arguments)),
        Command::Modules(arguments) => runtime()?.block_on(modules::run(arguments)),
        Command::Doctor(arguments) => runtime()?.block_on(doctor::run(arguments)),
    }
}

pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

//! `toolpost connect CLIENT`: the command or text that lets an MCP client find this host.

mod clients;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::{
    cli::{PlaceArgs, PolicyArgs, SettingsArgs},
    environment,
    exit::{CliExit, UsageError},
    reach,
    settings::{self, CommandSettings},
    terminal::{self, BOLD, DIM, say, styled},
};
use clients::{AgentClient, ClientTransport, ConnectRecipe};

#[derive(Args)]
pub(crate) struct ConnectArgs {
    /// The client; by default all clients are listed
    #[arg(value_name = "CLIENT")]
    client: Option<AgentClient>,
    /// Let the client start a host of its own and use pipes
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Connect the client to the host that `toolpost serve` runs; the default if the client supports it
    #[arg(long)]
    http: bool,
    /// The client's name for this host
    #[arg(long, value_name = "NAME", default_value = "toolpost")]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) async fn run(arguments: &ConnectArgs) -> anyhow::Result<CliExit> {
    let Some(client) = arguments.client else {
        return list(arguments.json);
    };
    check_name(&arguments.name)?;
    let settings = settings::resolve(&arguments.settings, &PolicyArgs::default())?;
    let over_pipes = arguments.stdio || (!arguments.http && client.prefers_pipes());
    let found = look_for_host(&settings).await?;
    let reach = if over_pipes {
        pipes(arguments, &settings)
    } else {
        found.address(&settings)
    };
    let recipe = client.recipe(&arguments.name, &reach);
    let token_file = settings.place.data_dir.join("token");
    if arguments.json {
        say!(
            "{}",
            json!({
                "client": client.word(),
                "transport": if over_pipes { "stdio" } else { "http" },
                "command": recipe.command,
                "file": recipe.file,
                "snippet": recipe.snippet,
                "host_is_running": found.serves(over_pipes),
                "token_variable": (!over_pipes).then_some(clients::VARIABLE),
                "token_file": (!over_pipes).then_some(&token_file),
            })
        );
        return Ok(CliExit::Done);
    }
    show(client, &recipe);
    if let Some(word) = found.word(over_pipes) {
        terminal::warn(word);
    }
    if !over_pipes && client.reads_environment() {
        anstream::eprintln!(
            "\n{}\n  export {}=\"$(cat '{}')\"",
            styled(
                DIM,
                "the client reads the token from its environment; set it before the client starts:"
            ),
            clients::VARIABLE,
            token_file.display()
        );
    } else if !over_pipes {
        anstream::eprintln!(
            "{}",
            styled(DIM, format!("the token is in {}", token_file.display()))
        );
    }
    Ok(CliExit::Done)
}

/// The text to use goes to stdout, the place to put it to stderr.
fn show(client: AgentClient, recipe: &ConnectRecipe) {
    anstream::eprintln!("{}", styled(BOLD, client.title()));
    if let Some(command) = &recipe.command {
        anstream::eprintln!("{}", styled(DIM, "run this:"));
        say!("{command}");
    }
    if let Some(snippet) = &recipe.snippet {
        let or = if recipe.command.is_some() {
            "or put this into"
        } else {
            "put this into"
        };
        anstream::eprintln!("{}", styled(DIM, format!("{or} {}:", recipe.file)));
        // With a command there is only one text to copy.
        match recipe.command {
            Some(_) => anstream::eprintln!("{snippet}"),
            None => say!("{snippet}"),
        }
    }
    for note in &recipe.notes {
        anstream::eprintln!("{}", styled(DIM, note));
    }
}

fn list(as_json: bool) -> anyhow::Result<CliExit> {
    let all = AgentClient::value_variants();
    if as_json {
        let words: Vec<&str> = all.iter().map(|client| client.word()).collect();
        say!("{}", json!({ "clients": words }));
        return Ok(CliExit::Done);
    }
    for client in all {
        say!("{:<16}{}", client.word(), client.title());
    }
    anstream::eprintln!(
        "{}",
        styled(
            DIM,
            "`toolpost connect CLIENT` prints the setup of a client"
        )
    );
    Ok(CliExit::Done)
}

/// The name is used unquoted in commands and files of other programs.
fn check_name(name: &str) -> Result<(), UsageError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // A leading dash would make it a flag.
    match !name.is_empty()
        && name.len() <= 64
        && !name.starts_with('-')
        && name.chars().all(is_plain)
    {
        true => Ok(()),
        false => Err(UsageError(
            "a name has 1 to 64 letters, digits, `-` and `_`, and does not begin with `-`".into(),
        )),
    }
}

fn pipes(arguments: &ConnectArgs, settings: &CommandSettings) -> ClientTransport {
    let program = environment::program_path().map(|path| path.display().to_string());
    let mut words = vec!["serve".to_owned(), "--stdio".to_owned(), "mcp".to_owned()];
    // The client starts the host in a folder of its own.
    words.extend([
        "--workspace".to_owned(),
        settings.place.workspace.display().to_string(),
    ]);
    let SettingsArgs {
        place:
            PlaceArgs {
                workspace: _,
                data_dir,
                config,
            },
        policy,
    } = &arguments.settings;
    let given = [
        ("--data-dir", data_dir),
        ("--config", config),
        ("--policy", policy),
    ];
    for (flag, path) in given {
        if let Some(path) = path {
            words.extend([
                flag.to_owned(),
                environment::whole_path(path).display().to_string(),
            ]);
        }
    }
    ClientTransport::Pipes {
        program: program.unwrap_or_else(|| "toolpost".to_owned()),
        words,
    }
}

/// The host for the client.
enum HostReachability {
    Listens(SocketAddr),
    /// A host runs, but its client started it and uses pipes.
    OnPipes,
    Nobody,
}

/// Searches like the other commands do, so that they and the client use the same host.
async fn look_for_host(settings: &CommandSettings) -> anyhow::Result<HostReachability> {
    let place = &settings.place;
    let Some((_, facts)) = reach::running(&place.data_dir).await? else {
        return Ok(HostReachability::Nobody);
    };
    reach::same_workspace(&place.workspace, &facts)?;
    Ok(facts
        .address
        .map_or(HostReachability::OnPipes, HostReachability::Listens))
}

impl HostReachability {
    fn address(&self, settings: &CommandSettings) -> ClientTransport {
        let mut at = match self {
            Self::Listens(at) => *at,
            Self::OnPipes | Self::Nobody => settings.config.http.listen,
        };
        // "All addresses" is no destination, but this machine is one of them.
        match at {
            SocketAddr::V4(v4) if v4.ip().is_unspecified() => at.set_ip(Ipv4Addr::LOCALHOST.into()),
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => at.set_ip(Ipv6Addr::LOCALHOST.into()),
            SocketAddr::V4(_) | SocketAddr::V6(_) => {}
        }
        ClientTransport::Address(format!("http://{at}/mcp"))
    }

    /// Whether a host runs that the client can reach: at its address, or over pipes by joining it.
    fn serves(&self, over_pipes: bool) -> bool {
        match self {
            Self::Listens(_) => true,
            Self::OnPipes => over_pipes,
            Self::Nobody => false,
        }
    }

    /// A remark for the operator who sets the client up.
    fn word(&self, over_pipes: bool) -> Option<&'static str> {
        match (over_pipes, self) {
            (true, Self::Nobody) | (false, Self::Listens(_)) => None,
            (true, Self::Listens(_) | Self::OnPipes) => Some(
                "a host already runs on this workspace; the client joins it if their settings are the same, \
                 otherwise it needs its own `--data-dir`\nhint: use `--http` if `toolpost serve` started the host",
            ),
            (false, Self::OnPipes) => Some(
                "the running host serves its client over pipes and has no address, so this is the configured \
                 address\nhint: start `toolpost serve`, or connect with `--stdio`",
            ),
            (false, Self::Nobody) => Some(
                "no host is running on this workspace, so this is the configured address\nhint: start one with \
                 `toolpost serve`",
            ),
        }
    }
}

//! `toolpost new`: creates a working module to edit, and the test kit for Python authors.

mod name;
mod template;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use toolpost_native::NATIVE_TOOL_NAMES;

use crate::{
    environment,
    exit::{CliExit, UsageError},
    terminal::{say, warn},
};

use name::ModuleName;
use template::{ModuleTemplate, TEST_KIT, TEST_KIT_NAME};

#[derive(Args)]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    what: NewThing,
}

#[derive(Subcommand)]
enum NewThing {
    /// Create a module with one tool that passes `toolpost validate`
    Tool(ToolArgs),
    /// Write the test kit for Python modules, one file to put beside their tests
    Testkit(TestkitArgs),
}

#[derive(Args)]
struct ToolArgs {
    /// The tool's name, such as `word-count`
    name: String,
    /// The language of the module
    #[arg(long, value_name = "LANGUAGE")]
    lang: ModuleLanguage,
    /// The folder to create; by default `tool-NAME` here
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

#[derive(Args)]
struct TestkitArgs {
    /// The folder for the file
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModuleLanguage {
    /// A Python package, run by the host's bridge
    Python,
    /// A program of its own that serves gRPC
    Rust,
    /// A WebAssembly component, built from Rust
    Wasm,
}

pub(crate) fn run(arguments: &NewArgs) -> anyhow::Result<CliExit> {
    match &arguments.what {
        NewThing::Tool(arguments) => tool(arguments),
        NewThing::Testkit(arguments) => test_kit(&arguments.path),
    }
}

fn tool(arguments: &ToolArgs) -> anyhow::Result<CliExit> {
    let name = ModuleName::parse(&arguments.name).map_err(|error| UsageError(error.to_string()))?;
    let folder = arguments
        .path
        .clone()
        .unwrap_or_else(|| PathBuf::from(name.module_id()));
    let template = ModuleTemplate::of(arguments.lang);
    environment::write_new_folder(&folder, &template.files(&name))?;
    say!("created {} with a tool `{}`", folder.display(), name.tool());
    let served = served_name(&name);
    if served != name.tool() {
        warn(format_args!(
            "the host has a tool `{}` of its own, so this one is served as `{served}`\nhint: choose another name",
            name.tool()
        ));
    }
    anstream::eprintln!("{}", next_steps(&template, &folder, &name));
    if let Some(needs) = needed_feature(arguments.lang) {
        anstream::eprintln!("{needs}");
    }
    Ok(CliExit::Done)
}

/// The name for models: a name that a native tool has gets the module's id in front.
fn served_name(name: &ModuleName) -> String {
    let tool = name.tool();
    if NATIVE_TOOL_NAMES.contains(&tool.as_str()) {
        return format!("{}__{tool}", name.module_id());
    }
    tool
}

/// The feature of the host that such a module needs, if this build lacks it.
fn needed_feature(language: ModuleLanguage) -> Option<String> {
    let (feature, has_it) = match language {
        ModuleLanguage::Python => return None,
        ModuleLanguage::Rust => ("grpc", toolpost_serve::RUNS_GRPC_MODULES),
        ModuleLanguage::Wasm => ("wasm", toolpost_serve::RUNS_COMPONENTS),
    };
    let needs = format!("needs `--features {feature}`, which this `toolpost`");
    Some(match has_it {
        true => format!("{needs} has"),
        false => format!("{needs} lacks"),
    })
}

/// The next commands, in the new folder.
fn next_steps(template: &ModuleTemplate, folder: &Path, name: &ModuleName) -> String {
    let folder = folder.display().to_string();
    let folder = shlex::try_quote(&folder).unwrap_or((&*folder).into());
    let mut steps = vec![
        format!("cd {folder}"),
        format!(
            "# write your tool at the CHANGE marks in {}",
            template.work_file(name)
        ),
    ];
    steps.extend(template.build_steps().iter().map(|&step| step.to_owned()));
    steps.push("toolpost validate .".to_owned());
    steps.push(format!(
        "toolpost call {} text='one two two' --mount-plan plan.yaml --mode bypass",
        served_name(name)
    ));
    format!("next:\n  {}", steps.join("\n  "))
}

fn test_kit(folder: &Path) -> anyhow::Result<CliExit> {
    let path = folder.join(TEST_KIT_NAME);
    environment::write_new_file(&path, TEST_KIT)?;
    say!("created {}", path.display());
    Ok(CliExit::Done)
}

//! `commands`: from entries to valid [`CommandConfig`]s.

mod parameter;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    CommandConfig, CommandEntry, CommandTemplateConfig, LocatedValue,
    error::{ConfigComplaint, ConfigSourceText},
    nearest::nearest,
    snippet::shown,
};

use super::{
    limits::{check_range, size},
    path_complaint,
    sandbox::check_variables,
};

pub(super) fn check(
    commands: &BTreeMap<String, LocatedValue<CommandEntry>>,
    source: ConfigSourceText<'_>,
    complaints: &mut Vec<ConfigComplaint>,
) -> Vec<LocatedValue<CommandConfig>> {
    let mut checked = Vec::with_capacity(commands.len());
    for (name, entry) in commands {
        if !is_name(name) {
            let message = format!("`{}` is not a name for a command", shown(name));
            let hint = "use up to 64 letters, digits and `_`, beginning with a letter".to_owned();
            complaints.push(ConfigComplaint::new(entry.at, message).hint(Some(hint)));
        }
        let command = CommandEntryCheck {
            name: shown(name),
            entry: &entry.value,
            meant: BTreeSet::new(),
            complaints,
        }
        .command(name);
        checked.push(LocatedValue {
            value: CommandConfig {
                place: source.place(entry.at),
                ..command
            },
            at: entry.at,
        });
    }
    checked
}

/// A name for tools and arguments that every model provider accepts.
fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(legal)
}

/// A command during its check.
struct CommandEntryCheck<'a> {
    /// Safe to print.
    name: String,
    entry: &'a CommandEntry,
    /// Misspelled parameters that were reported with a suggestion already, so that they are not reported twice.
    meant: BTreeSet<&'a str>,
    complaints: &'a mut Vec<ConfigComplaint>,
}

impl<'a> CommandEntryCheck<'a> {
    fn command(mut self, name: &str) -> CommandConfig {
        let entry = self.entry;
        self.values();
        let argv = self.argv();
        let stdin = entry
            .stdin
            .as_ref()
            .map(|text| self.template("stdin", text));
        self.unused(argv.iter().chain(&stdin));
        let key = self.key("parameters");
        let parameters = entry
            .parameters
            .iter()
            .map(|(name, entry)| parameter::check(&key, name, entry, self.complaints));
        let codes = entry.success_codes.as_ref().map(|codes| &codes.value);
        CommandConfig {
            name: name.to_owned(),
            description: entry.description.value.trim().to_owned(),
            argv,
            parameters: parameters.collect(),
            stdin,
            working_directory: entry
                .working_directory
                .as_ref()
                .map(|folder| folder.value.clone()),
            profile: entry.profile.map(|profile| profile.value),
            class: entry
                .class
                .map_or(CommandConfig::CLASS, |class| class.value),
            environment: entry
                .environment
                .iter()
                .map(|name| name.value.clone())
                .collect(),
            output: entry.output.map(|output| output.value).unwrap_or_default(),
            success_codes: codes.map_or(CommandConfig::SUCCESS.to_vec(), |codes| {
                codes.iter().map(|code| code.value).collect()
            }),
            max_output: entry.max_output.map(|size| size.value.into()),
            place: String::new(),
        }
    }

    fn key(&self, part: &str) -> String {
        format!("commands.{}.{part}", self.name)
    }

    fn complain(&mut self, at: crate::FilePosition, message: String, hint: Option<String>) {
        self.complaints
            .push(ConfigComplaint::new(at, message).hint(hint));
    }

    /// Checks each value by itself.
    fn values(&mut self) {
        let entry = self.entry;
        if entry.description.value.trim().is_empty() {
            let hint =
                "describe its effect and when to use it; the model chooses tools by this text"
                    .to_owned();
            let message = format!("`{}` is empty", self.key("description"));
            self.complain(entry.description.at, message, Some(hint));
        }
        check_range(
            &self.key("max_output"),
            entry.max_output,
            size(1 << 10)..=size(1 << 30),
            self.complaints,
        );
        check_variables(
            &self.key("environment"),
            &entry.environment,
            self.complaints,
        );
        if let Some(folder) = &entry.working_directory {
            let key = self.key("working_directory");
            self.complaints.extend(path_complaint(&key, folder));
            if folder.value.to_string_lossy().contains('{') {
                let message = format!("`{key}` takes no parameters");
                let hint = "give the path as an argument; a parameter of type `path` stays in the workspace";
                self.complain(folder.at, message, Some(hint.to_owned()));
            }
        }
        if let Some(codes) = &entry.success_codes {
            let key = self.key("success_codes");
            if codes.value.is_empty() {
                self.complain(
                    codes.at,
                    format!("`{key}` is empty, so no run could succeed"),
                    None,
                );
            }
            for code in &codes.value {
                check_range(&key, Some(*code), 0..=255, self.complaints);
            }
        }
    }

    fn argv(&mut self) -> Vec<CommandTemplateConfig> {
        let argv = &self.entry.argv;
        let Some(program) = argv.value.first() else {
            let hint =
                "write the program and its arguments, such as `[wc, -w, \"{path}\"]`".to_owned();
            self.complain(
                argv.at,
                format!("`{}` is empty", self.key("argv")),
                Some(hint),
            );
            return Vec::new();
        };
        let templates: Vec<CommandTemplateConfig> = argv
            .value
            .iter()
            .map(|text| self.template("argv", text))
            .collect();
        let chosen = templates
            .first()
            .is_some_and(|program| program.parameters().next().is_some());
        if chosen {
            let message = format!(
                "`{}` would let the model choose the program",
                shown(&program.value)
            );
            let hint =
                "write the name of the program; parameters belong in its arguments".to_owned();
            self.complain(program.at, message, Some(hint));
        } else if program.value.trim().is_empty() {
            self.complain(
                program.at,
                format!("the program in `{}` is empty", self.key("argv")),
                None,
            );
        } else if !program.value.starts_with('/') && program.value.contains('/') {
            // It would depend on the folder that the program starts in, where agents can write.
            let message = format!(
                "the program `{}` is neither a name nor an absolute path",
                shown(&program.value)
            );
            let hint =
                "write a name that is found in PATH, or a path that begins with `/`".to_owned();
            self.complain(program.at, message, Some(hint));
        }
        templates
    }

    fn template(&mut self, part: &str, text: &LocatedValue<String>) -> CommandTemplateConfig {
        let key = self.key(part);
        if text.value.contains('\0') {
            self.complain(text.at, format!("`{key}` holds a NUL character"), None);
        }
        let template = match template::parse(&text.value) {
            Ok(template) => template,
            Err(error) => {
                let message = format!("`{}` in `{key}`: {error}", shown(&text.value));
                let hint =
                    "a parameter is written `{name}`, and a brace itself `{{` or `}}`".to_owned();
                self.complain(text.at, message, Some(hint));
                return CommandTemplateConfig::default();
            }
        };
        let known: &'a BTreeMap<_, _> = &self.entry.parameters;
        let unknown: BTreeSet<&str> = template
            .parameters()
            .filter(|name| !known.contains_key(*name))
            .collect();
        for name in unknown {
            let message = format!(
                "`{{{}}}` in `{key}` is not a parameter of this command",
                shown(name)
            );
            let near = nearest(name, known.keys().map(String::as_str));
            self.meant.extend(near);
            let hint = near.map_or_else(
                || {
                    format!(
                        "declare `{}` under `parameters`, or write `{{{{` for a brace",
                        shown(name)
                    )
                },
                |near| format!("did you mean `{{{near}}}`?"),
            );
            self.complain(text.at, message, Some(hint));
        }
        template
    }

    /// An unused parameter is a mistake: the model would fill it in without any effect.
    fn unused<'t>(&mut self, templates: impl Iterator<Item = &'t CommandTemplateConfig>) {
        let used: BTreeSet<&str> = templates
            .flat_map(CommandTemplateConfig::parameters)
            .collect();
        for (name, parameter) in &self.entry.parameters {
            if !used.contains(name.as_str()) && !self.meant.contains(name.as_str()) {
                let name = shown(name);
                let message = format!(
                    "the parameter `{name}` of `commands.{}` is never used",
                    self.name
                );
                let hint = format!(
                    "write `{{{name}}}` where it belongs in `argv` or `stdin`, or leave it out"
                );
                self.complain(parameter.at, message, Some(hint));
            }
        }
    }
}

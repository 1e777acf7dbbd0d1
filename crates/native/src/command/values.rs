//! The values of a call: checks them against the declaration and converts them to the texts of the templates.

use std::{collections::BTreeMap, path::PathBuf};

use regex::Regex;
use serde_json::{Number, Value};
use toolpost_model::{InputRefusal, ToolFailure};
use toolpost_processes::{PathError, Workspace, shown};

use super::{
    declaration::{CommandParameter, CommandParameterType},
    error::CommandProblem,
    template::ArgumentTemplate,
};

/// The longest value. The system cannot pass a longer argument to a process.
const VALUE_BYTES: usize = 128 * 1024 - 1;
/// The most bytes of all arguments on Linux.
const ARGV_BYTES: usize = 1 << 20;
/// The largest standard input.
const STDIN_BYTES: usize = 8 << 20;
/// The largest compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// A parameter with its compiled checks.
pub(super) struct ParameterValidator {
    declared: CommandParameter,
    pattern: Option<Regex>,
}

impl ParameterValidator {
    pub(super) fn new(name: &str, declared: CommandParameter) -> Result<Self, CommandProblem> {
        let named = || name.to_owned();
        if !super::template::is_name(name) {
            return Err(CommandProblem::ParameterName { name: named() });
        }
        if declared.required && declared.default.is_some() {
            return Err(CommandProblem::RequiredDefault { name: named() });
        }
        let pattern = match &declared.kind {
            CommandParameterType::Text {
                pattern: Some(pattern),
            } => {
                let whole = regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
                    .size_limit(PATTERN_BYTES)
                    .build();
                Some(whole.map_err(|error| CommandProblem::Pattern {
                    name: named(),
                    source: Box::new(error),
                })?)
            }
            CommandParameterType::Choice(values) if values.is_empty() => {
                return Err(CommandProblem::NoChoices { name: named() });
            }
            CommandParameterType::Text { pattern: None }
            | CommandParameterType::Integer { .. }
            | CommandParameterType::Number { .. }
            | CommandParameterType::Boolean
            | CommandParameterType::Path
            | CommandParameterType::Choice(_) => None,
        };
        let parameter = Self { declared, pattern };
        if let Some(default) = &parameter.declared.default
            && let Err(reason) = parameter.text(default)
        {
            return Err(CommandProblem::Default {
                name: named(),
                reason,
            });
        }
        Ok(parameter)
    }

    pub(super) fn is_path(&self) -> bool {
        matches!(self.declared.kind, CommandParameterType::Path)
    }

    fn is_flag(&self) -> bool {
        matches!(self.declared.kind, CommandParameterType::Boolean)
    }

    /// The text of a value, or the reason for refusing it.
    fn text(&self, value: &Value) -> Result<String, String> {
        let text = match (&self.declared.kind, value) {
            (CommandParameterType::Integer { minimum, maximum }, Value::Number(number))
                if !number.is_f64() =>
            {
                in_bounds(
                    number,
                    minimum.map(Number::from).as_ref(),
                    maximum.map(Number::from).as_ref(),
                )?
            }
            (CommandParameterType::Number { minimum, maximum }, Value::Number(number)) => {
                in_bounds(number, minimum.as_ref(), maximum.as_ref())?
            }
            (CommandParameterType::Boolean, Value::Bool(flag)) => flag.to_string(),
            (CommandParameterType::Choice(values), Value::String(text))
                if !values.contains(text) =>
            {
                return Err(format!(
                    "`{}` is not one of `{}`",
                    shown(text),
                    values.join("`, `")
                ));
            }
            (
                CommandParameterType::Text { .. }
                | CommandParameterType::Path
                | CommandParameterType::Choice(_),
                Value::String(text),
            ) => text.clone(),
            _ => {
                return Err(format!(
                    "`{}` has the wrong type",
                    shown(&value.to_string())
                ));
            }
        };
        if text.contains('\0') {
            return Err("it contains a NUL character, which arguments cannot have".to_owned());
        }
        if text.len() > VALUE_BYTES {
            return Err(format!(
                "it has {} bytes, the limit is {VALUE_BYTES}",
                text.len()
            ));
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(&text) => Err(format!(
                "`{}` does not match the pattern `{}`",
                shown(&text),
                pattern.as_str()
            )),
            Some(_) | None => Ok(text),
        }
    }
}

/// The text of a number within its bounds.
fn in_bounds(
    number: &Number,
    minimum: Option<&Number>,
    maximum: Option<&Number>,
) -> Result<String, String> {
    let beyond = |bound: &Number, is_beyond: fn(f64, f64) -> bool| {
        let both = number.as_f64().zip(bound.as_f64());
        both.is_none_or(|(number, bound)| is_beyond(number, bound))
    };
    if let Some(minimum) = minimum.filter(|bound| beyond(bound, |number, bound| number < bound)) {
        return Err(format!("`{number}` is less than {minimum}"));
    }
    if let Some(maximum) = maximum.filter(|bound| beyond(bound, |number, bound| number > bound)) {
        return Err(format!("`{number}` is more than {maximum}"));
    }
    Ok(number.to_string())
}

/// The values of one call, by parameter. A flag that is not set, or a parameter that is not given, has none.
pub(super) struct ParameterValues<'p> {
    parameters: &'p BTreeMap<String, ParameterValidator>,
    texts: BTreeMap<&'p str, String>,
}

impl<'p> ParameterValues<'p> {
    /// Reads the values of a call. No I/O.
    pub(super) fn read(
        parameters: &'p BTreeMap<String, ParameterValidator>,
        given: &Value,
    ) -> Result<Self, InputRefusal> {
        let mut texts = BTreeMap::new();
        for (name, parameter) in parameters {
            let value = given
                .get(name)
                .filter(|value| !value.is_null())
                .or(parameter.declared.default.as_ref());
            match value {
                Some(value) => {
                    let text = parameter
                        .text(value)
                        .map_err(|reason| InputRefusal::invalid(format!("/{name}"), reason))?;
                    texts.insert(name.as_str(), text);
                }
                None if parameter.declared.required => {
                    return Err(InputRefusal::invalid(format!("/{name}"), "it is missing"));
                }
                None if parameter.is_flag() => {
                    texts.insert(name.as_str(), false.to_string());
                }
                None => {}
            }
        }
        Ok(Self { parameters, texts })
    }

    /// The paths among the values, with their parameters.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&'p str, &str)> {
        let is_path = |name: &str| {
            self.parameters
                .get(name)
                .is_some_and(ParameterValidator::is_path)
        };
        self.texts
            .iter()
            .filter(move |(name, _)| is_path(name))
            .map(|(name, text)| (*name, text.as_str()))
    }

    /// Refuses paths that lexically leave the roots.
    pub(super) fn check_paths(&self, workspace: &Workspace) -> Result<(), InputRefusal> {
        for (name, given) in self.paths() {
            workspace.request(given).map_err(|refusal| InputRefusal {
                class: refusal.class(),
                at: format!("/{name}"),
                message: refusal.to_string(),
            })?;
        }
        Ok(())
    }

    /// Replaces paths by their real paths.
    pub(super) fn locate(&mut self, workspace: &Workspace) -> Result<(), ToolFailure> {
        let located: Vec<(&str, PathBuf)> = self
            .paths()
            .map(|(name, given)| {
                let requested = workspace.request(given).map_err(PathError::from)?;
                Ok((
                    name,
                    workspace
                        .path()
                        .join(workspace.locate(&requested)?.whole_path()),
                ))
            })
            .collect::<Result<_, PathError>>()
            .map_err(PathError::into_failure)?;
        for (name, path) in located {
            let text = path.into_os_string().into_string().map_err(|path| {
                let shown = shown(&path.to_string_lossy());
                ToolFailure::invalid(format!("the path `{shown}` of `{name}` is not valid UTF-8"))
            })?;
            self.texts.insert(name, text);
        }
        Ok(())
    }

    /// Refuses values that make the command too large for a process. The sizes are computed before any template is
    /// filled, because a template can use a parameter many times.
    pub(super) fn check_sizes(
        &self,
        argv: &[ArgumentTemplate],
        stdin: Option<&ArgumentTemplate>,
    ) -> Result<(), InputRefusal> {
        let size = |template: &ArgumentTemplate| {
            template.size(|name| self.texts.get(name).map(String::as_str))
        };
        let sizes = || argv.iter().filter_map(size);
        let all = sizes().fold(0, usize::saturating_add);
        let (bytes, limit, part) = match (
            sizes().max().unwrap_or(0),
            stdin.and_then(size).unwrap_or(0),
        ) {
            (longest, _) if longest > VALUE_BYTES => (longest, VALUE_BYTES, "an argument"),
            (_, stdin) if stdin > STDIN_BYTES => (stdin, STDIN_BYTES, "the standard input"),
            _ if all > ARGV_BYTES => (all, ARGV_BYTES, "the arguments"),
            _ => return Ok(()),
        };
        Err(InputRefusal::invalid(
            "",
            format!("{part} of the command would have {bytes} bytes, the limit is {limit}"),
        ))
    }

    /// Refuses values that a program could take for an option: a value with a leading `-` at the beginning of an
    /// argument, unless the declaration allows it or an argument `--` came before.
    pub(super) fn check_dashes(&self, argv: &[ArgumentTemplate]) -> Result<(), InputRefusal> {
        let options_end = argv
            .iter()
            .position(|template| template.fixed() == Some("--"));
        for template in &argv[..options_end.unwrap_or(argv.len())] {
            let Some(name) = template.leads_with() else {
                continue;
            };
            let free = self.parameters.get(name).is_none_or(|parameter| {
                // Paths are passed as absolute paths.
                parameter.declared.allow_dash || parameter.is_path()
            });
            // The whole argument is checked: after an empty first value, the next one comes first.
            let filled = self.fill_one(template).unwrap_or_default();
            let leads = self.texts.get(name).is_some_and(|text| !text.is_empty());
            if filled.starts_with('-') && !(free && leads) {
                let message = "it begins with `-`, so the program could read it as an option";
                return Err(InputRefusal::invalid(format!("/{name}"), message));
            }
        }
        Ok(())
    }

    /// The arguments of the process.
    pub(super) fn fill(&self, argv: &[ArgumentTemplate]) -> Vec<String> {
        let wanted = |template: &&ArgumentTemplate| {
            template
                .condition
                .as_deref()
                .is_none_or(|name| self.holds(name))
        };
        argv.iter()
            .filter(wanted)
            .filter_map(|template| self.fill_one(template))
            .collect()
    }

    /// One filled template.
    pub(super) fn fill_one(&self, template: &ArgumentTemplate) -> Option<String> {
        template.fill(|name| self.texts.get(name).map(String::as_str))
    }

    fn holds(&self, name: &str) -> bool {
        let is_flag = self
            .parameters
            .get(name)
            .is_some_and(ParameterValidator::is_flag);
        self.texts
            .get(name)
            .is_some_and(|text| !is_flag || text == "true")
    }
}

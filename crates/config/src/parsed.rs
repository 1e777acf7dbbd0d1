//! A file that was parsed and checked, with its text.

use std::fmt;

use toolpost_model::Rule;

use crate::{
    ConfigError, ConfigErrors, ConfigFile,
    check::{self, CheckedValues},
    error::{ConfigComplaint, ConfigSourceText},
    yaml::{self, PartialConfigFile},
};

/// A valid configuration file. Its text is kept, since trust is given to exactly these bytes.
#[derive(Clone)]
pub struct ParsedConfig {
    file: ConfigFile,
    name: String,
    text: String,
    checked: CheckedValues,
}

impl ConfigFile {
    /// Parses and checks the text of a file. `name` is the file's name in messages and records.
    pub fn parse(text: &str, name: &str) -> Result<ParsedConfig, ConfigErrors> {
        let source = ConfigSourceText { name, text };
        let PartialConfigFile { file, errors } = yaml::read(source)?;
        ParsedConfig::new(file, source, errors)
    }

    /// Checks settings that were made in code, for example from flags, for use as a layer of their own.
    pub fn check(self, name: &str) -> Result<ParsedConfig, ConfigErrors> {
        ParsedConfig::new(self, ConfigSourceText { name, text: "" }, Vec::new())
    }
}

impl ParsedConfig {
    /// Checks the parsed part of a file, and reports its errors together with those of the parser.
    pub(crate) fn new(
        file: ConfigFile,
        source: ConfigSourceText<'_>,
        errors: Vec<ConfigError>,
    ) -> Result<Self, ConfigErrors> {
        let (checked, complaints) = check::check(&file, source);
        if !errors.is_empty() || !complaints.is_empty() {
            return Err(ConfigErrors::of_source(errors, complaints, source));
        }
        Ok(Self {
            file,
            name: source.name.to_owned(),
            text: source.text.to_owned(),
            checked,
        })
    }

    /// The file as written.
    pub fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// The name that the caller gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The original text; empty for settings made in code.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Errors that the policy found in the rules, as errors of this file. Each has the rule's place, as in the rule
    /// itself, and a message.
    pub fn rule_errors<'a>(
        &self,
        problems: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Option<ConfigErrors> {
        let rules = &self.checked.rules;
        let position = |place: &str| {
            rules
                .iter()
                .find(|rule| rule.value.place == place)
                .map(|rule| rule.at)
        };
        let complaint =
            |(place, message)| ConfigComplaint::new(position(place).unwrap_or_default(), message);
        let complaints: Vec<ConfigComplaint> = problems.into_iter().map(complaint).collect();
        (!complaints.is_empty())
            .then(|| ConfigErrors::of_source(Vec::new(), complaints, self.source()))
    }

    /// The rules of the file. Their origin is provisional: the layer sets it.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.checked.rules.iter().map(|rule| &rule.value)
    }

    pub(crate) fn checked(&self) -> &CheckedValues {
        &self.checked
    }

    pub(crate) fn source(&self) -> ConfigSourceText<'_> {
        ConfigSourceText {
            name: &self.name,
            text: &self.text,
        }
    }
}

/// Without the text, which is long.
impl fmt::Debug for ParsedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parsed")
            .field("name", &self.name)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

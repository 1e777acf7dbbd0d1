//! A file that has been read and checked, with its text.

use std::fmt;

use toolpost_model::Rule;

use crate::{
    ConfigError, ConfigErrors, ConfigFile,
    check::{self, CheckedValues},
    error::{ConfigComplaint, ConfigSourceText},
    yaml::{self, PartialConfigFile},
};

/// A configuration file that is sound by itself. Its text is kept: trust is given to exactly these bytes.
#[derive(Clone)]
pub struct ParsedConfig {
    file: ConfigFile,
    name: String,
    text: String,
    checked: CheckedValues,
}

impl ConfigFile {
    /// Reads and checks a file's text. `name` is what places in messages and records begin with.
    pub fn parse(text: &str, name: &str) -> Result<ParsedConfig, ConfigErrors> {
        let source = ConfigSourceText { name, text };
        let PartialConfigFile { file, errors } = yaml::read(source)?;
        ParsedConfig::new(file, source, errors)
    }

    /// Checks settings that were put together in code, such as from flags, for use as a layer of their own.
    pub fn check(self, name: &str) -> Result<ParsedConfig, ConfigErrors> {
        ParsedConfig::new(self, ConfigSourceText { name, text: "" }, Vec::new())
    }
}

impl ParsedConfig {
    /// Checks what was read and reports it together with what could not be read.
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

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text it was read from; empty where it was put together in code.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What somebody who knows the meaning of rules found wrong with them, as errors of this file. Each is a rule's
    /// place, as the rule itself has it, and what is wrong.
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

    /// The rules it holds, as far as one file can tell: their origin is for a layer to say.
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

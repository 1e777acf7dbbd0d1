//! A file that has been read and checked, with its text.

use std::fmt;

use crate::{
    ConfigError, ConfigErrors, ConfigFile,
    check::{self, Checked},
    error::Source,
    yaml::{self, Reading},
};

/// A configuration file that is sound by itself. Its text is kept: trust is given to exactly these bytes.
#[derive(Clone)]
pub struct Parsed {
    file: ConfigFile,
    name: String,
    text: String,
    checked: Checked,
}

impl ConfigFile {
    /// Reads and checks a file's text. `name` is what places in messages and records begin with.
    pub fn parse(text: &str, name: &str) -> Result<Parsed, ConfigErrors> {
        let source = Source { name, text };
        let Reading { file, errors } = yaml::read(source)?;
        Parsed::new(file, source, errors)
    }

    /// Checks settings that were put together in code, such as from flags, for use as a layer of their own.
    pub fn check(self, name: &str) -> Result<Parsed, ConfigErrors> {
        Parsed::new(self, Source { name, text: "" }, Vec::new())
    }
}

impl Parsed {
    /// Checks what was read and reports it together with what could not be read.
    pub(crate) fn new(
        file: ConfigFile,
        source: Source<'_>,
        errors: Vec<ConfigError>,
    ) -> Result<Self, ConfigErrors> {
        let (checked, complaints) = check::check(&file, source);
        if !errors.is_empty() || !complaints.is_empty() {
            return Err(ConfigErrors::of_source(errors, complaints, source));
        }
        Ok(Self { file, name: source.name.to_owned(), text: source.text.to_owned(), checked })
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

    pub(crate) fn checked(&self) -> &Checked {
        &self.checked
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }
}

/// Without the text, which is long.
impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parsed").field("name", &self.name).field("file", &self.file).finish_non_exhaustive()
    }
}

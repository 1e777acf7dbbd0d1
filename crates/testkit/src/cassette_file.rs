//! Cassette files, for tests that replay one.
#![expect(clippy::disallowed_methods, reason = "the one module that reads files")]

use std::{error::Error, path::Path};

use toolpost_core::Cassette;

pub(crate) fn read(path: &Path) -> Result<Cassette, Box<dyn Error>> {
    Ok(Cassette::read(&std::fs::read_to_string(path)?)?)
}

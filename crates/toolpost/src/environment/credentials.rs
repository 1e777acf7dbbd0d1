//! The values of credentials, from the files and variables in the configuration.
//!
//! No message here quotes a value. The name under `env` is not quoted either: an operator may have put the value there
//! by mistake.

use std::{
    fs::OpenOptions,
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use anyhow::Context;
use rustix::fs::OFlags;
use toolpost_config::{CredentialConfig, CredentialSource};
use toolpost_model::Secret;

use crate::exit::UsageError;

/// The longest credential, which is more than HTTP headers carry.
const LONGEST: usize = 8 << 10;
/// Shorter values are not redacted in records and answers, because ordinary words would match them.
const SHORTEST: usize = 8;
/// The permission bits of other users.
const OTHERS: u32 = 0o077;

/// Looks up every credential.
pub(crate) fn credentials(known: &[CredentialConfig]) -> anyhow::Result<Vec<(String, Secret)>> {
    let value = |credential: &CredentialConfig| Ok((credential.name.clone(), read(credential)?));
    known.iter().map(value).collect()
}

fn read(credential: &CredentialConfig) -> anyhow::Result<Secret> {
    let called = format!(
        "the credential `{}` ({})",
        credential.name, credential.place
    );
    let refused = |why: String| UsageError(format!("{called} {why}"));
    let bytes = match &credential.source {
        CredentialSource::Variable(name) => {
            let why = "has no value, because its environment variable is not set\nhint: set the variable named under `env` for the host, or keep the value in a file";
            std::env::var_os(name)
                .ok_or_else(|| refused(why.to_owned()))?
                .into_encoded_bytes()
        }
        CredentialSource::File(path) => read_file(path, &called)?,
    };
    let text = bytes.trim_ascii();
    if text.len() < SHORTEST {
        let why =
            format!("is shorter than {SHORTEST} characters, too short to be redacted in records");
        return Err(refused(why).into());
    }
    if text.len() > LONGEST {
        return Err(refused(format!("is longer than {LONGEST} characters")).into());
    }
    let legal = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    match str::from_utf8(text) {
        Ok(value) if text.iter().all(legal) => Ok(Secret::new(value.to_owned())),
        _ => Err(refused(
            "is not one line of ASCII characters, so it cannot be sent in a header".to_owned(),
        )
        .into()),
    }
}

/// The value in a file that only its owner can read.
pub(super) fn secret_file(path: &Path) -> anyhow::Result<Secret> {
    let bytes = read_file(path, "the value")?;
    if bytes.len() > LONGEST + 2 {
        return Err(UsageError(format!("it is longer than {LONGEST} characters")).into());
    }
    let text = str::from_utf8(bytes.trim_ascii()).context("it is not text")?;
    Ok(Secret::new(text))
}

/// The checks apply to the opened file, so that it cannot be swapped in between. Opening does not block, as it
/// otherwise would for a pipe without a writer.
fn read_file(path: &Path, called: &str) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let unreadable = || format!("{called} is in `{shown}`, which cannot be read");
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .with_context(unreadable)?;
    let about = file.metadata().with_context(unreadable)?;
    if !about.is_file() {
        return Err(UsageError(format!(
            "{called} is in `{shown}`, which is not a regular file"
        ))
        .into());
    }
    if about.mode() & OTHERS != 0 {
        let why =
            format!("which other users can access\nhint: restrict access with `chmod 600 {shown}`");
        return Err(UsageError(format!("{called} is in `{shown}`, {why}")).into());
    }
    let mut bytes = Vec::new();
    // Room for a line end, and for one more byte to detect a longer file.
    file.take(LONGEST as u64 + 3)
        .read_to_end(&mut bytes)
        .with_context(unreadable)?;
    Ok(bytes)
}

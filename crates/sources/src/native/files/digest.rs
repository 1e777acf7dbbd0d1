//! SHA-256 of files, as lower-case hexadecimal text.

use std::{
    fmt::Write as _,
    io::{self, Read},
};

use sha2::{Digest, Sha256};

use super::worker::{StopSign, Stopped};

/// How much is read and hashed between two looks at the stop sign.
const CHUNK_BYTES: usize = 128 * 1024;

/// A digest as text.
pub(crate) fn hex(hasher: Sha256) -> String {
    hasher
        .finalize()
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The digest of bytes in memory.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// Why a file was not hashed to its end.
#[derive(Debug)]
pub(crate) enum HashError {
    /// The call was told to stop.
    Stopped,
    /// It is longer than `limit`: it grows, or its size was not known.
    LongerThanLimit,
    /// The system said no.
    Io(io::Error),
}

impl From<Stopped> for HashError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// The digest of what `file` still holds, at most `limit` bytes. `done` is told how many bytes are through.
pub(crate) fn of_file(
    file: &mut impl Read,
    limit: u64,
    stop: &StopSign,
    mut done: impl FnMut(u64),
) -> Result<String, HashError> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut through = 0_u64;
    loop {
        stop.check()?;
        let count = read_some(file, &mut chunk).map_err(HashError::Io)?;
        if count == 0 {
            return Ok(hex(hasher));
        }
        through += count as u64;
        if through > limit {
            return Err(HashError::LongerThanLimit);
        }
        hasher.update(&chunk[..count]);
        done(through);
    }
}

/// `read`, begun again where a signal came in between.
pub(crate) fn read_some(file: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

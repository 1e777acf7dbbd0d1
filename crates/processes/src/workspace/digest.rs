//! SHA-256 of files, as lower-case hexadecimal text.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::worker::{FileWorkInterruption, StopSign};

/// How much is hashed between two checks of the stop sign.
const CHUNK_BYTES: usize = 128 * 1024;

/// A digest as text.
pub fn hex(hasher: Sha256) -> String {
    const_hex::encode(hasher.finalize())
}

/// The digest of bytes in memory.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// The digest of the rest of `file`; `None` if that is more than `limit` bytes. `done` gets the number of bytes read.
pub fn of_file(
    file: &mut impl Read,
    limit: u64,
    stop: &StopSign,
    mut done: impl FnMut(u64),
) -> Result<Option<String>, FileWorkInterruption> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut through = 0_u64;
    loop {
        stop.check()?;
        let count = read_some(file, &mut chunk)?;
        if count == 0 {
            return Ok(Some(hex(hasher)));
        }
        through += count as u64;
        if through > limit {
            return Ok(None);
        }
        hasher.update(&chunk[..count]);
        done(through);
    }
}

/// `read`, repeated after an interruption by a signal.
pub fn read_some(file: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

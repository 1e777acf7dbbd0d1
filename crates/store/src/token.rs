//! The token of the network faces. `serve` makes one on its first start; the CLI finds it in the data directory, so the
//! user need not copy it.

use std::{io, path::PathBuf};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    data_dir::DataDir,
    disk::{self, FilePrivacy},
};

/// Makes the token recognisable for people and for scanners of leaked secrets.
const PREFIX: &str = "tp_";
const SECRET_BYTES: usize = 32;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Other users may have read it.
    #[error(
        "token file `{path}` is open to other users (mode {mode:03o})\nhint: delete it; the next start makes a new one"
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user wrote it.
    #[error(
        "token file `{path}` belongs to user {owner}\nhint: delete it; the next start makes a new one"
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// The file holds something else.
    #[error(
        "token file `{path}` does not hold a token\nhint: delete it; the next start makes a new one"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// Only the host may make a token: two processes that both made one would each use their own.
    #[error(
        "there is no token yet in `{path}`, and only the host that uses its directory can create one"
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The system provides no randomness.
    #[error("cannot make a token")]
    Random(#[source] getrandom::Error),
    /// The system refused an operation.
    #[error("cannot {doing} token file `{path}`")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The token of this data directory, made on the first call. Making one requires the directory's lock.
pub fn load_or_create_token(data_dir: &DataDir) -> Result<String, TokenError> {
    if let Some(token) = load_token(data_dir)? {
        return Ok(token);
    }
    let path = data_dir.token_path();
    if !data_dir.is_locked() {
        return Err(TokenError::NotOurs { path });
    }
    let token = new_token()?;
    disk::replace(&path, token.as_bytes()).map_err(|source| TokenError::Io {
        doing: "write",
        path,
        source,
    })?;
    Ok(token)
}

/// A random token that is not stored.
pub fn new_token() -> Result<String, TokenError> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(TokenError::Random)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret)))
}

/// The token of this data directory, if a host has made one.
pub fn load_token(data_dir: &DataDir) -> Result<Option<String>, TokenError> {
    let path = data_dir.token_path();
    let (bytes, privacy) = match disk::read_small(&path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(source) => {
            return Err(TokenError::Io {
                doing: "read",
                path,
                source,
            });
        }
    };
    match privacy {
        FilePrivacy::Private => {}
        FilePrivacy::OwnedBy(owner) => return Err(TokenError::OtherOwner { path, owner }),
        FilePrivacy::OpenToOthers(mode) => return Err(TokenError::OpenToOthers { path, mode }),
    }
    match std::str::from_utf8(&bytes).map(str::trim) {
        Ok(token) if is_token(token) => Ok(Some(token.to_owned())),
        Ok(_) | Err(_) => Err(TokenError::Malformed { path }),
    }
}

fn is_token(text: &str) -> bool {
    let secret = text
        .strip_prefix(PREFIX)
        .and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    secret.is_some_and(|secret| secret.len() == SECRET_BYTES)
}

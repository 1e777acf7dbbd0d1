//! The messages between host and launcher over the launcher's standard input, a socket pair: first the order, then the
//! report and the exit. A message is its length in four bytes and JSON.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolpost_model::{AppliedSandbox, SandboxProfile, SandboxTier};

use crate::error::LauncherFailure;
use crate::job::ProcessLimits;
use crate::probe::ProbePlan;

/// The host's request to terminate the command. The end of the stream means that everything is to be killed.
pub(crate) const TERMINATE: u8 = b'T';

/// No valid order is this large; a greater length does not come from a host of this version.
const LARGEST: usize = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    pub(crate) tier: SandboxTier,
    pub(crate) profile: SandboxProfile,
    pub(crate) argv: Vec<UnixBytes>,
    pub(crate) environment: Vec<(UnixBytes, UnixBytes)>,
    pub(crate) directory: UnixBytes,
    pub(crate) roots: Vec<OrderedRoot>,
    pub(crate) readable: Vec<UnixBytes>,
    pub(crate) listable: Vec<UnixBytes>,
    pub(crate) protected: Vec<UnixBytes>,
    pub(crate) masked: Vec<UnixBytes>,
    /// Secrets of the system, in addition to the job's masked paths.
    pub(crate) system_secrets: Vec<UnixBytes>,
    pub(crate) limits: ProcessLimits,
    pub(crate) required: bool,
    pub(crate) guards_required: bool,
    pub(crate) shared: Vec<UnixBytes>,
    /// Whether a descriptor for standard input comes with the order.
    pub(crate) stdin_comes: bool,
    pub(crate) counting: CountingGroups,
    /// The host's directory for temporary files, for a job without a private `/tmp`.
    pub(crate) scratch: Option<UnixBytes>,
    /// Run the probe instead of a command.
    pub(crate) probe: Option<ProbePlan>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OrderedRoot {
    pub(crate) path: UnixBytes,
    pub(crate) writable: bool,
}

/// The control groups of this job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CountingGroups {
    /// The files to which a process writes its id to join.
    pub(crate) join: Vec<UnixBytes>,
    /// The group that limits the processes, such as `cgroup1`.
    pub(crate) processes: Option<String>,
    /// The group that limits the memory.
    pub(crate) memory: Option<String>,
}

/// A message of the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LauncherMessage {
    /// The command runs in these confines.
    Running(Box<AppliedSandbox>),
    /// The command does not run, and no part of it ran.
    Failed(LauncherFailure),
    /// The command has ended, and its remaining processes are being killed.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
    },
}

/// Bytes that are nearly always text: paths and arguments of a Unix system. In JSON they are text, or a list of numbers
/// if they are not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum UnixBytes {
    Text(String),
    Raw(Vec<u8>),
}

impl UnixBytes {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(bytes) => bytes,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.bytes()))
    }
}

impl From<OsString> for UnixBytes {
    fn from(value: OsString) -> Self {
        match String::from_utf8(value.into_vec()) {
            Ok(text) => Self::Text(text),
            Err(raw) => Self::Raw(raw.into_bytes()),
        }
    }
}

impl From<PathBuf> for UnixBytes {
    fn from(value: PathBuf) -> Self {
        value.into_os_string().into()
    }
}

/// Encodes a message with its length.
pub(crate) fn frame<T: Serialize>(message: &T) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(std::io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Removes the first whole message from the received bytes.
pub(crate) fn take_frame<T: DeserializeOwned>(inbox: &mut Vec<u8>) -> std::io::Result<Option<T>> {
    let Some(head) = inbox.first_chunk::<4>() else {
        return Ok(None);
    };
    let end = 4 + frame_length(*head)?;
    if inbox.len() < end {
        return Ok(None);
    }
    let message = serde_json::from_slice(&inbox[4..end])?;
    inbox.drain(..end);
    Ok(Some(message))
}

pub(crate) fn frame_length(head: [u8; 4]) -> std::io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length > LARGEST {
        return Err(std::io::Error::other(format!(
            "a message of {length} bytes is too long"
        )));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_survive_whatever_they_are() {
        for bytes in [b"/plain".to_vec(), vec![b'/', 0xff, 0xfe], Vec::new()] {
            let octets = UnixBytes::from(OsString::from_vec(bytes.clone()));
            let text = serde_json::to_string(&octets).unwrap();
            let back: UnixBytes = serde_json::from_str(&text).unwrap();
            assert_eq!(back.bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        let whole = frame(&"hello").unwrap();
        let mut inbox = whole[..6].to_vec();
        assert_eq!(take_frame::<String>(&mut inbox).unwrap(), None);
        inbox.extend_from_slice(&whole[6..]);
        inbox.push(9);
        assert_eq!(
            take_frame::<String>(&mut inbox).unwrap().as_deref(),
            Some("hello")
        );
        assert_eq!(inbox, [9]);
        let mut absurd = vec![0xff; 8];
        assert!(take_frame::<String>(&mut absurd).is_err());
    }
}

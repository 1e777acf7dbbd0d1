//! The frames between the host and a process that runs code: a length of four bytes, then JSON.
//!
//! The process may have run hostile code, so the host bounds every frame before it reads the content. The frames are
//! JSON and not a denser form, because the values are JSON on both sides anyway, and the prelude of `python3` uses the
//! same frames.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The largest frame of a process: arguments of a call, or a final value.
pub(super) const REPORT_BYTES: usize = 5 << 20;
/// The largest frame of the host: code with its inputs, or the result of a call.
pub(super) const ORDER_BYTES: usize = 10 << 20;
/// The bytes of the length.
const HEADER: usize = 4;

/// A frame of the host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeHostFrame {
    /// Run this code from a clean start.
    Run(Box<RunOrder>),
    /// The answer to a request of the running code.
    Answer {
        /// The request's id.
        id: u32,
        /// The answer.
        answer: CodeRequestAnswer,
    },
}

/// A piece of code to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunOrder {
    pub(super) code: String,
    /// Variables that are bound before the code begins.
    pub(super) inputs: Map<String, Value>,
    /// The names of the functions. Only `python3` gets them in advance; the interpreter looks each up when it is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) functions: Vec<String>,
    pub(super) limits: RunLimits,
}

/// The limits that the process enforces itself. The host enforces time and memory a second time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RunLimits {
    pub(super) time_ms: u64,
    pub(super) memory_bytes: u64,
    pub(super) printed_bytes: usize,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeRequestAnswer {
    /// The call's result.
    Value(Value),
    /// The call failed; the code may catch it.
    Raise {
        /// The exception's Python name.
        kind: PythonException,
        message: String,
    },
    /// The call goes on while the code runs; its result comes later under the same id.
    Pending,
    /// A function of that name exists.
    Known,
    /// No function of that name exists.
    Unknown,
    /// The run ends here; the code cannot catch this.
    Abort { message: String },
}

/// The exceptions of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PythonException {
    #[serde(rename = "PermissionError")]
    Permission,
    #[serde(rename = "FileNotFoundError")]
    FileNotFound,
    #[serde(rename = "TimeoutError")]
    Timeout,
    #[serde(rename = "TypeError")]
    Type,
    #[serde(rename = "ValueError")]
    Value,
    #[serde(rename = "RuntimeError")]
    Runtime,
}

/// A frame of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeWorkerFrame {
    /// It is locked down and waits for code. The first frame of every process, sent once.
    Ready,
    /// It cannot be locked down.
    Unfit { reason: String },
    /// Output of the code.
    Printed { text: String },
    /// The code uses a name that it does not define.
    Lookup { id: u32, name: String },
    /// The code calls a function that it does not define.
    Call {
        id: u32,
        function: CodeFunction,
        positional: Vec<Value>,
        keywords: Map<String, Value>,
    },
    /// The code ended, well or not. No frame follows until the next run.
    Ended {
        ending: CodeRunEnd,
        /// Printed bytes beyond the limit, which were not sent.
        unprinted: u64,
        /// The process has grown so much that the next run should use another one.
        worn: bool,
    },
}

/// The function that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeFunction {
    /// A function by its name in the code.
    Named(String),
    /// A file tool, for `open` and `pathlib`.
    File(FileTool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileTool {
    Read,
    Write,
    List,
    Info,
}

impl FileTool {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Read => "files.read_file",
            Self::Write => "files.write_file",
            Self::List => "files.list_directory",
            Self::Info => "files.file_info",
        }
    }
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeRunEnd {
    /// The value of its last expression.
    Value {
        /// As JSON, if it has a JSON form and is not too large.
        json: Option<Value>,
        /// As Python prints it, cut to a size.
        repr: String,
        /// Why it has no JSON form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_json: Option<String>,
    },
    /// An exception that the code did not catch.
    Raised(UncaughtException),
}

/// An exception that the code did not catch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UncaughtException {
    /// The exception's Python name.
    pub(super) kind: String,
    pub(super) message: String,
    /// The traceback in Python's format, cut to a size.
    pub(super) traceback: String,
    /// The line of the code where it was raised.
    pub(super) line: Option<u32>,
}

/// Why bytes are not a frame.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of {size} bytes, the limit is {limit}")]
    TooLong { size: usize, limit: usize },
    #[error("an invalid frame")]
    Unreadable(#[source] serde_json::Error),
}

pub(super) fn encode(frame: &impl Serialize, limit: usize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; HEADER];
    serde_json::to_writer(&mut bytes, frame).map_err(FrameError::Unreadable)?;
    let size = bytes.len() - HEADER;
    match u32::try_from(size) {
        Ok(length) if size <= limit => {
            bytes[..HEADER].copy_from_slice(&length.to_be_bytes());
            Ok(bytes)
        }
        Ok(_) | Err(_) => Err(FrameError::TooLong { size, limit }),
    }
}

/// Decodes the first frame of `bytes` and returns its length. `None` if it is not complete yet.
pub(super) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    limit: usize,
) -> Result<Option<(T, usize)>, FrameError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let size = u32::from_be_bytes(*header) as usize;
    if size > limit {
        return Err(FrameError::TooLong { size, limit });
    }
    let Some(body) = bytes.get(HEADER..HEADER + size) else {
        return Ok(None);
    };
    let frame = serde_json::from_slice(body).map_err(FrameError::Unreadable)?;
    Ok(Some((frame, HEADER + size)))
}

#[cfg(test)]
mod tests {
    use super::{CodeHostFrame, CodeRequestAnswer, FrameError, decode, encode};

    #[test]
    fn a_frame_is_read_when_it_is_whole_and_refused_before_it_is_when_it_is_too_long() {
        let order = CodeHostFrame::Answer {
            id: 7,
            answer: CodeRequestAnswer::Value("x".into()),
        };
        let mut bytes = encode(&order, 1024).unwrap();
        let whole = bytes.len();
        bytes.extend_from_slice(b"\0\0");
        for end in 0..whole {
            assert!(
                decode::<CodeHostFrame>(&bytes[..end], 1024)
                    .unwrap()
                    .is_none()
            );
        }
        let (read, taken) = decode::<CodeHostFrame>(&bytes, 1024).unwrap().unwrap();
        assert!(matches!(
            read,
            CodeHostFrame::Answer {
                id: 7,
                answer: CodeRequestAnswer::Value(_)
            }
        ));
        assert_eq!(taken, whole);
        assert!(matches!(
            decode::<CodeHostFrame>(&bytes[..4], 8),
            Err(FrameError::TooLong { limit: 8, .. })
        ));
        assert!(matches!(
            encode(&order, 8),
            Err(FrameError::TooLong { limit: 8, .. })
        ));
        assert!(matches!(
            decode::<CodeHostFrame>(b"\0\0\0\x01x", 8),
            Err(FrameError::Unreadable(_))
        ));
    }
}

//! `open`, `pathlib` and `os` on top of the file tools, so that code without a tool cannot read files either.
//!
//! A file that is written piece by piece is buffered here and written with one call: before any other request to the
//! host, and at the end of the run. A call per `write` would record and decide thousands of calls for a loop that
//! writes lines.

use monty_types::{
    ExcType, FileMode, MontyException, MontyFileHandle, MontyObject, OsFunctionCall, dir_stat,
    file_stat,
};
use serde_json::{Map, Value, json};

use super::{
    clock,
    run::{InterpreterRun, abort, exception},
};
use crate::code::frame::{
    CodeFunction, CodeRequestAnswer, CodeWorkerFrame, FileTool, PythonException,
};

/// The most bytes of a file that is buffered or read whole.
const FILE_BYTES: usize = 8 << 20;
/// The most entries of a directory.
const ENTRIES: u64 = 5000;

/// The files that the code has open.
#[derive(Default)]
pub(super) struct CodeRunFiles {
    /// The content that `open` read, for the `read` that follows.
    opened: Option<(String, String)>,
    /// The file written last, with its present content.
    written: Option<BufferedFileWrite>,
}

struct BufferedFileWrite {
    path: String,
    content: String,
    /// Whether some content was not sent to the host yet.
    dirty: bool,
    /// Opened for writing, and not written yet.
    fresh: bool,
}

/// Why a system call of the code fails.
pub(super) enum OsCallRefusal {
    /// The code can catch this.
    Raise(MontyException),
    /// The code cannot catch this.
    Abort(MontyException),
}

type OsCallResult<T> = Result<T, OsCallRefusal>;

impl InterpreterRun<'_> {
    pub(super) fn os_call(&mut self, call: &OsFunctionCall) -> OsCallResult<MontyObject> {
        match call {
            OsFunctionCall::DateToday => Ok(clock::today()),
            OsFunctionCall::DateTimeNow(zone) => Ok(clock::now(zone.as_ref())),
            OsFunctionCall::GetEnviron => Ok(MontyObject::dict(Vec::new())),
            OsFunctionCall::Getenv(asked) => Ok(asked.default.clone()),
            OsFunctionCall::Exists(path) => Ok(MontyObject::Bool(self.kind_of(path)?.is_some())),
            OsFunctionCall::IsFile(path) => Ok(MontyObject::Bool(
                self.kind_of(path)?.as_deref() == Some("file"),
            )),
            OsFunctionCall::IsDir(path) => Ok(MontyObject::Bool(
                self.kind_of(path)?.as_deref() == Some("directory"),
            )),
            OsFunctionCall::Stat(path) => self.stat(path),
            OsFunctionCall::Iterdir(path) => self.list(path),
            OsFunctionCall::ReadText(path) => self.read(path).map(MontyObject::String),
            OsFunctionCall::ReadBytes(path) => self
                .read(path)
                .map(|text| MontyObject::Bytes(text.into_bytes())),
            OsFunctionCall::WriteText(asked) => self
                .write(&asked.path, &asked.data)
                .map(|()| characters(&asked.data)),
            OsFunctionCall::AppendText(asked) => self
                .append(&asked.path, &asked.data)
                .map(|()| characters(&asked.data)),
            OsFunctionCall::WriteBytes(asked) => {
                let text = utf8(&asked.path, &asked.data)?;
                self.write(&asked.path, text).map(|()| length(text.len()))
            }
            OsFunctionCall::AppendBytes(asked) => {
                let text = utf8(&asked.path, &asked.data)?;
                self.append(&asked.path, text).map(|()| length(text.len()))
            }
            OsFunctionCall::Open(asked) => self.open(&asked.path, asked.mode),
            OsFunctionCall::IsSymlink(_)
            | OsFunctionCall::Resolve(_)
            | OsFunctionCall::Absolute(_)
            | OsFunctionCall::Mkdir(_)
            | OsFunctionCall::Unlink(_)
            | OsFunctionCall::Rmdir(_)
            | OsFunctionCall::Rename(_) => {
                let message = format!(
                    "`{}` is not available to this code; call a file tool by its name",
                    call.name()
                );
                Err(refuse(ExcType::PermissionError, message))
            }
        }
    }

    /// Writes the buffered content. The buffer is dropped, because the next request may change the file.
    pub(super) fn flush_files(&mut self) -> OsCallResult<()> {
        self.files.opened = None;
        match self.files.written.take() {
            Some(BufferedFileWrite {
                path,
                content,
                dirty: true,
                ..
            }) => self.write_now(&path, &content, None),
            Some(_) | None => Ok(()),
        }
    }

    fn open(&mut self, path: &str, mode: FileMode) -> OsCallResult<MontyObject> {
        match mode {
            FileMode::Read(_) | FileMode::ReadUpdate(_) => {
                let text = self.read(path)?;
                self.files.opened = Some((path.to_owned(), text));
            }
            FileMode::Write(_) | FileMode::WriteUpdate(_) => {
                self.flush_files()?;
                self.write_now(path, "", None)?;
                let path = path.to_owned();
                let content = String::new();
                self.files.written = Some(BufferedFileWrite {
                    path,
                    content,
                    dirty: false,
                    fresh: true,
                });
            }
            FileMode::Append(_) | FileMode::AppendUpdate(_) => self.append(path, "")?,
        }
        Ok(MontyObject::FileHandle(MontyFileHandle {
            path: path.to_owned(),
            mode,
            position: 0,
        }))
    }

    fn write(&mut self, path: &str, text: &str) -> OsCallResult<()> {
        if let Some(written) = self
            .files
            .written
            .as_mut()
            .filter(|written| written.path == path && written.fresh)
        {
            written.fresh = false;
            written.dirty = !text.is_empty();
            written.content.push_str(text);
            return Ok(());
        }
        // This content replaces the buffered content of the same file.
        self.files.written.take_if(|written| written.path == path);
        self.flush_files()?;
        self.write_now(path, text, None)?;
        let path = path.to_owned();
        let content = text.to_owned();
        self.files.written = Some(BufferedFileWrite {
            path,
            content,
            dirty: false,
            fresh: false,
        });
        Ok(())
    }

    fn append(&mut self, path: &str, text: &str) -> OsCallResult<()> {
        if let Some(written) = self
            .files
            .written
            .as_mut()
            .filter(|written| written.path == path)
        {
            if written.content.len() + text.len() > FILE_BYTES {
                return Err(too_large(path));
            }
            written.content.push_str(text);
            written.dirty |= !text.is_empty();
            written.fresh = false;
            return Ok(());
        }
        self.flush_files()?;
        let (mut content, digest) = match self.read_now(path) {
            Ok(found) => found,
            Err(OsCallRefusal::Raise(error)) if error.exc_type() == ExcType::FileNotFoundError => {
                (String::new(), None)
            }
            Err(refused) => return Err(refused),
        };
        content.push_str(text);
        self.write_now(path, &content, digest)?;
        self.files.written = Some(BufferedFileWrite {
            path: path.to_owned(),
            content,
            dirty: false,
            fresh: false,
        });
        Ok(())
    }

    fn write_now(
        &mut self,
        path: &str,
        content: &str,
        expected: Option<String>,
    ) -> OsCallResult<()> {
        let mut arguments = object(json!({ "path": path, "content": content }));
        if let Some(digest) = expected {
            arguments.insert("expected_sha256".to_owned(), digest.into());
        }
        self.file_tool(FileTool::Write, arguments).map(|_| ())
    }

    fn read(&mut self, path: &str) -> OsCallResult<String> {
        if let Some((_, text)) = self.files.opened.take_if(|(opened, _)| opened == path) {
            return Ok(text);
        }
        self.flush_files()?;
        self.read_now(path).map(|(text, _)| text)
    }

    /// The whole file, exactly, with its digest if it came in one piece. The tool cuts content that is too long for
    /// readers; code must not take a part for the whole.
    fn read_now(&mut self, path: &str) -> OsCallResult<(String, Option<String>)> {
        let mut text = String::new();
        let mut offset = 1;
        let mut digest = None;
        loop {
            let arguments = object(json!({ "path": path, "offset": offset, "limit": u32::MAX }));
            let read = self.file_tool(FileTool::Read, arguments)?;
            let flag = |name: &str| {
                read.get(name)
                    .is_some_and(|value| *value != Value::Bool(false))
            };
            let Some(part) = read
                .get("text")
                .and_then(Value::as_str)
                .filter(|_| read["encoding"] == "utf-8")
            else {
                return Err(refuse(
                    ExcType::ValueError,
                    format!("`{path}` is not a text file"),
                ));
            };
            if flag("lossy") || flag("cut_lines") {
                let message = format!(
                    "`{path}` cannot be read exactly: it is not UTF-8, or a line is too long"
                );
                return Err(refuse(ExcType::ValueError, message));
            }
            text.push_str(part);
            if offset == 1 {
                digest = read
                    .get("sha256")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
            }
            match read.get("next_offset").and_then(Value::as_u64) {
                Some(next) if text.len() <= FILE_BYTES && next > offset => offset = next,
                Some(_) => return Err(too_large(path)),
                None => return Ok((text, digest)),
            }
        }
    }

    /// The type of a path, if it exists. If the code lacks the tool for it, the listing of the parent directory gives
    /// the type, too.
    fn kind_of(&mut self, path: &str) -> OsCallResult<Option<String>> {
        self.flush_files()?;
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let found = match self.asked(FileTool::Info, object(json!({ "path": path })))? {
            Some(info) => info.map(|info| text(&info, "type")),
            None => {
                let path = path.trim_end_matches('/');
                let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
                if matches!(name, "" | ".") {
                    return Ok(Some("directory".to_owned()));
                }
                self.entries(above).map(|entries| {
                    let entry = entries
                        .iter()
                        .find(|entry| text(entry, "path").is_some_and(|p| last(&p) == name));
                    entry.and_then(|entry| text(entry, "type"))
                })
            }
        };
        match found {
            Ok(kind) => Ok(kind),
            Err(OsCallRefusal::Raise(error)) if error.exc_type() == ExcType::FileNotFoundError => {
                Ok(None)
            }
            Err(refused) => Err(refused),
        }
    }

    fn stat(&mut self, path: &str) -> OsCallResult<MontyObject> {
        self.flush_files()?;
        let info = self.file_tool(FileTool::Info, object(json!({ "path": path })))?;
        let text = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or_default();
        let mode = i64::from_str_radix(text("mode"), 8).unwrap_or(0) & 0o777;
        let modified = text("modified")
            .parse()
            .map_or(0.0, |at: jiff::Timestamp| at.as_duration().as_secs_f64());
        let size = info.get("size").and_then(Value::as_i64).unwrap_or(0);
        Ok(if text("type") == "directory" {
            dir_stat(mode, modified)
        } else {
            file_stat(mode, size, modified)
        })
    }

    fn list(&mut self, path: &str) -> OsCallResult<MontyObject> {
        self.flush_files()?;
        let entries = self.entries(path)?;
        let names = entries
            .iter()
            .filter_map(|entry| entry.get("path").and_then(Value::as_str))
            .map(last);
        let paths = names.map(|name| match path.trim_end_matches('/') {
            "." => name.to_owned(),
            above => format!("{above}/{name}"),
        });
        Ok(MontyObject::List(paths.map(MontyObject::Path).collect()))
    }

    fn entries(&mut self, path: &str) -> OsCallResult<Vec<Value>> {
        let arguments = object(json!({ "path": path, "depth": 1, "limit": ENTRIES }));
        let mut listed = self.file_tool(FileTool::List, arguments)?;
        Ok(match listed.get_mut("entries").map(Value::take) {
            Some(Value::Array(entries)) => entries,
            Some(_) | None => Vec::new(),
        })
    }

    fn file_tool(&mut self, tool: FileTool, keywords: Map<String, Value>) -> OsCallResult<Value> {
        self.asked(tool, keywords)?.unwrap_or_else(|| {
            let message = format!("`{}` is not granted to this code", tool.id());
            Err(OsCallRefusal::Raise(exception(
                PythonException::Permission,
                message,
            )))
        })
    }

    /// The tool's answer; `None` if the code does not have the tool.
    fn asked(
        &mut self,
        tool: FileTool,
        keywords: Map<String, Value>,
    ) -> OsCallResult<Option<OsCallResult<Value>>> {
        let function = CodeFunction::File(tool);
        let (_, answer) = self.request(|id| CodeWorkerFrame::Call {
            id,
            function,
            positional: Vec::new(),
            keywords,
        });
        match answer {
            CodeRequestAnswer::Value(value) => Ok(Some(Ok(value))),
            CodeRequestAnswer::Raise { kind, message } => {
                Ok(Some(Err(OsCallRefusal::Raise(exception(kind, message)))))
            }
            CodeRequestAnswer::Abort { message } => Err(OsCallRefusal::Abort(abort(message))),
            CodeRequestAnswer::Pending | CodeRequestAnswer::Known | CodeRequestAnswer::Unknown => {
                Ok(None)
            }
        }
    }
}

/// The last name of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn characters(text: &str) -> MontyObject {
    length(text.chars().count())
}

fn length(count: usize) -> MontyObject {
    MontyObject::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn utf8<'a>(path: &str, bytes: &'a [u8]) -> OsCallResult<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        refuse(
            ExcType::ValueError,
            format!("only text can be written, and the content for `{path}` is not UTF-8"),
        )
    })
}

fn too_large(path: &str) -> OsCallRefusal {
    refuse(
        ExcType::ValueError,
        format!("`{path}` is larger than {FILE_BYTES} bytes, the limit for code"),
    )
}

fn refuse(kind: ExcType, message: String) -> OsCallRefusal {
    OsCallRefusal::Raise(MontyException::new(kind, Some(message)))
}

//! One run: the interpreter suspends at each request, and the host answers it.

use std::{
    collections::HashMap,
    fmt::{self, Write},
    time::Duration,
};

use monty::{FunctionCall, MontyRun, NameLookup, ResolveFutures, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult,
    ResourceLimits, ResourceTracker, StringRepr,
};
use serde_json::{Map, Value};

use super::{
    files::{CodeRunFiles, OsCallRefusal},
    outlet::CodeHostConnection,
    value::{NotJson, to_json, to_python},
};
use crate::code::frame::{
    CodeFunction, CodeHostFrame, CodeRequestAnswer, CodeRunEnd, CodeWorkerFrame, PythonException,
    RunOrder, UncaughtException,
};

/// The file name in tracebacks.
const SCRIPT: &str = "code.py";
/// The deepest recursion of the code.
const RECURSION: usize = 1000;
/// The largest final value that is sent as JSON.
const JSON_BYTES: usize = 1 << 20;
/// The largest final value or traceback that is sent as text.
const TEXT_BYTES: usize = 64 << 10;
/// The longest line of a traceback.
const LINE_BYTES: usize = 1000;

/// Runs code from a clean start: no state of the previous run exists.
pub(super) fn run(outlet: &mut CodeHostConnection, order: RunOrder) -> CodeRunEnd {
    outlet.begin(order.limits.printed_bytes);
    let mut run = InterpreterRun {
        outlet,
        next_id: 0,
        pending: HashMap::new(),
        arrived: Vec::new(),
        files: CodeRunFiles::default(),
    };
    let ended = run.drive(order);
    let ended = match (ended, run.flush_files()) {
        (Ok(_), Err(OsCallRefusal::Raise(error) | OsCallRefusal::Abort(error))) => Err(error),
        (ended, _) => ended,
    };
    match ended {
        Ok(value) => ending_of(value),
        Err(error) => CodeRunEnd::Raised(raised(&error)),
    }
}

/// A run under way.
pub(super) struct InterpreterRun<'a> {
    pub(super) outlet: &'a mut CodeHostConnection,
    next_id: u32,
    /// Calls with a later answer: the request's id, and the interpreter's id of the call.
    pending: HashMap<u32, u32>,
    arrived: Vec<(u32, CodeRequestAnswer)>,
    pub(super) files: CodeRunFiles,
}

type InterpreterStepResult = Result<RunProgress, MontyException>;

impl InterpreterRun<'_> {
    fn drive(&mut self, order: RunOrder) -> Result<MontyObject, MontyException> {
        let (names, values): (Vec<_>, Vec<_>) = order
            .inputs
            .into_iter()
            .map(|(name, value)| (name, to_python(value)))
            .unzip();
        let limits = ResourceLimits::default()
            .max_duration(Duration::from_millis(order.limits.time_ms))
            .max_memory(usize::try_from(order.limits.memory_bytes).unwrap_or(usize::MAX))
            .max_recursion_depth(RECURSION);
        let program = MontyRun::new(order.code, SCRIPT, names, CompileOptions::default())?;
        let mut progress =
            program.start(values, ResourceTracker::new(limits), self.outlet.printer())?;
        loop {
            progress = match progress {
                RunProgress::Complete(value) => return Ok(value),
                RunProgress::FunctionCall(call) => self.function_call(call)?,
                RunProgress::NameLookup(lookup) => self.name_lookup(lookup)?,
                RunProgress::OsCall(call) => match self.os_call(&call.function_call) {
                    Ok(value) => call.resume(value, self.outlet.printer())?,
                    Err(OsCallRefusal::Raise(error)) => {
                        call.resume(error, self.outlet.printer())?
                    }
                    Err(OsCallRefusal::Abort(error)) => call.abort(error, self.outlet.printer())?,
                },
                RunProgress::ResolveFutures(futures) => self.resolve_futures(futures)?,
            }
        }
    }

    /// Every call of an undefined name comes here, `eval` and `__import__` included. The host decides which of them
    /// exist.
    fn function_call(&mut self, mut call: FunctionCall) -> InterpreterStepResult {
        let name = std::mem::take(&mut call.function_name);
        if call.object_id.is_some() {
            return call.resume(ExtFunctionResult::NotFound(name), self.outlet.printer());
        }
        let arguments = arguments_of(
            std::mem::take(&mut call.args),
            std::mem::take(&mut call.kwargs),
        );
        let answer = match arguments {
            Ok((positional, keywords)) => self.ask(|id| CodeWorkerFrame::Call {
                id,
                function: CodeFunction::Named(name.clone()),
                positional,
                keywords,
            }),
            // A name that does not exist is reported as such, whatever its arguments are.
            Err(reason) => match self.ask(|id| CodeWorkerFrame::Lookup {
                id,
                name: name.clone(),
            }) {
                (id, CodeRequestAnswer::Known) => {
                    let message = format!("{name}() got {reason}, which has no JSON form");
                    (
                        id,
                        CodeRequestAnswer::Raise {
                            kind: PythonException::Value,
                            message,
                        },
                    )
                }
                unknown => unknown,
            },
        };
        match answer {
            (id, CodeRequestAnswer::Pending) => {
                self.pending.insert(id, call.call_id);
                call.resume_pending(self.outlet.printer())
            }
            (_, CodeRequestAnswer::Abort { message }) => {
                call.abort(abort(message), self.outlet.printer())
            }
            (_, answer) => call.resume(result_of(answer, name), self.outlet.printer()),
        }
    }

    fn name_lookup(&mut self, lookup: NameLookup) -> InterpreterStepResult {
        if lookup.object_id().is_some() {
            return lookup.resume(NameLookupResult::Undefined, self.outlet.printer());
        }
        match self
            .ask(|id| CodeWorkerFrame::Lookup {
                id,
                name: lookup.name.clone(),
            })
            .1
        {
            CodeRequestAnswer::Known => {
                let function = MontyObject::Function {
                    name: lookup.name.clone(),
                    docstring: None,
                };
                lookup.resume(function, self.outlet.printer())
            }
            CodeRequestAnswer::Abort { message } => {
                lookup.abort(abort(message), self.outlet.printer())
            }
            CodeRequestAnswer::Value(_)
            | CodeRequestAnswer::Raise { .. }
            | CodeRequestAnswer::Pending
            | CodeRequestAnswer::Unknown => {
                lookup.resume(NameLookupResult::Undefined, self.outlet.printer())
            }
        }
    }

    fn resolve_futures(&mut self, futures: ResolveFutures) -> InterpreterStepResult {
        let waited_for = |call: &u32| futures.pending_call_ids().contains(call);
        if !self.pending.values().any(waited_for) {
            let stuck = MontyException::new(
                ExcType::RuntimeError,
                Some("every task waits for another".into()),
            );
            return futures.abort(stuck, self.outlet.printer());
        }
        loop {
            let mut results = Vec::new();
            for (id, answer) in std::mem::take(&mut self.arrived) {
                match (self.pending.get(&id).copied().filter(waited_for), answer) {
                    (Some(_), CodeRequestAnswer::Abort { message }) => {
                        return futures.abort(abort(message), self.outlet.printer());
                    }
                    (Some(call), answer) => {
                        self.pending.remove(&id);
                        results.push((call, result_of(answer, String::new())));
                    }
                    (None, answer) => self.arrived.push((id, answer)),
                }
            }
            if !results.is_empty() {
                return futures.resume(results, self.outlet.printer());
            }
            self.receive();
        }
    }

    /// Sends a request and waits for the answer. Buffered files are written first, so that the request sees them.
    fn ask(&mut self, report: impl FnOnce(u32) -> CodeWorkerFrame) -> (u32, CodeRequestAnswer) {
        match self.flush_files() {
            Ok(()) => self.request(report),
            Err(OsCallRefusal::Raise(error)) => {
                let message = error.into_message().unwrap_or_default();
                (
                    0,
                    CodeRequestAnswer::Raise {
                        kind: PythonException::Runtime,
                        message,
                    },
                )
            }
            Err(OsCallRefusal::Abort(error)) => (
                0,
                CodeRequestAnswer::Abort {
                    message: error.into_message().unwrap_or_default(),
                },
            ),
        }
    }

    /// Sends a request and waits for the answer, without writing buffered files.
    pub(super) fn request(
        &mut self,
        report: impl FnOnce(u32) -> CodeWorkerFrame,
    ) -> (u32, CodeRequestAnswer) {
        self.next_id += 1;
        let id = self.next_id;
        self.outlet.send(&report(id));
        loop {
            if let Some(place) = self
                .arrived
                .iter()
                .position(|(answered, _)| *answered == id)
            {
                return self.arrived.swap_remove(place);
            }
            self.receive();
        }
    }

    fn receive(&mut self) {
        match self.outlet.receive() {
            CodeHostFrame::Answer { id, answer } => self.arrived.push((id, answer)),
            // The host never sends code to a worker that runs some.
            CodeHostFrame::Run(_) => std::process::exit(1),
        }
    }
}

fn arguments_of(
    positional: Vec<MontyObject>,
    keywords: Vec<(MontyObject, MontyObject)>,
) -> Result<(Vec<Value>, Map<String, Value>), NotJson> {
    let positional = positional
        .into_iter()
        .map(to_json)
        .collect::<Result<_, _>>()?;
    let keyword = |(name, value): (MontyObject, MontyObject)| match name {
        MontyObject::String(name) => Ok((name, to_json(value)?)),
        other => Err(NotJson::Key(other.type_name().to_owned())),
    };
    Ok((
        positional,
        keywords
            .into_iter()
            .map(keyword)
            .collect::<Result<_, _>>()?,
    ))
}

fn result_of(answer: CodeRequestAnswer, name: String) -> ExtFunctionResult {
    match answer {
        CodeRequestAnswer::Value(value) => to_python(value).into(),
        CodeRequestAnswer::Raise { kind, message } => exception(kind, message).into(),
        CodeRequestAnswer::Abort { message } => abort(message).into(),
        CodeRequestAnswer::Pending | CodeRequestAnswer::Known | CodeRequestAnswer::Unknown => {
            ExtFunctionResult::NotFound(name)
        }
    }
}

pub(super) fn exception(kind: PythonException, message: String) -> MontyException {
    let kind = match kind {
        PythonException::Permission => ExcType::PermissionError,
        PythonException::FileNotFound => ExcType::FileNotFoundError,
        PythonException::Timeout => ExcType::TimeoutError,
        PythonException::Type => ExcType::TypeError,
        PythonException::Value => ExcType::ValueError,
        PythonException::Runtime => ExcType::RuntimeError,
    };
    MontyException::new(kind, Some(message))
}

pub(super) fn abort(message: String) -> MontyException {
    MontyException::new(ExcType::RuntimeError, Some(message))
}

fn ending_of(value: MontyObject) -> CodeRunEnd {
    let mut repr = ReprBuffer {
        text: String::new(),
        room: TEXT_BYTES,
    };
    // Writing stops at the limit, so that a large value is not formatted for nothing.
    let whole = match &value {
        MontyObject::String(text) => write!(repr, "{}", StringRepr(text)),
        MontyObject::Repr(text) => repr.write_str(text),
        other => write!(repr, "{other}"),
    };
    if whole.is_err() {
        repr.text.push('…');
    }
    let size = |json: &Value| serde_json::to_vec(json).map_or(usize::MAX, |bytes| bytes.len());
    let (json, not_json) = match to_json(value) {
        Ok(json) if size(&json) <= JSON_BYTES => (Some(json), None),
        Ok(_) => (
            None,
            Some(format!("it takes more than {JSON_BYTES} bytes as JSON")),
        ),
        Err(reason) => (None, Some(reason.to_string())),
    };
    CodeRunEnd::Value {
        json,
        repr: repr.text,
        not_json,
    }
}

fn raised(error: &MontyException) -> UncaughtException {
    UncaughtException {
        kind: error.exc_type().to_string(),
        message: cut(error.message().unwrap_or_default(), TEXT_BYTES),
        traceback: traceback_of(error),
        line: error
            .traceback()
            .iter()
            .rev()
            .find(|frame| frame.filename == SCRIPT)
            .map(|frame| frame.start.line),
    }
}

/// The traceback with lines of readable length: Python prints the whole line of code.
fn traceback_of(error: &MontyException) -> String {
    let mut text = String::new();
    for line in error.to_string().lines() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&cut(line, LINE_BYTES));
        if text.len() > TEXT_BYTES {
            break;
        }
    }
    text
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{}… [{} more bytes]", &text[..end], text.len() - end)
}

/// A text buffer that refuses more than its limit.
struct ReprBuffer {
    text: String,
    room: usize,
}

impl Write for ReprBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.floor_char_boundary(text.len().min(self.room));
        self.text.push_str(&text[..end]);
        self.room -= end;
        if end < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

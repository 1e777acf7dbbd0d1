//! `shell.process_read`: any part of the output of a process.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;
use toolpost_model::{
    CallContext, CallInput, Declaration, EffectClass, Effects, PersistStrategy, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_processes::{clean, whole_characters};

use super::{
    declare,
    log::OutputLogPage,
    process_status::{ProcessFacts, standing},
    processes::{BackgroundProcesses, ProcessEntry},
    told::add_line,
};
use crate::arguments::read_arguments;

/// The default of how many bytes are read.
const USUAL_BYTES: u64 = 16 * 1024;
/// The most bytes that are read at once: within the host's limit for a result.
const MOST_BYTES: u64 = 48 * 1024;

pub(super) struct ProcessRead {
    processes: Arc<BackgroundProcesses>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The process.
    process_id: String,
    /// The byte to begin at, counted from 0. Give the last result's `next_offset` to read on.
    #[serde(default)]
    offset: u64,
    /// How many bytes to read at most.
    #[serde(default = "usual_bytes")]
    #[schemars(range(min = 1, max = 49152))]
    limit: u64,
    /// Read the last `limit` bytes instead; `offset` is not looked at then.
    #[serde(default)]
    tail: bool,
    /// Wait up to so many seconds for output beyond `offset`, or for the end of the process.
    #[serde(default)]
    #[schemars(range(max = 300))]
    wait_seconds: u64,
}

fn usual_bytes() -> u64 {
    USUAL_BYTES
}

/// A part of an output, and how its process stands.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReadResult")]
struct ProcessReadResult {
    /// How the process stands.
    #[serde(flatten)]
    process: ProcessFacts,
    /// Where this part begins; later than asked for where what lies before is not kept.
    offset: u64,
    /// Where the next part begins.
    next_offset: u64,
    /// Nothing comes after this part any more.
    at_end: bool,
    /// Bytes that are no UTF-8 were replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
}

impl ProcessRead {
    pub(super) fn new(processes: Arc<BackgroundProcesses>) -> Self {
        Self { processes }
    }
}

/// Waits for output beyond `offset`, for the end of the process, or for the end of the wait.
async fn await_news(entry: &ProcessEntry, offset: u64, wait: Duration, context: &CallContext) {
    let mut growth = entry.log.watch();
    let news = async {
        tokio::select! {
            _ = growth.wait_for(|total| *total > offset) => {}
            () = entry.gone() => {}
            () = context.canceled() => {}
        }
    };
    let _ = timeout(wait, news).await;
}

/// Ends a full page after a whole line or at least a whole character, so that neither page has a part of one.
fn end_well(page: &mut OutputLogPage) {
    if page.end() == page.total {
        return;
    }
    let line = page
        .bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map(|at| at + 1);
    let end = line
        .filter(|end| end * 2 >= page.bytes.len())
        .unwrap_or_else(|| whole_characters(&page.bytes));
    page.bytes
        .truncate(if end == 0 { page.bytes.len() } else { end });
}

impl Tool for ProcessRead {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, ProcessReadResult>(
            "process_read",
            "Reads what a process of this session wrote: one in the background, or an earlier `shell` call whose output \
             was too long to be shown whole. Pages by byte offset; the last line says how the process stands and where \
             to read on. `tail` gives the latest output, `wait_seconds` waits for something new. The output stays \
             readable after the process ended.",
            EffectClass::Read,
        );
        declaration.title = Some("Read process output".to_owned());
        declaration.search_hint =
            "background job output log tail follow stdout stderr more rest".to_owned();
        declaration.input.examples = vec![
            json!({ "process_id": "p3f09c41d77aa", "tail": true }),
            json!({ "process_id": "p3f09c41d77aa", "offset": 16384, "wait_seconds": 20 }),
        ];
        // The result is not stored, because the output can be read again.
        declaration.interface.persistence.strategy = PersistStrategy::NeverPersist;
        declaration
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(Effects::of(EffectClass::Read))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let entry = self.processes.find(&call.context, &arguments.process_id)?;
        let limit = arguments.limit.clamp(1, MOST_BYTES);
        let known = if arguments.tail {
            entry.log.total()
        } else {
            arguments.offset
        };
        let wait = Duration::from_secs(arguments.wait_seconds.min(300));
        if !wait.is_zero() && entry.is_alive() && entry.log.total() <= known {
            await_news(&entry, known, wait, &call.context).await;
        }
        // The state is read before the output: if it was read after, a process could write and end in between, and the
        // result would say that the process has ended without its last output.
        let was_alive = entry.is_alive();
        let offset = if arguments.tail {
            entry.log.total().saturating_sub(limit)
        } else {
            arguments.offset
        };
        let mut page = entry
            .log
            .read(offset, usize::try_from(limit).unwrap_or(usize::MAX))
            .await?;
        end_well(&mut page);
        let cleaned = clean(&page.bytes);
        let next = page.end();
        let at_end = !was_alive && next >= page.total;
        let is_empty = page.bytes.is_empty();
        let mut text = cleaned.text;
        if page.offset > offset {
            text = format!(
                "[… bytes {offset} to {} were not kept …]\n{text}",
                page.offset
            );
        }
        let rest = if at_end {
            "end of output".to_owned()
        } else {
            format!("read on at offset {next}")
        };
        add_line(
            &mut text,
            &format!(
                "[{}; {next} of {} bytes; {rest}]",
                standing(&entry),
                page.total
            ),
        );
        let result = ProcessReadResult {
            process: ProcessFacts::of(&entry),
            offset: page.offset,
            next_offset: next,
            at_end,
            lossy: cleaned.lossy,
        };
        let output = ToolOutput::text(text).with_structured(serde_json::to_value(&result)?);
        Ok(ToolOutput { is_empty, ..output })
    }
}

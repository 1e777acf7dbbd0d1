//! Tool events merged into calls, beside `serde_json`, which only parses the same lines into values.

use std::{fmt::Write as _, hint::black_box, time::Instant};

use serde_json::{Value, json};
use toolpost_a2a::{Receiver, ReceiverBounds, ReceiverOptions, VocabularyBridge};

use crate::{
    children::memory_of,
    rounds::{Pairs, median, shown},
};

const ROUNDS: usize = 9;
const EVENTS: usize = 100_000;
/// Calls that run at the same time.
const OPEN: usize = 32;
/// Calls of one task. A task ends and the next one begins, as in a long recording.
const OF_A_TASK: usize = 1_000;

pub(crate) async fn run() -> anyhow::Result<()> {
    for (name, carrier) in [
        ("payloads", Carrier::Payload),
        ("status updates of A2A 1.0 in JSON-RPC", Carrier::Update),
        ("an AI SDK stream with pieces of input", Carrier::Pieces),
    ] {
        let lines = stream(carrier, EVENTS);
        let bytes: usize = lines.iter().map(String::len).sum();
        println!("{name}: {EVENTS} events, {:.1} MB", bytes as f64 / 1e6);
        let pairs = Pairs::take(
            ROUNDS,
            || merged(&lines, Ended::AreTaken),
            || parsed(&lines),
        )
        .await?;
        pairs.tell(
            &format!("{name}, merged and taken, beside reading them to values"),
            "events/s",
        );
        let pairs = Pairs::take(
            ROUNDS,
            || async {
                Ok(merged(&lines, Ended::AreTaken).await? * bytes as f64 / EVENTS as f64 / 1e6)
            },
            || async { Ok(parsed(&lines).await? * bytes as f64 / EVENTS as f64 / 1e6) },
        )
        .await?;
        pairs.tell(&format!("{name}, the same"), "MB/s");
        let pairs =
            Pairs::take(ROUNDS, || merged(&lines, Ended::AreKept), || parsed(&lines)).await?;
        pairs.tell(
            &format!("{name}, merged and kept, beside reading them to values"),
            "events/s",
        );
        let pairs = Pairs::take(ROUNDS, || bridged(&lines), || parsed(&lines)).await?;
        pairs.tell(
            &format!("{name}, sent on as canonical parts, beside reading them to values"),
            "events/s",
        );
    }
    memory()?;
    growth();
    Ok(())
}

/// The protocol of the events.
#[derive(Clone, Copy)]
enum Carrier {
    Payload,
    Update,
    Pieces,
}

/// The handling of ended calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    AreTaken,
    AreKept,
}

/// Calls with arguments and results as agents have them, always so many open.
fn stream(carrier: Carrier, events: usize) -> Vec<String> {
    let mut lines = Vec::with_capacity(events + 8);
    let mut call = 0;
    while lines.len() < events {
        for number in call..call + OPEN {
            begin(carrier, number, &mut lines);
        }
        for number in call..call + OPEN {
            let output = json!({
                "path": format!("src/module_{number}.rs"),
                "matches": [{ "line": number, "text": "pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {" }],
                "truncated": false,
            });
            let end = json!({ "type": "tool-result", "toolCallId": id(number), "toolName": "grep", "output": output, "durationMs": number % 900 });
            lines.push(carried(carrier, number, &end));
        }
        call += OPEN;
    }
    lines.truncate(events);
    lines
}

fn id(number: usize) -> String {
    format!("toolu_{number:012x}")
}

fn begin(carrier: Carrier, number: usize, lines: &mut Vec<String>) {
    let input = json!({ "pattern": format!("fn run_{number}"), "path": "crates/toolpost/src", "max": 200, "hidden": false });
    if let Carrier::Pieces = carrier {
        lines.push(
            json!({ "type": "tool-input-start", "toolCallId": id(number), "toolName": "grep" })
                .to_string(),
        );
        let text = input.to_string();
        for piece in text.as_bytes().chunks(12) {
            let piece = String::from_utf8_lossy(piece);
            lines.push(
                json!({ "type": "tool-input-delta", "toolCallId": id(number), "inputTextDelta": piece })
                    .to_string(),
            );
        }
    }
    let call = json!({ "type": "tool-call", "toolCallId": id(number), "toolName": "grep", "input": input, "startedAt": "2026-11-15T19:29:16.292Z" });
    lines.push(carried(carrier, number, &call));
}

fn carried(carrier: Carrier, number: usize, event: &Value) -> String {
    match carrier {
        Carrier::Payload | Carrier::Pieces => event.to_string(),
        Carrier::Update => {
            let task = format!("8e28e1f0-0000-7000-8000-{:012x}", number / OF_A_TASK);
            let message = json!({
                "messageId": format!("b3250000-0000-7000-8000-{number:012x}"),
                "role": "ROLE_AGENT",
                "parts": [{ "data": event }],
                "extensions": [toolpost_a2a::CANONICAL_URI],
            });
            let status = json!({ "state": "TASK_STATE_WORKING", "message": message, "timestamp": "2026-11-15T19:29:16.292807Z" });
            let update = json!({ "taskId": task, "contextId": "e5160000-0000-7000-8000-000000000000", "status": status });
            json!({ "result": { "statusUpdate": update }, "id": 1, "jsonrpc": "2.0" }).to_string()
        }
    }
}

/// Events a second.
async fn merged(lines: &[String], ended: Ended) -> anyhow::Result<f64> {
    let began = Instant::now();
    // A higher limit than the default, so that all calls count.
    let bounds = ReceiverBounds {
        calls_per_stream: EVENTS,
        ..ReceiverBounds::default()
    };
    let mut receiver = Receiver::new(ReceiverOptions {
        bounds,
        ..ReceiverOptions::default()
    });
    for line in lines {
        black_box(receiver.receive(line)?);
        if ended == Ended::AreTaken {
            black_box(receiver.take_ended());
        }
    }
    black_box(receiver.into_parts());
    Ok(lines.len() as f64 / began.elapsed().as_secs_f64())
}

async fn bridged(lines: &[String]) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut bridge = VocabularyBridge::default();
    let mut out = Vec::new();
    for line in lines {
        out.clear();
        let mut written = Ok(());
        bridge.receive(line, |part| {
            written = serde_json::to_writer(&mut out, &part);
        })?;
        written?;
        black_box(&out);
    }
    Ok(lines.len() as f64 / began.elapsed().as_secs_f64())
}

async fn parsed(lines: &[String]) -> anyhow::Result<f64> {
    let began = Instant::now();
    for line in lines {
        black_box(serde_json::from_str::<Value>(line)?);
    }
    Ok(lines.len() as f64 / began.elapsed().as_secs_f64())
}

/// The memory of streams of several lengths, with ended calls removed, and the growth of the process.
fn memory() -> anyhow::Result<()> {
    for events in [10_000, EVENTS, 10 * EVENTS] {
        let mut receiver = Receiver::default();
        let before = memory_of(std::process::id())?;
        let mut most_calls = 0;
        let mut most_bytes = 0;
        let mut line = String::new();
        for number in 0..events / 2 {
            let call = format!(
                r#""{number:x}","type":"tool-call","toolName":"grep","input":{{"pattern":"fn run"}}"#
            );
            // A call ends when `OPEN` others have begun.
            let ended = number.checked_sub(OPEN);
            let end =
                ended.map(|number| format!(r#""{number:x}","type":"tool-result","output":"none""#));
            for event in [Some(call), end].into_iter().flatten() {
                line.clear();
                write!(line, r#"{{"toolCallId":{event}}}"#)?;
                receiver.receive(&line)?;
                most_calls = most_calls.max(receiver.held());
                most_bytes = most_bytes.max(receiver.held_bytes());
                black_box(receiver.take_ended());
            }
        }
        let grown = (memory_of(std::process::id())? - before).max(0.0);
        println!(
            "{events} events with {OPEN} calls open: at most {most_calls} held ({most_bytes} bytes), the process grew by {grown:.1} MB"
        );
    }
    Ok(())
}

/// An event at the end of a long stream beside one at its beginning, with every call kept.
fn growth() {
    let lines = stream(Carrier::Payload, 19_000);
    let mut receiver = Receiver::default();
    let mut times = Vec::new();
    for part in lines.chunks(1_000) {
        let began = Instant::now();
        for line in part {
            let _ = black_box(receiver.receive(line));
        }
        times.push(began.elapsed().as_secs_f64() * 1e9 / part.len() as f64);
    }
    let (first, last) = times.split_at(times.len() / 2);
    println!(
        "an event of a stream that is kept: {} ns in its first half, {} ns in its second",
        shown(median(first)),
        shown(median(last))
    );
}

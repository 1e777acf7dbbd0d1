//! How a call ended: outcome, what became of its content, and what can be done about a failure.

use serde::Deserialize as _;
use serde_json::Value;
use toolpost_model::{Recoverability, RetryGuidance, ToolResult};

use super::{CallRecordPrinter, NamedLineWriter, shortened};
use crate::terminal::{GREEN, RED, YELLOW, printable, styled};

pub(super) fn print_ending(story: &CallRecordPrinter<'_>, line: NamedLineWriter<'_>) {
    let Some(outcome) = story.text("/result/outcome") else {
        let open = "no end is on record: the call runs, or its host died and was not started again";
        return line("end", open.to_owned());
    };
    let style = match outcome.as_str() {
        "succeeded" => GREEN,
        "partial" => YELLOW,
        _ => RED,
    };
    let time = |name: &str| {
        let micros = story
            .part(&format!("/result/timings/{name}"))
            .and_then(Value::as_u64);
        micros.unwrap_or_default() as f64 / 1_000.0
    };
    let disposition = story.text("/result/disposition").unwrap_or_default();
    line(
        "end",
        format!(
            "{} ({disposition}) in {:.3} ms: {:.3} waiting, {:.3} in the tool",
            styled(style, outcome),
            time("total_us"),
            time("queued_us"),
            time("execute_us"),
        ),
    );
    if let Some(late) = story.text("/explain/late") {
        line("late", late_answer(&late).to_owned());
    }
    let summary = story.text("/result/summary");
    let error = story.text("/result/error/message");
    // Of most failures the summary is the error again.
    if let Some(summary) = summary.filter(|summary| Some(summary) != error.as_ref()) {
        line("summary", shortened(&summary));
    }
    for (name, text) in [("error", error), ("hint", story.text("/result/error/hint"))] {
        if let Some(text) = text {
            line(name, shortened(&text));
        }
    }
    if let Some(error) = story.part("/result/error") {
        line("retry", retry(error));
    }
}

/// What became of the content.
pub(super) fn kept(story: &CallRecordPrinter<'_>, line: NamedLineWriter<'_>) {
    let result = story
        .part("/result")
        .and_then(|result| ToolResult::deserialize(result).ok());
    let Some(result) = result else { return };
    result
        .remarks()
        .iter()
        .for_each(|remark| line("content", shortened(&printable(remark))));
    if let Some(kept) = &result.persistence {
        let strategy = serde_json::to_value(kept.strategy).unwrap_or_default();
        let strategy = strategy.as_str().unwrap_or_default().replace('_', " ");
        line(
            "size",
            format!(
                "{} of {} shown, the limit is {} ({strategy})",
                kept.preview, kept.original, kept.threshold
            ),
        );
    }
}

fn late_answer(word: &str) -> &'static str {
    match word {
        "told" => "it was told to stop and finished all the same",
        "unheard" => "it finished when its caller had gone; only this record has its answer",
        "discarded" => {
            "the host stopped listening before it ended; whatever it still answered was discarded"
        }
        _ => "its answer came late",
    }
}

/// What can be done about a failure, in a few words.
pub(crate) fn retry(error: &Value) -> String {
    let way = match Recoverability::deserialize(&error["recoverability"]) {
        Ok(Recoverability::Retry) => "the same call may work",
        Ok(Recoverability::ChangeCall) => "another call may work",
        Ok(Recoverability::Operator) => "only the operator can change the answer",
        Ok(Recoverability::Never) | Err(_) => "not by itself",
    };
    let needs = RetryGuidance::deserialize(&error["retry"]).unwrap_or(RetryGuidance::UNSAFE);
    format!("{way}; {}", guidance(&needs))
}

/// What sending a call again needs.
pub(crate) fn guidance(retry: &RetryGuidance) -> String {
    let RetryGuidance {
        safe,
        change_arguments,
        discover_first,
        needs_approval,
        after_ms,
    } = *retry;
    let harm = if safe {
        "sending it again does no harm"
    } else {
        "it may have taken effect"
    };
    let mut told = vec![harm.to_owned()];
    for (is_said, words) in [
        (change_arguments, "the arguments must change"),
        (discover_first, "the tool must be looked up first"),
        (needs_approval, "a person must approve"),
    ] {
        if is_said {
            told.push(words.to_owned());
        }
    }
    told.extend(after_ms.map(|wait| format!("not before {wait} ms")));
    told.join("; ")
}

/// What really confined a process.
pub(super) fn confined(sandbox: &Value) -> String {
    let text = |name: &str| printable(sandbox[name].as_str().unwrap_or_default());
    let missing: Vec<&str> = sandbox["missing"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        some => format!("; without {}", printable(&some.join(", "))),
    };
    format!(
        "{} on tier {}, network {}{missing}",
        text("requested"),
        text("tier"),
        text("net")
    )
}

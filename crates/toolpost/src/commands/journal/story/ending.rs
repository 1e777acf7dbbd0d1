//! The end of a call: the outcome, the disposition of its content, and the recovery from a failure.

use toolpost_core::LateAnswer;
use toolpost_model::{
    AppliedSandbox, ErrorClass, Outcome, Recoverability, RetryGuidance, ToolError, ToolResult,
};

use super::{CallRecordPrinter, NamedLineWriter, shortened, word};
use crate::terminal::{GREEN, RED, YELLOW, printable, styled};

pub(super) fn print_ending(story: &CallRecordPrinter<'_>, line: NamedLineWriter<'_>) {
    let Some(result) = &story.result else {
        let open =
            "no end is on record: the call still runs, or its host ended and was not restarted";
        return line("end", open.to_owned());
    };
    let style = match result.outcome {
        Outcome::Succeeded => GREEN,
        Outcome::Partial => YELLOW,
        Outcome::Failed
        | Outcome::Denied
        | Outcome::Rejected
        | Outcome::Canceled
        | Outcome::TimedOut
        | Outcome::Unknown => RED,
    };
    let time = |micros: u64| micros as f64 / 1_000.0;
    line(
        "end",
        format!(
            "{} ({}) in {:.3} ms: {:.3} waiting, {:.3} in the tool",
            styled(style, result.outcome.as_str()),
            result.disposition.as_str(),
            time(result.timings.total_us),
            time(result.timings.queued_us),
            time(result.timings.execute_us),
        ),
    );
    if let Some(late) = story.newest_circumstance(|met| met.late) {
        line("late", late_answer(late).to_owned());
    }
    let error = result.error.as_ref();
    // The summary of most failures repeats the error.
    let summary = result.summary.as_ref();
    if let Some(summary) = summary.filter(|text| Some(*text) != error.map(|error| &error.message)) {
        line("summary", shortened(&printable(summary)));
    }
    let Some(error) = error else { return };
    line("error", shortened(&printable(&error.message)));
    if let Some(hint) = &error.hint {
        line("hint", shortened(&printable(hint)));
    }
    line("retry", retry(error));
}

/// The disposition of the content.
pub(super) fn kept(result: &ToolResult, line: NamedLineWriter<'_>) {
    result
        .remarks()
        .iter()
        .for_each(|remark| line("content", shortened(&printable(remark))));
    if let Some(kept) = &result.persistence {
        line(
            "size",
            format!(
                "{} of {} shown, the limit is {} ({})",
                kept.preview,
                kept.original,
                kept.threshold,
                word(&kept.strategy)
            ),
        );
    }
}

fn late_answer(late: LateAnswer) -> &'static str {
    match late {
        LateAnswer::Told => "it finished although it was canceled",
        LateAnswer::Unheard => {
            "it finished after its caller disconnected; only this record has its result"
        }
        LateAnswer::Discarded => {
            "the host stopped waiting before it ended; a later result is discarded"
        }
    }
}

/// The recovery from a failure, in a few words.
pub(crate) fn retry(error: &ToolError) -> String {
    // A retry without another name cannot work, so the general words would mislead.
    if error.class == ErrorClass::UnknownTool {
        return "only with the name of a listed tool".to_owned();
    }
    let way = match error.recoverability {
        Recoverability::Retry => "the same call may work",
        Recoverability::ChangeCall => "a different call may work",
        Recoverability::Operator => "only the operator can change this",
        Recoverability::Never => "no automatic retry",
    };
    format!("{way}; {}", guidance(&error.retry))
}

/// The conditions for sending a call again.
pub(crate) fn guidance(retry: &RetryGuidance) -> String {
    let RetryGuidance {
        safe,
        change_arguments,
        discover_first,
        needs_approval,
        after_ms,
    } = *retry;
    let harm = if safe {
        "a retry is safe"
    } else {
        "it may have taken effect"
    };
    let mut told = vec![harm.to_owned()];
    for (is_said, words) in [
        (change_arguments, "the arguments must change"),
        (discover_first, "the tool must be discovered first"),
        (needs_approval, "an operator must approve"),
    ] {
        if is_said {
            told.push(words.to_owned());
        }
    }
    told.extend(after_ms.map(|wait| format!("not before {wait} ms")));
    told.join("; ")
}

/// The actual confinement of a process.
pub(super) fn confined(sandbox: &AppliedSandbox) -> String {
    let missing = match sandbox.missing.as_slice() {
        [] => String::new(),
        some => format!("; without {}", printable(&some.join(", "))),
    };
    format!(
        "{} on tier {}, network {}{missing}",
        sandbox.requested.as_str(),
        word(&sandbox.tier),
        printable(&sandbox.net)
    )
}

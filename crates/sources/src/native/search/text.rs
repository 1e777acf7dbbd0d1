//! The engine of `grep` on text that comes from anywhere.

use std::io::Read;

use toolpost_model::{InputRefusal, ToolFailure};

use super::{
    SearchPageRange,
    grep::{
        Around, Expression, ExpressionError, ExpressionOptions, GrepLine, MatchLineQuery,
        collect_from, compile,
    },
    watch::SearchStopSignal,
};
use crate::native::files::worker::StopSign;

/// What to look for in a text, and what to show of it.
pub(in crate::native) struct TextSearch<'a> {
    pub(in crate::native) pattern: &'a str,
    pub(in crate::native) literal: bool,
    pub(in crate::native) case_insensitive: bool,
    /// Lines on both sides of a match.
    pub(in crate::native) around: usize,
    /// Matching lines to pass over.
    pub(in crate::native) offset: usize,
    /// Matching lines to show.
    pub(in crate::native) limit: usize,
}

impl TextSearch<'_> {
    /// Whether it can be searched for.
    pub(in crate::native) fn check(&self) -> Result<(), InputRefusal> {
        self.expression()
            .map(|_| ())
            .map_err(ExpressionError::into_refusal)
    }

    fn expression(&self) -> Result<Expression, ExpressionError> {
        let literal = self.literal;
        let case_insensitive = self.case_insensitive;
        compile(
            self.pattern,
            ExpressionOptions {
                literal,
                case_insensitive,
                multiline: false,
            },
        )
    }
}

/// What a text has of it.
pub(in crate::native) struct FoundLines {
    pub(in crate::native) lines: Vec<GrepLine>,
    /// Those of the lines that match.
    pub(in crate::native) matches: usize,
    /// No more was looked for: the page is full.
    pub(in crate::native) is_full: bool,
    pub(in crate::native) is_late: bool,
    pub(in crate::native) is_binary: bool,
    pub(in crate::native) long_lines: u64,
}

/// Searches a text to its end, or until the page is full.
pub(in crate::native) fn search_text(
    wanted: &TextSearch<'_>,
    text: impl Read,
    stop: &StopSign,
) -> Result<FoundLines, ToolFailure> {
    let expression = wanted
        .expression()
        .map_err(|error| ToolFailure::invalid(error.to_string()))?;
    let around = Around {
        before: wanted.around,
        after: wanted.around,
    };
    let page = SearchPageRange {
        offset: wanted.offset,
        limit: wanted.limit,
    };
    let watch = SearchStopSignal::new(stop);
    let collected = collect_from(
        &MatchLineQuery {
            expression: &expression,
            around,
            page,
        },
        text,
        &watch,
    );
    watch.check().map_err(|stopped| stopped.into_failure())?;
    let is_late = watch.is_late();
    if let (Some(error), false) = (collected.error, is_late) {
        return Err(ToolFailure::new(format!("the text cannot be searched: {error}")).untouched());
    }
    Ok(FoundLines {
        matches: collected.lines.iter().filter(|line| !line.context).count(),
        lines: collected.lines,
        is_full: collected.is_full,
        is_late,
        is_binary: collected.is_binary,
        long_lines: collected.long_lines,
    })
}

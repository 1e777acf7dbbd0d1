//! The engine of `grep` for text from any reader.

use std::io::Read;

use toolpost_model::{InputRefusal, ToolFailure};
use toolpost_processes::StopSign;

use super::{
    SearchPageRange,
    grep::{
        ContextLines, ExpressionError, ExpressionOptions, GrepLine, MatchLineQuery,
        SearchExpression, collect_from, compile,
    },
    watch::SearchStopSignal,
};

/// A search in a text, with the range of lines to show.
pub(crate) struct TextSearch<'a> {
    pub(crate) pattern: &'a str,
    pub(crate) literal: bool,
    pub(crate) case_insensitive: bool,
    /// Lines of context on each side.
    pub(crate) around: usize,
    /// Matching lines to skip.
    pub(crate) offset: usize,
    /// Matching lines to show.
    pub(crate) limit: usize,
}

impl TextSearch<'_> {
    /// Refuses an invalid expression.
    pub(crate) fn check(&self) -> Result<(), InputRefusal> {
        self.expression()
            .map(|_| ())
            .map_err(ExpressionError::into_refusal)
    }

    fn expression(&self) -> Result<SearchExpression, ExpressionError> {
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

/// The result of searching a text.
pub(crate) struct FoundLines {
    pub(crate) lines: Vec<GrepLine>,
    /// How many of the lines match.
    pub(crate) matches: usize,
    /// The search stopped because the page is full.
    pub(crate) is_full: bool,
    pub(crate) is_late: bool,
    pub(crate) is_binary: bool,
    pub(crate) long_lines: u64,
}

/// Searches a text to its end, or until the page is full.
pub(crate) fn search_text(
    wanted: &TextSearch<'_>,
    text: impl Read,
    stop: &StopSign,
) -> Result<FoundLines, ToolFailure> {
    let expression = wanted
        .expression()
        .map_err(|error| ToolFailure::invalid(error.to_string()))?;
    let around = ContextLines {
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

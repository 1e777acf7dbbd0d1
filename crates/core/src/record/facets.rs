//! What calls are looked for by: kept beside the records of a call's beginning and end, so that nobody has to read
//! a million bodies to find fifty of them.
//!
//! They are no part of the chain, because they say nothing that the bodies do not: [`FacetReader`] gets them back
//! from there, for records of a time before them and to check that the two agree.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

use toolpost_model::{InvocationId, Outcome};

use super::{
    body::{CallRecordHead, CallRequestHead, NamedContent, RecordedResultFields},
    journal::{Record, RecordKind},
    redaction::Redactor,
};

/// What a call is looked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facets {
    /// The tool's id, or the name that was asked for where there is no such tool.
    pub tool: String,
    /// Whose call it is.
    pub principal: String,
    /// How it ended; `None` where the record is not its end.
    pub outcome: Option<Outcome>,
    /// The caller's own mark.
    pub correlation: Option<String>,
}

/// Longer texts are cut: they come from callers, and nobody looks for them whole.
const LONGEST: usize = 200;

/// The part of a text that is looked for: up to where it is too long or is no line any more.
fn fit(text: &str) -> &str {
    let end = text
        .char_indices()
        .take(LONGEST)
        .find(|(_, c)| c.is_control())
        .map(|(at, _)| at);
    let most = || {
        text.char_indices()
            .nth(LONGEST)
            .map_or(text.len(), |(at, _)| at)
    };
    &text[..end.unwrap_or_else(most)]
}

impl Facets {
    /// Without what must not be written, and no longer than needed.
    pub(crate) fn clean(&mut self, redactor: &dyn Redactor) {
        let texts = [&mut self.tool, &mut self.principal]
            .into_iter()
            .chain(&mut self.correlation);
        for text in texts {
            if let Cow::Owned(clean) = redactor.text(text) {
                *text = clean;
            }
            let fitting = fit(text).len();
            text.truncate(fitting);
        }
    }
}

/// What the first record of a call says.
struct FirstCallRecord {
    tool_id: Option<String>,
    asked: String,
    principal: String,
    correlation: Option<String>,
}

/// What bodies say a record's facets are. What is `None` cannot be told: the call began before the oldest record.
#[derive(Debug, Default)]
pub struct BodyFacets {
    tool: Option<String>,
    /// The name that was asked for. A call that a restart ended was not looked up again and goes by this one.
    asked: Option<String>,
    principal: Option<String>,
    outcome: Option<Outcome>,
    correlation: Option<Option<String>>,
    /// The kept pieces that it names.
    pub contents: Vec<NamedContent>,
}

impl BodyFacets {
    /// Whether facets say the same, as far as can be told.
    pub fn agree_with(&self, facets: &Facets) -> bool {
        let tool = &facets.tool;
        let is_tool = self.tool.is_none()
            || [&self.tool, &self.asked]
                .into_iter()
                .flatten()
                .any(|is| is == tool);
        let is_principal = self
            .principal
            .as_ref()
            .is_none_or(|is| *is == facets.principal);
        let is_correlation = self
            .correlation
            .as_ref()
            .is_none_or(|is| *is == facets.correlation);
        is_tool && is_principal && is_correlation && self.outcome == facets.outcome
    }

    /// Whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.tool.is_some() && self.principal.is_some() && self.correlation.is_some()
    }

    /// The facets, where all of them can be told.
    pub fn into_facets(self) -> Option<Facets> {
        Some(Facets {
            tool: self.tool?,
            principal: self.principal?,
            outcome: self.outcome,
            correlation: self.correlation?,
        })
    }
}

/// Reads facets from records, which come in their order. Remembers the calls that have not ended.
#[derive(Default)]
pub struct FacetReader {
    open: HashMap<InvocationId, FirstCallRecord>,
}

impl FacetReader {
    /// What the facets of this record are, where it has some. A body that cannot be read has none.
    pub fn read(&mut self, record: &Record) -> Option<BodyFacets> {
        let id = record.invocation_id?;
        match record.kind {
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started => {
                let CallRecordHead { tool_id, call, .. } = record.read_body().ok()?;
                let Some(call) = call else {
                    self.found_tool(id, tool_id);
                    return None;
                };
                let beginning = FirstCallRecord::of(tool_id, call);
                let told = beginning.facets(None);
                self.open.insert(id, beginning);
                Some(told)
            }
            RecordKind::Ended => {
                let CallRecordHead {
                    tool_id,
                    call,
                    result,
                    ..
                } = record.read_body().ok()?;
                let contents = result
                    .as_ref()
                    .map(RecordedResultFields::contents)
                    .transpose()
                    .ok()?;
                let outcome = result.map(|result| result.outcome);
                let before = self.open.remove(&id);
                let mut told = match (call, before) {
                    (Some(call), _) => FirstCallRecord::of(tool_id, call).facets(outcome),
                    (None, Some(mut before)) => {
                        before.tool_id = tool_id.map(|id| fit(&id).to_owned()).or(before.tool_id);
                        before.facets(outcome)
                    }
                    (None, None) if outcome.is_none() => return None,
                    (None, None) => BodyFacets {
                        tool: tool_id.map(|id| fit(&id).to_owned()),
                        outcome,
                        ..BodyFacets::default()
                    },
                };
                told.contents = contents.unwrap_or_default();
                Some(told)
            }
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::SessionClosed
            | RecordKind::Decided
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Discovered
            | RecordKind::Pruned => None,
        }
    }

    /// A call may be acknowledged before its tool was looked up.
    fn found_tool(&mut self, id: InvocationId, tool_id: Option<Cow<'_, str>>) {
        if let (Entry::Occupied(mut open), Some(tool_id)) = (self.open.entry(id), tool_id) {
            open.get_mut().tool_id = Some(fit(&tool_id).to_owned());
        }
    }
}

impl FirstCallRecord {
    fn of(tool_id: Option<Cow<'_, str>>, call: CallRequestHead<'_>) -> Self {
        Self {
            tool_id: tool_id.map(|id| fit(&id).to_owned()),
            asked: fit(&call.tool).to_owned(),
            principal: fit(&call.principal).to_owned(),
            correlation: call.correlation_id.map(|id| fit(&id).to_owned()),
        }
    }

    fn facets(&self, outcome: Option<Outcome>) -> BodyFacets {
        BodyFacets {
            tool: Some(self.tool_id.as_ref().unwrap_or(&self.asked).clone()),
            asked: Some(self.asked.clone()),
            principal: Some(self.principal.clone()),
            outcome,
            correlation: Some(self.correlation.clone()),
            contents: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn a_text_ends_where_it_is_too_long_or_no_line() {
        let check = |text: &str, expected: &str| assert_eq!(fit(text), expected, "{text:?}");
        check("", "");
        check("files.read_file", "files.read_file");
        check("one\ntwo", "one");
        check("\u{0}", "");
        check(&"ü".repeat(200), &"ü".repeat(200));
        check(&"ü".repeat(201), &"ü".repeat(200));
        check(&format!("{}\n", "x".repeat(250)), &"x".repeat(200));
    }
}

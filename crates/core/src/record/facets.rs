//! Facets: the searchable properties of a call, stored beside the records of its beginning and end, so that a search
//! need not parse a million bodies to find fifty.
//!
//! They are not part of the chain, because the bodies contain the same facts: [`FacetReader`] reads them from there,
//! for records from before the facets existed and to check that both agree.

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

/// The facets of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facets {
    /// The tool's id, or the requested name if there is no such tool.
    pub tool: String,
    /// The call's principal.
    pub principal: String,
    /// The outcome; `None` if the record is not the end.
    pub outcome: Option<Outcome>,
    /// The caller's correlation id.
    pub correlation: Option<String>,
}

/// Longer texts are cut: they come from callers, and searches use short values.
const LONGEST: usize = 200;

/// The searchable part of a text: up to the length limit or the end of the line.
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
    /// Redacts the texts and cuts them to the limit.
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

struct FirstCallRecord {
    tool_id: Option<String>,
    asked: String,
    principal: String,
    correlation: Option<String>,
}

/// A record's facets, as far as bodies contain them. `None`: unknown, because the call began before the oldest record.
#[derive(Debug, Default)]
pub struct BodyFacets {
    tool: Option<String>,
    /// The requested name. A call that ended with a restart never had its tool resolved again, and keeps this name.
    asked: Option<String>,
    principal: Option<String>,
    outcome: Option<Outcome>,
    correlation: Option<Option<String>>,
    /// The blobs that it names.
    pub contents: Vec<NamedContent>,
}

impl BodyFacets {
    /// Whether facets agree with these, as far as these are known.
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

    /// Whether all facets are known.
    pub fn is_whole(&self) -> bool {
        self.tool.is_some() && self.principal.is_some() && self.correlation.is_some()
    }

    /// The facets, if all of them are known.
    pub fn into_facets(self) -> Option<Facets> {
        Some(Facets {
            tool: self.tool?,
            principal: self.principal?,
            outcome: self.outcome,
            correlation: self.correlation?,
        })
    }
}

/// Reads facets from records in their order. Keeps the calls that have not ended.
#[derive(Default)]
pub struct FacetReader {
    open: HashMap<InvocationId, FirstCallRecord>,
}

impl FacetReader {
    /// The facets of this record, if it has any. An unreadable body has none.
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

    /// Notes the tool of a call. A call may be acknowledged before its tool is resolved.
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

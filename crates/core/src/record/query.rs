//! A query for recorded calls.

use jiff::Timestamp;
use toolpost_model::{Outcome, SessionId};

use super::{
    facets::{BodyFacets, FacetReader, Facets},
    journal::StoredRecord,
};

/// The conditions on a call. `None` is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The tool.
    pub tool: Option<ToolQueryPattern>,
    /// The call's principal.
    pub principal: Option<String>,
    /// The outcome.
    pub outcome: Option<Outcome>,
    /// The caller's correlation id.
    pub correlation: Option<String>,
    /// The session.
    pub session: Option<SessionId>,
    /// The earliest time, inclusive.
    pub since: Option<Timestamp>,
    /// The latest time, exclusive.
    pub until: Option<Timestamp>,
    /// Only records with lower numbers: for the next page, the last one of this page.
    pub before: Option<u64>,
    /// The limit of results.
    pub limit: usize,
}

impl Query {
    /// The newest calls, without conditions.
    pub fn newest(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Whether a record with these facets matches.
    pub fn takes(&self, stored: &StoredRecord, facets: &Facets) -> bool {
        let StoredRecord { seq, record, .. } = stored;
        self.before.is_none_or(|before| *seq < before)
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
            && self
                .session
                .as_ref()
                .is_none_or(|wanted| record.session_id.as_ref() == Some(wanted))
            && self
                .principal
                .as_ref()
                .is_none_or(|wanted| *wanted == facets.principal)
            && self
                .outcome
                .is_none_or(|wanted| facets.outcome == Some(wanted))
            && (self.correlation.is_none() || self.correlation == facets.correlation)
            && self
                .tool
                .as_ref()
                .is_none_or(|pattern| pattern.fits(&facets.tool))
    }
}

impl Query {
    /// Whether a call matches, by its records in their order. `limit` and `before` are ignored.
    pub fn fits(&self, records: &[StoredRecord]) -> bool {
        let mut reader = FacetReader::default();
        let told = records
            .iter()
            .filter_map(|row| reader.read(&row.record))
            .last();
        let (Some(facets), Some(last)) = (told.and_then(BodyFacets::into_facets), records.last())
        else {
            return false;
        };
        Self {
            before: None,
            ..self.clone()
        }
        .takes(last, &facets)
    }
}

/// Tools by id (`files.write_file`), by name (`write_file`) or by a pattern in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolQueryPattern(String);

impl ToolQueryPattern {
    /// Takes any text; a pattern without a tool finds no call.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern matches this tool: its id, or the name at the id's end.
    pub fn fits(&self, tool: &str) -> bool {
        let name = tool.rsplit_once('.').map(|(_, name)| name);
        matches(&self.0, tool)
            || name.is_some_and(|name| !self.0.contains('.') && matches(&self.0, name))
    }
}

/// Every `*` takes as little as possible; a later one takes more if the match fails.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::ToolQueryPattern;

    #[test]
    fn tools_are_found_by_id_by_name_and_by_pattern() {
        let check = |pattern: &str, tool: &str, expected: bool| {
            assert_eq!(
                ToolQueryPattern::new(pattern).fits(tool),
                expected,
                "{pattern} of {tool}"
            );
        };
        check("files.write_file", "files.write_file", true);
        check("write_file", "files.write_file", true);
        check("files", "files.write_file", false);
        check("file", "files.write_file", false);
        check("*", "anything", true);
        check("files.*", "files.write_file", true);
        check("*_file", "files.write_file", true);
        check("f*.w*_*e", "files.write_file", true);
        check("mcp.github.*", "mcp.gitlab.push", false);
        check("a*a", "a", false);
        check("a*a", "aa", true);
        check("", "a", false);
        check("push", "mcp.github.push", true);
        check("github.push", "mcp.github.push", false);
    }
}

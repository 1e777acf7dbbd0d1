//! What to look for among the calls on record.

use jiff::Timestamp;
use toolpost_model::{Outcome, SessionId};

use super::{
    facets::{BodyFacets, FacetReader, Facets},
    journal::StoredRecord,
};

/// Which calls are wanted. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The tool.
    pub tool: Option<ToolQueryPattern>,
    /// Whose call it is.
    pub principal: Option<String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The caller's own mark.
    pub correlation: Option<String>,
    /// The session.
    pub session: Option<SessionId>,
    /// Not before this moment.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Only records with lower numbers: the last one of the page before.
    pub before: Option<u64>,
    /// The most that is wanted.
    pub limit: usize,
}

impl Query {
    /// The newest calls, whatever they are.
    pub fn newest(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Whether a record with these facets is one of them.
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
    /// Whether a call is one of them, as far as its records tell, which come in their order. `limit` and `before` do
    /// not matter.
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
    /// Takes any text: what fits no tool finds no call.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it speaks of this tool: of its id, or of the name at the id's end.
    pub fn fits(&self, tool: &str) -> bool {
        let name = tool.rsplit_once('.').map(|(_, name)| name);
        matches(&self.0, tool)
            || name.is_some_and(|name| !self.0.contains('.') && matches(&self.0, name))
    }
}

/// Every `*` takes as little as it can, and a later one takes more where that does not do.
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

//! The recorded catalog and surfaces.
//!
//! `catalog/declared.rs` writes them, replay and the exports read them. A call's records name a surface, a surface
//! names a catalog, and so the record of a call can be read without the host that ran it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolpost_model::{
    ContentDigest, Declaration, EffectOrigin, SandboxProfile, SourceProblem, SurfaceId,
    SurfaceRequest, ToolId, Visibility,
};

use crate::{
    catalog::CatalogEntry,
    execution::credentials::CredentialGrants,
    invocation::micros,
    record::{
        body::{CatalogBody, CatalogOnRecord},
        redaction::Redactor,
        rendering::written,
    },
};

/// A tool in the catalog, with the operator's settings applied.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredTool {
    /// Its name on the wire.
    pub name: String,
    /// Its source.
    pub source: String,
    /// The origin of the effects of its calls.
    pub vouched_by: EffectOrigin,
    /// The operator's settings that the declaration does not show.
    #[serde(default, skip_serializing_if = "ToolTerms::is_empty")]
    pub settings: ToolTerms,
    /// The declaration.
    pub declaration: Declaration,
}

/// The operator's settings for a tool that its declaration does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolTerms {
    /// Its deadline, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest deadline that a caller may ask for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling_ms: Option<u64>,
    /// The largest arguments of one call, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_bytes: Option<usize>,
    /// The limit of its concurrent calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// The limit of concurrent calls of its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_concurrency: Option<usize>,
    /// Whether its calls run alone in their session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// The confinement of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxProfile>,
    /// Arguments kept out of every record, as JSON pointers, beside the schema's own marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Arguments with a default of the operator. The values are not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filled_in: Vec<String>,
    /// Credentials that calls may refer to. The tool gets their values in place of the references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
}

impl ToolTerms {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn of(entry: &CatalogEntry, credentials: &CredentialGrants) -> Self {
        let set = &entry.settings;
        let millis = |time: std::time::Duration| micros(time) / 1_000;
        Self {
            timeout_ms: set.execution.timeout.map(millis),
            ceiling_ms: set.execution.ceiling.map(millis),
            argument_bytes: set.input.argument_bytes,
            concurrency: set.execution.concurrency,
            source_concurrency: entry.source_concurrency,
            exclusive: set.execution.exclusive,
            sandbox: set.execution.sandbox,
            sensitive: set.input.sensitive.clone(),
            filled_in: set.input.defaults.keys().cloned().collect(),
            credentials: credentials.names_for(entry.declaration()),
        }
    }
}

/// The usual size of a tool in a record.
const TOOL_ROOM: usize = 2_048;

/// A tool for a record: JSON, redacted.
pub(crate) fn tool_text(
    entry: &CatalogEntry,
    credentials: &CredentialGrants,
    redactor: &dyn Redactor,
) -> String {
    let tool = DeclaredTool {
        name: entry.name().to_owned(),
        source: entry.source_name.to_string(),
        vouched_by: entry.origin,
        settings: ToolTerms::of(entry, credentials),
        declaration: entry.declaration().clone(),
    };
    let text = written(&tool, TOOL_ROOM);
    match redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(clean) => clean,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CatalogDigest {
    pub(crate) whole: ContentDigest,
    /// The digest of each tool's text, in the catalog's order.
    pub(crate) tools: Box<[[u8; 32]]>,
}

impl CatalogDigest {
    /// Computed from ids and texts in the catalog's order. No two tools share an id.
    pub(crate) fn of<'a>(
        tools: impl Iterator<Item = (&'a ToolId, String)>,
        unavailable: &[SourceProblem],
    ) -> Self {
        let mut known: Vec<(&ToolId, [u8; 32])> = tools
            .map(|(id, text)| (id, Sha256::digest(text.as_bytes()).into()))
            .collect();
        let tools = known.iter().map(|(_, digest)| *digest).collect();
        known.sort_unstable_by_key(|(id, _)| *id);
        let mut hasher = Sha256::new();
        for (id, digest) in known {
            hasher.update(id.as_str());
            hasher.update([0]);
            hasher.update(digest);
        }
        if !unavailable.is_empty() {
            hasher.update(written(&unavailable, 256 * unavailable.len()));
        }
        Self {
            whole: ContentDigest(hasher.finalize().into()),
            tools,
        }
    }
}

/// The size at which a part ends, so that a row stays easy to read and to move.
const PIECE_BYTES: usize = 1 << 20;

pub(crate) fn catalog_bodies(
    digest: ContentDigest,
    whole: bool,
    tools: impl Iterator<Item = String>,
    removed: &[ToolId],
    unavailable: &[SourceProblem],
) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for text in tools {
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() => *piece = text,
            Some(piece) if piece.len() + text.len() < PIECE_BYTES => {
                piece.push(',');
                piece.push_str(&text);
            }
            Some(_) | None => pieces.push(text),
        }
    }
    let parts = pieces.len();
    let mut bodies = Vec::with_capacity(parts);
    for (place, piece) in pieces.into_iter().enumerate() {
        let is_last = place + 1 == parts;
        let size = piece.len() + 256;
        // Each text was serialised before, so this cannot fail.
        let declared = RawValue::from_string(format!("[{piece}]")).unwrap_or_default();
        let body = CatalogBody {
            digest,
            whole,
            part: place as u32 + 1,
            parts: parts as u32,
            declared,
            removed: if is_last {
                removed.to_vec()
            } else {
                Vec::new()
            },
            unavailable: if is_last {
                unavailable.to_vec()
            } else {
                Vec::new()
            },
            restated: None,
        };
        bodies.push(written(&body, size));
    }
    bodies
}

/// A surface's id: equal content gives an equal id, also in later hosts.
pub(crate) fn surface_id(
    catalog: ContentDigest,
    request: &SurfaceRequest,
    visibility: &[Visibility],
) -> SurfaceId {
    let mut hasher = Sha256::new();
    hasher.update(catalog.0);
    hasher.update(request.role.as_str());
    hasher.update([0]);
    hasher.update(written(request, 128));
    for one in visibility {
        hasher.update(match one {
            Visibility::Loaded => "loaded",
            Visibility::Deferred => "deferred",
            Visibility::Unlisted => "unlisted",
            Visibility::Blocked(reason) => reason.as_str(),
        });
        hasher.update([0]);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    SurfaceId::new(format!("surface-{}", &ContentDigest(digest).to_hex()[..24]))
}

/// Follows the catalog records of a journal, one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatalogFollower {
    /// The last complete catalog.
    pub(crate) known: Option<CatalogOnRecord>,
    from: u64,
    next_part: u32,
}

impl CatalogFollower {
    pub(crate) fn starting_with(known: Option<CatalogOnRecord>) -> Self {
        Self {
            known,
            from: known.map_or(0, |known| known.from),
            next_part: 1,
        }
    }

    /// Follows one catalog record. A host may have died between two parts; an incomplete catalog is ignored.
    pub(crate) fn follow(&mut self, seq: u64, head: &CatalogBody<IgnoredAny>) {
        if head.part == 1 {
            self.next_part = 1;
            if head.whole {
                (self.from, self.known) = (seq, None);
            }
        }
        if head.part != self.next_part || self.from == 0 {
            self.next_part = 0;
            return;
        }
        self.next_part += 1;
        if head.part == head.parts {
            self.known = Some(CatalogOnRecord {
                digest: head.digest,
                from: self.from,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use toolpost_model::ContentDigest;

    use super::{CatalogBody, CatalogFollower, IgnoredAny, catalog_bodies};

    fn bodies(mark: u8, whole: bool, tools: usize) -> Vec<String> {
        let tool = |place| format!("{{\"place\":{place},\"text\":\"{}\"}}", "x".repeat(600_000));
        catalog_bodies(
            ContentDigest([mark; 32]),
            whole,
            (0..tools).map(tool),
            &[],
            &[],
        )
    }

    fn head(body: &str) -> CatalogBody<IgnoredAny> {
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn a_catalog_counts_once_its_last_piece_is_there() {
        let whole = bodies(1, true, 3);
        assert_eq!(whole.len(), 3, "pieces of a megabyte");
        for body in &whole {
            assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
        }
        let mut following = CatalogFollower::default();
        for (seq, body) in (7..).zip(&whole[..2]) {
            following.follow(seq, &head(body));
        }
        assert_eq!(following.known, None, "a host died here");
        for (seq, body) in (20..).zip(&whole) {
            following.follow(seq, &head(body));
        }
        let known = following.known.unwrap();
        assert_eq!((known.digest, known.from), (ContentDigest([1; 32]), 20));

        let change = bodies(2, false, 2);
        following.follow(30, &head(&change[0]));
        assert_eq!(
            following.known.unwrap().digest,
            ContentDigest([1; 32]),
            "half a change is none"
        );
        following.follow(31, &head(&change[1]));
        let known = following.known.unwrap();
        assert_eq!((known.digest, known.from), (ContentDigest([2; 32]), 20));
    }

    #[test]
    fn a_change_without_a_whole_catalog_before_it_tells_nothing() {
        let mut following = CatalogFollower::default();
        following.follow(5, &head(&bodies(2, false, 1)[0]));
        assert_eq!(following.known, None);
    }
}

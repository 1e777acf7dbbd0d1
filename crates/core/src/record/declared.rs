//! What the record says can be called and who sees it: the bodies of catalog and surface records.
//!
//! `host/declared.rs` writes them, replay and the exports read them. A call's records name a surface, a surface names
//! a catalog, and so the record of a call can be read without the host that ran it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolpost_model::{
    ContentDigest, Declaration, EffectOrigin, HiddenReason, PrincipalRole, SandboxProfile,
    SourceProblem, SurfaceId, SurfaceRequest, ToolId, Visibility,
};

use crate::{
    catalog::{CatalogEntry, Surface},
    execution::credentials::Credentials,
    invocation::micros,
    record::{redaction::Redactor, rendering::written},
};

/// Body of a catalog record. A whole catalog takes the place of everything before it, in as many pieces as it needs;
/// a change adds, replaces and removes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CatalogBody {
    /// Of all tools there are once the last piece is read: SHA-256 over each tool's id, a zero byte and the SHA-256 of
    /// its text in `declared`, in the order of the ids; then, where something is unavailable, over the JSON of that list.
    pub digest: ContentDigest,
    /// Nothing that was declared before counts.
    pub whole: bool,
    /// Which piece, from 1.
    pub part: u32,
    /// Of how many.
    pub parts: u32,
    /// Tools that are new, or no longer what they were.
    pub declared: Vec<DeclaredTool>,
    /// Tools that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ToolId>,
    /// In the last piece: sources, and parts of sources, that should be there and are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<SourceProblem>,
}

/// A tool as it stood in the catalog, the operator's settings applied.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredTool {
    /// Its name on the wire.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// Who vouches for the effects of its calls.
    pub vouched_by: EffectOrigin,
    /// What the operator set for it beside what the declaration shows.
    #[serde(default, skip_serializing_if = "ToolTerms::is_empty")]
    pub settings: ToolTerms,
    /// What it is and how it behaves.
    pub declaration: Declaration,
}

/// The operator's settings for a tool that its declaration does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolTerms {
    /// Its deadline, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest deadline a caller may wish for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling_ms: Option<u64>,
    /// The largest arguments of one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_bytes: Option<usize>,
    /// Calls of it that run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Calls of its source that run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_concurrency: Option<usize>,
    /// Whether its calls run alone in their session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// What confines its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxProfile>,
    /// Arguments kept out of every record, as JSON pointers, beside those the schema marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Arguments that are filled in where a call leaves them out. Their values are not told.
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

    fn of(entry: &CatalogEntry, credentials: &Credentials) -> Self {
        let set = &entry.settings;
        let millis = |time: std::time::Duration| micros(time) / 1_000;
        Self {
            timeout_ms: set.timeout.map(millis),
            ceiling_ms: set.ceiling.map(millis),
            argument_bytes: set.argument_bytes,
            concurrency: set.concurrency,
            source_concurrency: entry.source_concurrency,
            exclusive: set.exclusive,
            sandbox: set.sandbox,
            sensitive: set.sensitive.clone(),
            filled_in: set.defaults.keys().cloned().collect(),
            credentials: credentials.names_for(entry.declaration()),
        }
    }
}

/// The same as [`DeclaredTool`], borrowed.
#[derive(Serialize)]
struct ToolText<'a> {
    name: &'a str,
    source: &'a str,
    vouched_by: EffectOrigin,
    #[serde(skip_serializing_if = "ToolTerms::is_empty")]
    settings: ToolTerms,
    declaration: &'a Declaration,
}

/// What a tool takes in a record, as a rule.
const TOOL_ROOM: usize = 2_048;

/// A tool as its record has it: JSON, without what must not be written.
pub(crate) fn tool_text(
    entry: &CatalogEntry,
    credentials: &Credentials,
    redactor: &dyn Redactor,
) -> String {
    let name = entry.name();
    let source = &*entry.source_name;
    let declaration = entry.declaration();
    let vouched_by = entry.origin;
    let settings = ToolTerms::of(entry, credentials);
    let text = written(
        &ToolText {
            name,
            source,
            vouched_by,
            settings,
            declaration,
        },
        TOOL_ROOM,
    );
    match redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(clean) => clean,
    }
}

/// What a catalog is known by.
#[derive(Clone, Debug)]
pub(crate) struct CatalogDigest {
    pub(crate) whole: ContentDigest,
    /// Of each tool's text, in the catalog's order.
    pub(crate) tools: Box<[[u8; 32]]>,
}

impl CatalogDigest {
    /// From ids and texts in the catalog's order. No two tools have one id.
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

/// A piece ends once it has this many bytes: a row stays easy to read and to move.
const PIECE_BYTES: usize = 1 << 20;

/// The bodies that tell of new tools and removed ones.
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
        let part = place + 1;
        let mut body = format!(
            "{{\"digest\":\"{digest}\",\"whole\":{whole},\"part\":{part},\"parts\":{parts},\"declared\":[{piece}]"
        );
        if part == parts && !removed.is_empty() {
            body.push_str(",\"removed\":");
            body.push_str(&written(&removed, 64 * removed.len()));
        }
        if part == parts && !unavailable.is_empty() {
            body.push_str(",\"unavailable\":");
            body.push_str(&written(&unavailable, 256 * unavailable.len()));
        }
        body.push('}');
        bodies.push(body);
    }
    bodies
}

/// Body of a surface record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SurfaceBody {
    /// What calls name it by: made of everything below.
    pub surface_id: SurfaceId,
    /// What it was built for.
    pub request: SurfaceRequest,
    /// For whom.
    pub role: PrincipalRole,
    /// The catalog it looks at.
    pub catalog: ContentDigest,
    /// Tools that are listed.
    pub loaded: Vec<ToolId>,
    /// Tools that wait to be discovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<ToolId>,
    /// Tools that are in no list and called by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<ToolId>,
    /// Tools that are not there for such a caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedTool>,
}

/// A tool that a surface does not show.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTool {
    /// Which.
    pub tool_id: ToolId,
    /// Why.
    pub reason: HiddenReason,
}

impl SurfaceBody {
    pub(crate) fn of(surface: &Surface) -> Self {
        let mut body = Self {
            surface_id: surface.id().clone(),
            request: surface.request().clone(),
            role: surface.request().role,
            catalog: surface.catalog().digest().whole,
            loaded: Vec::new(),
            deferred: Vec::new(),
            unlisted: Vec::new(),
            blocked: Vec::new(),
        };
        for (entry, visibility) in surface.all() {
            let tool_id = entry.id().clone();
            match visibility {
                Visibility::Loaded => body.loaded.push(tool_id),
                Visibility::Deferred => body.deferred.push(tool_id),
                Visibility::Unlisted => body.unlisted.push(tool_id),
                Visibility::Blocked(reason) => body.blocked.push(BlockedTool { tool_id, reason }),
            }
        }
        body
    }
}

/// A surface's id: equal content has an equal id, in every life of a host.
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

/// What the newest catalog records of a journal say: followed record by record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Following {
    /// The last catalog that was told to its end.
    pub(crate) known: Option<CatalogOnRecord>,
    from: u64,
    next_part: u32,
}

/// Where the record tells what can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CatalogOnRecord {
    pub(crate) digest: ContentDigest,
    /// The first record of the whole catalog that it begins with.
    pub(crate) from: u64,
}

/// A catalog record without its tools.
#[derive(Deserialize)]
struct CatalogHead {
    digest: ContentDigest,
    whole: bool,
    part: u32,
    parts: u32,
}

impl Following {
    pub(crate) fn starting_with(known: Option<CatalogOnRecord>) -> Self {
        Self {
            known,
            from: known.map_or(0, |known| known.from),
            next_part: 1,
        }
    }

    /// Takes in one catalog record. A host may have died between two pieces; what it began then counts for nothing.
    pub(crate) fn follow(&mut self, seq: u64, body: &str) {
        let Ok(head) = serde_json::from_str::<CatalogHead>(body) else {
            return;
        };
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

    use super::{Following, catalog_bodies};

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

    #[test]
    fn a_catalog_counts_once_its_last_piece_is_there() {
        let whole = bodies(1, true, 3);
        assert_eq!(whole.len(), 3, "pieces of a megabyte");
        for body in &whole {
            assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
        }
        let mut following = Following::default();
        for (seq, body) in (7..).zip(&whole[..2]) {
            following.follow(seq, body);
        }
        assert_eq!(following.known, None, "a host died here");
        for (seq, body) in (20..).zip(&whole) {
            following.follow(seq, body);
        }
        let known = following.known.unwrap();
        assert_eq!((known.digest, known.from), (ContentDigest([1; 32]), 20));

        let change = bodies(2, false, 2);
        following.follow(30, &change[0]);
        assert_eq!(
            following.known.unwrap().digest,
            ContentDigest([1; 32]),
            "half a change is none"
        );
        following.follow(31, &change[1]);
        let known = following.known.unwrap();
        assert_eq!((known.digest, known.from), (ContentDigest([2; 32]), 20));
    }

    #[test]
    fn a_change_without_a_whole_catalog_before_it_tells_nothing() {
        let mut following = Following::default();
        following.follow(5, &bodies(2, false, 1)[0]);
        assert_eq!(following.known, None);
    }
}

//! The bodies of `catalog` and `surface`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolpost_model::{
    ContentDigest, HiddenReason, PrincipalRole, SourceProblem, SurfaceId, SurfaceRequest, ToolId,
    Visibility,
};

use crate::{catalog::Surface, record::declared::DeclaredTool};

/// Body of `catalog`.
// A whole catalog replaces all earlier records, in as many parts as it needs; a change adds, replaces and removes
// tools. `D` is the list of tools: `IgnoredAny` for readers that skip it. If something is unavailable, the digest
// covers the JSON of that list, too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Catalog")]
pub struct CatalogBody<D = Vec<DeclaredTool>> {
    /// Of all tools once the last piece is read: SHA-256 over each tool's id, a zero byte and the SHA-256 of its text in
    /// `declared`, in the order of the ids.
    pub digest: ContentDigest,
    /// It replaces all earlier declarations.
    pub whole: bool,
    /// The number of this part, from 1.
    pub part: u32,
    /// The number of parts.
    pub parts: u32,
    /// New and changed tools.
    pub declared: D,
    /// Removed tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ToolId>>")]
    pub removed: Vec<ToolId>,
    /// In the last part: missing sources, and missing parts of sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub unavailable: Vec<SourceProblem>,
    /// It repeats an earlier record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restated: Option<CatalogRestatement>,
}

/// Body of `surface`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Surface")]
pub struct SurfaceRecordBody {
    /// The id by which calls refer to it.
    // A hash of everything below.
    #[schemars(with = "String")]
    pub surface_id: SurfaceId,
    /// The request that it was built for.
    pub request: SurfaceRequest,
    /// The role of its callers.
    pub role: PrincipalRole,
    /// The catalog that it shows.
    pub catalog: ContentDigest,
    /// Tools that are listed.
    pub loaded: Vec<ToolId>,
    /// Deferred tools, which a session has to discover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ToolId>>")]
    pub deferred: Vec<ToolId>,
    /// Tools that are in no list and are called by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub unlisted: Vec<ToolId>,
    /// Tools that these callers cannot see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<BlockedTool>>")]
    pub blocked: Vec<BlockedTool>,
    /// It repeats an earlier record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restated: Option<CatalogRestatement>,
}

/// A tool that a surface does not show.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTool {
    /// The tool.
    pub tool_id: ToolId,
    /// The reason.
    pub reason: HiddenReason,
}

impl SurfaceRecordBody {
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
            restated: None,
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

/// A catalog or a surface that is recorded again, so that it outlives the removal of older records.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Restated")]
pub struct CatalogRestatement {
    /// The original record.
    pub seq: u64,
    /// The time of the original record.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// The place of a catalog in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CatalogPlace")]
pub struct CatalogOnRecord {
    /// The digest of the catalog.
    pub digest: ContentDigest,
    /// The first record of the whole catalog.
    pub from: u64,
}

/// The members of a [`CatalogBody`] or a [`SurfaceRecordBody`] that identify related records: without the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RestatableHead {
    /// Of a catalog: its digest.
    pub digest: String,
    /// Of a catalog: it replaces all earlier declarations.
    pub whole: bool,
    /// Of a catalog: the number of this part, from 1.
    pub part: u32,
    /// Of a catalog: the number of parts.
    pub parts: u32,
    /// Of a surface: its id.
    pub surface_id: String,
    /// Of a surface: its catalog.
    pub catalog: String,
    /// It repeats an earlier record.
    pub restated: Option<CatalogRestatement>,
}

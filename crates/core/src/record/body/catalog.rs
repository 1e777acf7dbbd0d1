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
// A whole catalog takes the place of everything before it, in as many pieces as it needs; a change adds, replaces and
// removes. `D` is the list of tools: `IgnoredAny` for readers that skip it. Where something is unavailable, the digest covers
// the JSON of that list, too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Catalog")]
pub struct CatalogBody<D = Vec<DeclaredTool>> {
    /// Of all tools once the last piece is read: SHA-256 over each tool's id, a zero byte and the SHA-256 of its text in
    /// `declared`, in the order of the ids.
    pub digest: ContentDigest,
    /// Nothing that was declared before counts.
    pub whole: bool,
    /// Which piece, from 1.
    pub part: u32,
    /// Of how many.
    pub parts: u32,
    /// Tools that are new, or no longer what they were.
    pub declared: D,
    /// Tools that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ToolId>>")]
    pub removed: Vec<ToolId>,
    /// In the last piece: sources, and parts of sources, that should be there and are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub unavailable: Vec<SourceProblem>,
    /// It is told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restated: Option<CatalogRestatement>,
}

/// Body of `surface`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Surface")]
pub struct SurfaceRecordBody {
    /// What calls name it by.
    // It is made of everything below.
    #[schemars(with = "String")]
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
    #[schemars(with = "Option<Vec<ToolId>>")]
    pub deferred: Vec<ToolId>,
    /// Tools that are in no list and called by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub unlisted: Vec<ToolId>,
    /// Tools that are not there for such a caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<BlockedTool>>")]
    pub blocked: Vec<BlockedTool>,
    /// It is told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restated: Option<CatalogRestatement>,
}

/// A tool that a surface does not show.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTool {
    /// Which.
    pub tool_id: ToolId,
    /// Why.
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

/// A catalog or a surface that is told again, so that it outlives the records around it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Restated")]
pub struct CatalogRestatement {
    /// The record that told it first.
    pub seq: u64,
    /// When that was.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// Where a catalog is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CatalogPlace")]
pub struct CatalogOnRecord {
    /// What it is known by.
    pub digest: ContentDigest,
    /// The record its whole begins with.
    pub from: u64,
}

/// The members of a [`CatalogBody`] or a [`SurfaceRecordBody`] that tell which records belong together: without the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RestatableHead {
    /// Of a catalog: what it is known by.
    pub digest: String,
    /// Of a catalog: nothing that was declared before counts.
    pub whole: bool,
    /// Of a catalog: which piece, from 1.
    pub part: u32,
    /// Of a catalog: of how many.
    pub parts: u32,
    /// Of a surface: what calls name it by.
    pub surface_id: String,
    /// Of a surface: the catalog it looks at.
    pub catalog: String,
    /// It is told again.
    pub restated: Option<CatalogRestatement>,
}

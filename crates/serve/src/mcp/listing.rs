//! `tools/list`: the tools of a surface, serialized once and sent many times.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use toolpost_core::{Surface, SurfaceEntry};
use toolpost_model::{SurfaceId, Visibility};

use super::{
    deferral,
    exchange::ExchangeResult,
    fault::McpFault,
    peer::McpPeer,
    wire::{self, McpReply},
};
use crate::http::formats::{FormattedTool, ToolListFormat};

/// The tools of one page. Most hosts have fewer, so clients without paging see all of them.
const PAGE: usize = 1_000;
/// The most surfaces with a cached list. Lists of further surfaces are serialized for each request.
const KEPT: usize = 32;
/// The time to live of a list. A list can change whenever a source or the configuration changes, and listeners are
/// notified at once.
pub(super) const FRESH_FOR_MS: u64 = 30_000;

#[derive(Default)]
pub(super) struct ToolListCache(Mutex<HashMap<SurfaceId, Arc<ToolListPages>>>);

pub(super) struct ToolListPages {
    /// The tools of each page, separated by commas and without brackets.
    pages: Vec<Bytes>,
    /// The two tools for deferred tools, if there are any.
    pub(super) deferral: Option<deferral::DeferralToolNames>,
}

impl ToolListCache {
    pub(super) fn of(&self, surface: &Surface) -> Arc<ToolListPages> {
        let mut kept = self.0.lock();
        if let Some(written) = kept.get(surface.id()) {
            return Arc::clone(written);
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        let written = Arc::new(ToolListPages::of(surface));
        kept.insert(surface.id().clone(), Arc::clone(&written));
        written
    }
}

impl ToolListPages {
    fn of(surface: &Surface) -> Self {
        let deferral = surface
            .all()
            .any(|(_, visibility)| visibility == Visibility::Deferred)
            .then(|| deferral::DeferralToolNames::free_on(surface));
        let listed = surface
            .all()
            .filter(|(_, visibility)| *visibility == Visibility::Loaded);
        let mut listed: Vec<SurfaceEntry> = listed
            .map(|(entry, visibility)| SurfaceEntry {
                entry: Arc::clone(entry),
                visibility,
            })
            .collect();
        // A stable order keeps the text equal, so that providers' prompt caches match.
        listed.sort_unstable_by(|one, other| one.entry.name().cmp(other.entry.name()));
        let mut tools: Vec<String> = deferral
            .iter()
            .flat_map(deferral::DeferralToolNames::definitions)
            .collect();
        tools.extend(listed.iter().map(definition));
        let pages = tools
            .chunks(PAGE)
            .map(|page| Bytes::from(page.join(",")))
            .collect();
        Self { pages, deferral }
    }
}

pub(super) fn definition(tool: &SurfaceEntry) -> String {
    wire::json(&FormattedTool(ToolListFormat::Mcp, tool))
}

/// The answer to `tools/list`.
pub(super) fn list(peer: &McpPeer, cursor: Option<&str>) -> ExchangeResult {
    let surface = peer.face.host.surface(&peer.session);
    let written = peer.face.lists.of(&surface);
    let page = match cursor {
        None => 0,
        Some(cursor) => {
            let stale =
                || McpFault::invalid_params("the cursor does not belong to the current list");
            let (id, page) = cursor.split_once(':').ok_or_else(stale)?;
            let page: usize = page.parse().map_err(|_| stale())?;
            if id != surface.id().as_str() || page >= written.pages.len() {
                return Err(stale());
            }
            page
        }
    };
    let mut after = String::new();
    let shared = written.pages.get(page).cloned().unwrap_or_default();
    let is_last = page + 1 >= written.pages.len();
    if is_last {
        for (place, tool) in joined(peer, &surface).iter().enumerate() {
            if !shared.is_empty() || place > 0 {
                after.push(',');
            }
            after.push_str(&definition(tool));
        }
    }
    after.push(']');
    if !is_last {
        after.push_str(&format!(
            r#","nextCursor":"{}:{}""#,
            surface.id().as_str(),
            page + 1
        ));
    }
    if peer.is_modern() {
        after.push(',');
        after.push_str(&super::fields(Some(FRESH_FOR_MS)));
    }
    after.push('}');
    Ok(McpReply::Pieces {
        before: r#"{"tools":["#.to_owned(),
        shared,
        after,
    })
}

/// The deferred tools that this session has discovered. In the stateless era all callers of a surface get the same
/// list.
fn joined(peer: &McpPeer, surface: &Surface) -> Vec<SurfaceEntry> {
    let Some(stay) = &peer.stay else {
        return Vec::new();
    };
    let find = |name: &String| {
        let (entry, visibility) = surface.find(name)?;
        (visibility == Visibility::Deferred).then(|| SurfaceEntry {
            entry: Arc::clone(entry),
            visibility,
        })
    };
    stay.list(surface.id()).iter().filter_map(find).collect()
}

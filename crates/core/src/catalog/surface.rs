//! Layer 3: the tools that a caller sees, and the reasons for the hidden ones.
//!
//! A surface is one or two bytes per tool over a shared catalog: ten thousand tools and a thousand sessions never copy
//! a list.

use std::sync::Arc;

use tokio::sync::OnceCell;
use toolpost_model::{
    Declaration, HiddenReason, Lifecycle, LoadingStrategy, SurfaceId, SurfaceRequest, Visibility,
};

use super::{Catalog, CatalogEntry};
use crate::{permission::PolicyEngine, record::declared};

/// The tools visible to one kind of request at one state of the catalog.
pub struct Surface {
    id: SurfaceId,
    request: SurfaceRequest,
    catalog: Arc<Catalog>,
    visibility: Box<[Visibility]>,
    /// Set once the surface and its catalog are on record.
    pub(crate) told: OnceCell<()>,
}

/// The filter of a listing.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    /// Search words; empty lists everything.
    pub query: String,
    /// Only tools of this kind.
    pub kind: Option<String>,
    /// Only tools that have all of these tags.
    pub tags: Vec<String>,
    /// Deferred tools too.
    pub include_deferred: bool,
    /// The limit of results.
    pub limit: Option<usize>,
}

impl ToolFilter {
    fn takes(&self, declaration: &Declaration) -> bool {
        self.kind
            .as_deref()
            .is_none_or(|kind| kind == declaration.kind.as_str())
            && self.tags.iter().all(|tag| {
                declaration
                    .tags
                    .iter()
                    .any(|own| own.eq_ignore_ascii_case(tag))
            })
    }
}

/// A listed tool.
pub struct SurfaceEntry {
    /// The tool.
    pub entry: Arc<CatalogEntry>,
    /// Whether it would be listed without a search.
    pub visibility: Visibility,
}

impl Surface {
    pub(crate) fn build(
        catalog: Arc<Catalog>,
        request: &SurfaceRequest,
        policy: &dyn PolicyEngine,
    ) -> Self {
        let visibility: Box<[Visibility]> = catalog
            .entries()
            .iter()
            .map(|entry| see(entry, request, policy))
            .collect();
        let id = declared::surface_id(catalog.digest().whole, request, &visibility);
        Self {
            id,
            request: request.clone(),
            catalog,
            visibility,
            told: OnceCell::new(),
        }
    }

    /// The surface's id.
    pub fn id(&self) -> &SurfaceId {
        &self.id
    }

    /// The request that it was built for.
    pub fn request(&self) -> &SurfaceRequest {
        &self.request
    }

    /// Its catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// A tool and whether it is visible, by any of its names.
    pub fn find(&self, name: &str) -> Option<(&Arc<CatalogEntry>, Visibility)> {
        let place = self.catalog.place_of(name)?;
        Some((&self.catalog.entries()[place], self.visibility[place]))
    }

    /// Everything with its visibility: the operator's view.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<CatalogEntry>, Visibility)> {
        self.catalog
            .entries()
            .iter()
            .zip(self.visibility.iter().copied())
    }

    /// The tools that a filter selects. `preferred` are results of the sources' own searches, best first.
    pub(crate) fn list(&self, filter: &ToolFilter, preferred: &[Vec<usize>]) -> Vec<SurfaceEntry> {
        let places: Box<dyn Iterator<Item = usize>> = if filter.query.trim().is_empty() {
            Box::new(0..self.visibility.len())
        } else {
            merge(self.catalog.search(&filter.query), preferred)
        };
        let listed = places.filter_map(|place| {
            let visibility = self.visibility[place];
            let shown = match visibility {
                Visibility::Loaded => true,
                Visibility::Deferred => filter.include_deferred,
                Visibility::Unlisted | Visibility::Blocked(_) => false,
            };
            let entry = &self.catalog.entries()[place];
            (shown && filter.takes(entry.declaration())).then(|| SurfaceEntry {
                entry: Arc::clone(entry),
                visibility,
            })
        });
        listed.take(filter.limit.unwrap_or(usize::MAX)).collect()
    }
}

/// Merges ranked lists by reciprocal rank, which needs no common scale of scores.
fn merge<'a>(
    own: impl Iterator<Item = usize> + 'a,
    others: &[Vec<usize>],
) -> Box<dyn Iterator<Item = usize> + 'a> {
    if others.iter().all(Vec::is_empty) {
        return Box::new(own);
    }
    let own: Vec<usize> = own.collect();
    let mut scores: std::collections::HashMap<usize, f64> = std::collections::HashMap::new();
    for list in std::iter::once(&own).chain(others) {
        for (rank, &place) in list.iter().enumerate() {
            *scores.entry(place).or_default() += 1.0 / (60.0 + rank as f64);
        }
    }
    let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
    ranked.sort_unstable_by(|(a, left), (b, right)| right.total_cmp(left).then(a.cmp(b)));
    Box::new(ranked.into_iter().map(|(place, _)| place))
}

fn see(entry: &CatalogEntry, request: &SurfaceRequest, policy: &dyn PolicyEngine) -> Visibility {
    let declaration = entry.declaration();
    let requires = &declaration.requires;
    let blocked = match &declaration.lifecycle {
        Lifecycle::Disabled => Some(HiddenReason::Disabled),
        Lifecycle::RequiresSetup(_) => Some(HiddenReason::Setup),
        Lifecycle::Available | Lifecycle::Deprecated => None,
    };
    let missing_ability = || {
        requires
            .model_capabilities
            .iter()
            .any(|needed| !request.model_capabilities.contains(needed))
    };
    let wrong_role = || !requires.roles.is_empty() && !requires.roles.contains(&request.role);
    let active =
        |wanted: &String| request.task.as_ref() == Some(wanted) || request.skills.contains(wanted);
    let other_task = || !requires.tasks.is_empty() && !requires.tasks.iter().any(active);

    if let Some(reason) = blocked {
        Visibility::Blocked(reason)
    } else if wrong_role() {
        Visibility::Blocked(HiddenReason::Role)
    } else if policy.denies_outright(declaration, entry.fixed_class()) {
        Visibility::Blocked(HiddenReason::Policy)
    } else if missing_ability() {
        Visibility::Blocked(HiddenReason::ModelCapability)
    } else if other_task() {
        Visibility::Blocked(HiddenReason::TaskScope)
    } else {
        match declaration.loading {
            LoadingStrategy::Eager => Visibility::Loaded,
            LoadingStrategy::Deferred => Visibility::Deferred,
            LoadingStrategy::Companion => Visibility::Unlisted,
            LoadingStrategy::Internal => Visibility::Blocked(HiddenReason::Internal),
        }
    }
}

//! Mounting the modules for a session, and doing without those that keep the others from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value};
use toolpost_model::{InvocationId, ToolFailure};

use super::{
    listing::ModuleSetListing,
    process::{BridgeProcess, NoAnswer},
    protocol::{BridgeMountReply, BridgeOrder},
    seat::SessionMount,
    set::ModuleSet,
};

/// How often a process may die over a module before that is no coincidence: somebody else may have ended it.
const COINCIDENCES: u32 = 1;

/// The modules that are not mounted again, by their place in the plan.
#[derive(Default)]
pub(super) struct GivenUp {
    reasons: BTreeMap<usize, String>,
    /// How often a process died while a module was being mounted.
    deaths: BTreeMap<usize, u32>,
}

/// Which mount of a set it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountOccasion {
    /// Nothing else happens in the process, so whatever happens is its doing.
    First,
    Later,
}

/// How modules are mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountConcurrency {
    /// A slow one does not hold up those after it.
    Overlapping,
    /// One is at work at a time, so that it is known who ends the process.
    Apart,
}

/// Why a mount did not come about.
struct NotMounted {
    failure: ToolFailure,
    /// The modules that were being mounted when the process ended.
    at_work: BTreeSet<usize>,
}

impl ModuleSet {
    /// Mounts every module for the first time, to see what they bring. Modules that took too long are not waited for
    /// again.
    pub(super) async fn first_mount(&self) -> Result<SessionMount, ToolFailure> {
        // Whose it will be is not known yet, and two sessions may never see the same id.
        let session = InvocationId::new().to_string();
        let mounted = self
            .mount_without_the_broken(MountOccasion::First, &session, &Map::new())
            .await?;
        let mut given_up = self.given_up.lock();
        for (place, message) in &mounted.listing.late {
            given_up
                .reasons
                .insert(*place, format!("{message}, and it is not tried again"));
        }
        Ok(mounted)
    }

    /// Mounts every module for a further session.
    pub(super) async fn mount(
        &self,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<SessionMount, ToolFailure> {
        self.mount_without_the_broken(MountOccasion::Later, session, remembered)
            .await
    }

    async fn mount_without_the_broken(
        &self,
        turn: MountOccasion,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<SessionMount, ToolFailure> {
        let mut way = MountConcurrency::Overlapping;
        loop {
            let bridge = self.bridge().await?;
            let NotMounted { failure, at_work } =
                match self.try_mount(bridge, way, session, remembered).await {
                    Ok(mounted) => return Ok(mounted),
                    Err(not_mounted) => not_mounted,
                };
            match (way, at_work.len(), at_work.first()) {
                (_, _, None) => return Err(failure),
                // It may have been any of them.
                (MountConcurrency::Overlapping, 2.., _) => way = MountConcurrency::Apart,
                // Each module has few tries, so this ends.
                (MountConcurrency::Overlapping | MountConcurrency::Apart, _, Some(place)) => {
                    self.blame(turn, *place, &failure);
                    way = MountConcurrency::Overlapping;
                }
            }
        }
    }

    fn blame(&self, turn: MountOccasion, place: usize, failure: &ToolFailure) {
        let mut given_up = self.given_up.lock();
        let deaths = given_up.deaths.entry(place).or_default();
        *deaths += 1;
        if turn == MountOccasion::First || *deaths > COINCIDENCES {
            let reason = format!("mounting it ended the process: {}", failure.message);
            given_up.reasons.insert(place, reason);
        }
    }

    async fn try_mount(
        &self,
        bridge: Arc<BridgeProcess>,
        way: MountConcurrency,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<SessionMount, NotMounted> {
        let mount = SessionMount::next_number();
        let workspace = self
            .blueprint
            .children
            .workspace()
            .path()
            .display()
            .to_string();
        let mut capabilities = remembered.clone();
        capabilities.insert("session.working_dir".to_owned(), Value::String(workspace));
        let limit = self.blueprint.settings.mount_limit;
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let without = self.given_up.lock().reasons.clone();
        let capabilities = &capabilities;
        let without = &without;
        let apart = way == MountConcurrency::Apart;
        let order = BridgeOrder::Mount {
            mount,
            session,
            limit_ms,
            capabilities,
            without,
            apart,
        };
        let modules = u32::try_from(self.blueprint.modules.len()).unwrap_or(u32::MAX);
        // Each module has its time, and the bridge watches it; this is for a bridge that cannot.
        let whole = limit
            .saturating_mul(modules.saturating_mul(2))
            .saturating_add(limit);
        bridge.begin_mount(mount);
        let asked = tokio::time::timeout(whole, bridge.ask::<BridgeMountReply>(order)).await;
        let at_work = bridge.mounted(mount);
        let listed = match asked {
            Ok(Ok(listed)) => listed,
            Ok(Err(no)) => {
                bridge.end_mount(mount);
                let at_work = if matches!(no, NoAnswer::Gone(_)) {
                    at_work
                } else {
                    BTreeSet::new()
                };
                let failure = no.into_failure().code("not_mounted").untouched();
                return Err(NotMounted { failure, at_work });
            }
            Err(_) => {
                bridge
                    .kill("mounting the modules took too long".to_owned())
                    .await;
                let message =
                    "the modules could not be mounted in time (`amplifier.mount_timeout`)";
                let failure = ToolFailure::new(message).code("mount_timeout").untouched();
                return Err(NotMounted { failure, at_work });
            }
        };
        let listing = Arc::new(ModuleSetListing::of(
            &self.blueprint.modules,
            listed.modules,
        ));
        Ok(SessionMount {
            bridge,
            mount,
            listing,
        })
    }
}

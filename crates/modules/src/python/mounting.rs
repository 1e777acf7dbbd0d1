//! Mounts the modules for a session, and leaves out modules that prevent the others from mounting.

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

/// How many deaths of a process during one module's mount count as a coincidence: another program may have ended the
/// process.
const COINCIDENCES: u32 = 1;

/// The modules that are not mounted again, by their place in the plan.
#[derive(Default)]
pub(super) struct GivenUp {
    reasons: BTreeMap<usize, String>,
    /// The deaths of processes during each module's mount.
    deaths: BTreeMap<usize, u32>,
}

/// The occasion of a mount.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountOccasion {
    /// Nothing else happens in the process, so the module is the cause of any failure.
    First,
    Later,
}

/// The order in which modules are mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountConcurrency {
    /// A slow module does not delay those after it.
    Overlapping,
    /// One module is mounted at a time, so that a death of the process can be attributed to it.
    Apart,
}

/// The failure of a mount.
struct NotMounted {
    failure: ToolFailure,
    /// The modules in progress when the process ended.
    at_work: BTreeSet<usize>,
}

impl ModuleSet {
    /// Mounts every module for the first time, to list the contributions. Later mounts do not wait again for modules
    /// that took too long.
    pub(super) async fn first_mount(&self) -> Result<SessionMount, ToolFailure> {
        // The session is not known yet, and two sessions must never see the same id.
        let session = InvocationId::new().to_string();
        let mounted = self
            .mount_without_the_broken(MountOccasion::First, &session, &Map::new())
            .await?;
        let mut given_up = self.given_up.lock();
        for (place, message) in &mounted.listing.late {
            given_up
                .reasons
                .insert(*place, format!("{message}; the host does not try again"));
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
        // A module can end the whole process while it is mounted, and then only the modules in progress are known. If
        // there were several, any of them may be the cause, so the next attempt mounts them one by one, and a further
        // death has a single suspect. That module is left out, and the others are mounted concurrently again. To mount
        // one by one from the beginning would make each start wait for the slow modules in turn; to leave out all
        // suspects would lose sound ones.
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
                // Any of them may be the cause, so they are mounted one by one.
                (MountConcurrency::Overlapping, 2.., _) => way = MountConcurrency::Apart,
                // Each module has a limited number of tries, so the loop ends.
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
        // The bridge enforces the limit of each module. This limit is for a bridge that hangs itself.
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

//! Mounting the modules for a session, and doing without those that keep the others from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value};
use toolpost_model::{InvocationId, ToolFailure};

use super::{
    listing::Listing,
    process::{Bridge, NoAnswer},
    protocol::{Listed, Order},
    seat::Mounted,
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
enum Turn {
    /// Nothing else happens in the process, so whatever happens is its doing.
    First,
    Later,
}

/// How modules are mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
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
    pub(super) async fn first_mount(&self) -> Result<Mounted, ToolFailure> {
        // Whose it will be is not known yet, and two sessions may never see the same id.
        let session = InvocationId::new().to_string();
        let mounted = self
            .mount_without_the_broken(Turn::First, &session, &Map::new())
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
    ) -> Result<Mounted, ToolFailure> {
        self.mount_without_the_broken(Turn::Later, session, remembered)
            .await
    }

    async fn mount_without_the_broken(
        &self,
        turn: Turn,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<Mounted, ToolFailure> {
        let mut way = Way::Overlapping;
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
                (Way::Overlapping, 2.., _) => way = Way::Apart,
                // Each module has few tries, so this ends.
                (Way::Overlapping | Way::Apart, _, Some(place)) => {
                    self.blame(turn, *place, &failure);
                    way = Way::Overlapping;
                }
            }
        }
    }

    fn blame(&self, turn: Turn, place: usize, failure: &ToolFailure) {
        let mut given_up = self.given_up.lock();
        let deaths = given_up.deaths.entry(place).or_default();
        *deaths += 1;
        if turn == Turn::First || *deaths > COINCIDENCES {
            let reason = format!("mounting it ended the process: {}", failure.message);
            given_up.reasons.insert(place, reason);
        }
    }

    async fn try_mount(
        &self,
        bridge: Arc<Bridge>,
        way: Way,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<Mounted, NotMounted> {
        let mount = Mounted::next_number();
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
        let (capabilities, without) = (&capabilities, &without);
        let apart = way == Way::Apart;
        let order = Order::Mount {
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
        let asked = tokio::time::timeout(whole, bridge.ask::<Listed>(order)).await;
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
        let listing = Arc::new(Listing::of(&self.blueprint.modules, listed.modules));
        Ok(Mounted {
            bridge,
            mount,
            listing,
        })
    }
}

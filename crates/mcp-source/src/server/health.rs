//! The health of a server, for operators.

use toolpost_model::{SourceHealth, SourceState};

use super::{McpUpstream, SETUP_REQUIRED};

impl McpUpstream {
    pub(in super::super) fn health(&self) -> SourceHealth {
        let mut all: Vec<_> = self
            .sessions
            .lock()
            .values()
            .map(|link| link.shown())
            .collect();
        all.push(self.link.shown());
        let rank = |state: SourceState| match state {
            SourceState::Failing => 0,
            SourceState::Starting => 1,
            SourceState::Ready => 2,
            SourceState::Idle => 3,
            SourceState::Stopped => 4,
        };
        let restarts = all.iter().map(|shown| shown.restarts).sum();
        let worst = all.into_iter().min_by_key(|shown| rank(shown.state));
        let (state, message) = worst.map_or((SourceState::Idle, None), |shown| {
            (shown.state, shown.message)
        });
        let listing = self.listing();
        let setup = listing
            .problems
            .iter()
            .find(|problem| problem.code == SETUP_REQUIRED);
        let (state, message) = match setup {
            Some(problem) => (SourceState::Failing, Some(problem.message.clone())),
            None => (state, message.or_else(|| self.unbound())),
        };
        SourceHealth {
            state,
            message,
            restarts,
            quarantined: listing.quarantined.clone(),
        }
    }
}

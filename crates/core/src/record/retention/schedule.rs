//! The regular removal of the oldest records, at the start and once an hour.

use std::{collections::HashSet, sync::Weak, time::Duration};

use tokio_util::sync::CancellationToken;
use toolpost_model::SessionId;

use super::{Retention, RetentionExemptions, prune};
use crate::host::{HostInner, sessions};

const EVERY: Duration = Duration::from_secs(60 * 60);

/// Holds the host only during a removal, so that a dropped host can end.
pub(crate) async fn keep_to(
    retention: Retention,
    host: Weak<HostInner>,
    closing: CancellationToken,
) {
    loop {
        let Some(held) = host.upgrade() else { return };
        tokio::select! {
            biased;
            // The journal finishes a step that has begun; the rest is removed another time.
            () = closing.cancelled() => return,
            () = held.prune(retention) => {}
        }
        drop(held);
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

impl HostInner {
    fn opened_sessions(&self) -> HashSet<SessionId> {
        let sessions = self.state.sessions.read();
        sessions
            .keys()
            .filter(|id| !sessions::is_default(id))
            .cloned()
            .collect()
    }

    async fn prune(&self, retention: Retention) {
        let now = crate::port::now();
        let needed = RetentionExemptions {
            now,
            session_idle: self.limits.session_idle,
            sessions: self.opened_sessions(),
        };
        match prune(
            &*self.record.journal,
            &retention.due(now),
            &needed,
            |_, _| {},
        )
        .await
        {
            Ok(report) if report.records > 0 => {
                tracing::info!(
                    records = report.records,
                    up_to = report.up_to,
                    "old records were removed"
                );
                let _ = self
                    .record
                    .journal_room
                    .measure(&*self.record.journal)
                    .await;
            }
            Ok(_) => {}
            // The records stay due, and the next appends show whether the journal works.
            Err(error) => tracing::warn!(%error, "old records could not be removed"),
        }
    }
}

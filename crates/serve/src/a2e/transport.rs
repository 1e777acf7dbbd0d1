//! The transports of A2E, as far as a conversation depends on them.

use super::outbox::OutboxReaderPolicy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConversationTransport {
    Http,
    Stdio,
    /// Stdio through a relay that joined this host after its earlier host had ended. The session is on record.
    Rejoined,
    InProcess,
}

impl ConversationTransport {
    /// The face name on record.
    pub(super) fn face(self) -> &'static str {
        match self {
            Self::Http => "a2e",
            Self::Stdio | Self::Rejoined => "a2e-stdio",
            Self::InProcess => "a2e-direct",
        }
    }

    pub(super) fn readers(self) -> OutboxReaderPolicy {
        match self {
            Self::Http => OutboxReaderPolicy::MayReturn,
            Self::Stdio | Self::Rejoined | Self::InProcess => OutboxReaderPolicy::One,
        }
    }
}

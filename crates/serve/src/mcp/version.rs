//! The revisions of the protocol, and which of the two eras each belongs to.

/// A revision, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum McpVersion {
    V2024,
    V2025March,
    V2025June,
    V2025November,
    V2026,
}

/// Every revision that is spoken here, newest first: what clients are told.
pub(super) const SUPPORTED: [McpVersion; 5] = [
    McpVersion::V2026,
    McpVersion::V2025November,
    McpVersion::V2025June,
    McpVersion::V2025March,
    McpVersion::V2024,
];

/// The newest revision that begins with a handshake.
const NEWEST_WITH_HANDSHAKE: McpVersion = McpVersion::V2025November;

impl McpVersion {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V2024 => "2024-11-05",
            Self::V2025March => "2025-03-26",
            Self::V2025June => "2025-06-18",
            Self::V2025November => "2025-11-25",
            Self::V2026 => "2026-07-28",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        SUPPORTED
            .into_iter()
            .find(|version| version.as_str() == text)
    }

    /// What a handshake that wishes for a revision gets: that one, or the newest that has handshakes at all.
    pub(super) fn negotiated(wished: &str) -> Self {
        Self::read(wished)
            .filter(|version| !version.is_modern())
            .unwrap_or(NEWEST_WITH_HANDSHAKE)
    }

    /// Whether each request speaks for itself, without a handshake and a session.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026
    }
}

/// The names of all revisions.
pub(super) fn supported() -> Vec<&'static str> {
    SUPPORTED.iter().map(|version| version.as_str()).collect()
}

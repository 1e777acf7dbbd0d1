//! The revisions of the protocol, and the era of each.

/// A revision, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum McpVersion {
    V2024,
    V2025March,
    V2025June,
    V2025November,
    V2026,
}

/// The supported revisions, newest first, as clients see them.
pub(super) const SUPPORTED: [McpVersion; 5] = [
    McpVersion::V2026,
    McpVersion::V2025November,
    McpVersion::V2025June,
    McpVersion::V2025March,
    McpVersion::V2024,
];

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

    /// The revision of a handshake: the requested one, or the newest with handshakes.
    pub(super) fn negotiated(wished: &str) -> Self {
        Self::read(wished)
            .filter(|version| !version.is_modern())
            .unwrap_or(NEWEST_WITH_HANDSHAKE)
    }

    /// Whether the revision is stateless: without a handshake and sessions.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026
    }
}

pub(super) fn supported() -> Vec<&'static str> {
    SUPPORTED.iter().map(|version| version.as_str()).collect()
}

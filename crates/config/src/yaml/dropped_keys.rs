//! Keys that earlier versions read. The error for such a key names its replacement instead of a similar word.

/// A key of earlier versions.
pub(super) struct DroppedKey {
    key: &'static str,
    /// A key of the same table. The parser's errors have the keys of a table but not its path.
    sibling: &'static str,
    pub(super) hint: &'static str,
}

const DROPPED_KEYS: [DroppedKey; 5] = [
    DroppedKey {
        key: "retries",
        sibling: "exclusive",
        hint: "remove it: the host runs a call once, and a failed result reports whether a retry is safe",
    },
    DroppedKey {
        key: "hidden",
        sibling: "trust",
        hint: "write it under `tools`, with a pattern of ids: `tools: { \"NAME.*\": { hidden: true } }`",
    },
    DroppedKey {
        key: "timeout",
        sibling: "argv",
        hint: "write it under `tools`, with the name of the command: `tools: { NAME: { timeout: 5m } }`",
    },
    DroppedKey {
        key: "idempotent",
        sibling: "argv",
        hint: "write it under `tools`, with the name of the command: `tools: { NAME: { idempotent: true } }`",
    },
    DroppedKey {
        key: "deferred",
        sibling: "argv",
        hint: "write it under `tools`, with the name of the command: `tools: { NAME: { deferred: true } }`",
    },
];

/// The dropped key of this name in the table that has the keys `known`.
pub(super) fn find_dropped_key(key: &str, known: &[&str]) -> Option<&'static DroppedKey> {
    DROPPED_KEYS
        .iter()
        .find(|dropped| dropped.key == key && known.contains(&dropped.sibling))
}

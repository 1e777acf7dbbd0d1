//! The effects of A2E's capability messages, derived from their types.

use toolpost_model::EffectClass;

/// The default permission of a message type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStanding {
    /// It only uses state that the plugin keeps for the agent: allowed, except in the modes `plan` and `never-ask`.
    Allowed,
    /// It acts outside of the plugin: the mode and the rules decide.
    Acting,
    /// A type that A2E does not define: the mode and the rules decide.
    Unknown,
}

impl MessageStanding {
    /// The class of effect. A type that is allowed by default stays `unknown`: the modes without questions leave out
    /// the rule that allows it.
    pub fn class(self) -> EffectClass {
        match self {
            Self::Acting => EffectClass::Execute,
            Self::Allowed | Self::Unknown => EffectClass::Unknown,
        }
    }
}

/// The messages that are allowed by default. A name that ends with `/*` matches all names beneath it.
///
/// Memory, learning, planning and environments are the plugin's own state; lists and status change nothing.
const ALLOWED: [&str; 12] = [
    "memory/*",
    "learn/*",
    "planning/*",
    "env/*",
    "skill/discover",
    "toolkit/list",
    "proc/status",
    "mcp/server/list",
    "mcp/resource/list",
    "mcp/prompt/list",
    "mcp/root/list",
    "multi_agent/list",
];

/// Patterns over tool ids that allow these messages: the call of each, and its step for every plugin.
pub fn allowed_message_patterns() -> impl Iterator<Item = String> {
    ALLOWED.iter().flat_map(|name| match name.ends_with("/*") {
        true => vec![format!("a2e.{name}")],
        false => vec![format!("a2e.{name}"), format!("a2e.{name}:*")],
    })
}

/// Name prefixes of messages that act.
const ACTING: [&str; 7] = [
    "proc/",
    "skill/",
    "mcp/",
    "chain",
    "toolkit/",
    "multi_agent/",
    "SUBAGENT_",
];

/// The default permission of a message type, by its name in tool ids (`memory/store`).
pub fn message_standing(name: &str) -> MessageStanding {
    let is_allowed = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == known,
    };
    if ALLOWED.iter().any(|known| is_allowed(known)) {
        MessageStanding::Allowed
    } else if ACTING.iter().any(|beginning| name.starts_with(beginning)) {
        MessageStanding::Acting
    } else {
        MessageStanding::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageStanding, message_standing};

    #[test]
    fn types_are_told_apart_by_what_they_do() {
        let table = [
            ("memory/store", MessageStanding::Allowed),
            ("learn/refinement/apply", MessageStanding::Allowed),
            ("planning/task/add", MessageStanding::Allowed),
            ("env/step", MessageStanding::Allowed),
            ("proc/status", MessageStanding::Allowed),
            ("proc/spawn", MessageStanding::Acting),
            ("proc/kill", MessageStanding::Acting),
            ("skill/discover", MessageStanding::Allowed),
            ("skill/call", MessageStanding::Acting),
            ("mcp/server/list", MessageStanding::Allowed),
            ("mcp/server/register", MessageStanding::Acting),
            ("mcp/resource/read", MessageStanding::Acting),
            ("chain", MessageStanding::Acting),
            ("SUBAGENT_SPAWN_REQ", MessageStanding::Acting),
            ("weather/now", MessageStanding::Unknown),
            ("memory", MessageStanding::Unknown),
        ];
        for (name, expected) in table {
            assert_eq!(message_standing(name), expected, "{name}");
        }
    }
}

//! The accepted definitions of a server, stored across restarts of the host. Definitions are stored whole, so that the
//! host can list a server that is not running, and show a change.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::{McpNewToolPolicy, McpProtocolEra, clean, definition::Definition};

/// The longest diff, in bytes.
const DIFF: usize = 64 * 1024;
/// With more definitions than this, those of removed tools are dropped.
const REMEMBERED: usize = 20_000;
/// The version of the stored form.
const VERSION: u64 = 1;
/// The stored name of the revision with sessions.
const SESSIONS: &str = "sessions";

/// The accepted and the held definitions of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UpstreamManifest {
    /// By native name.
    pub(super) tools: BTreeMap<String, PinnedDefinition>,
    /// Kept back, by native name.
    pub(super) held: BTreeMap<String, Definition>,
    /// Its capabilities, resources, templates and prompts, as last seen.
    pub(super) beside: Value,
    /// The revision that it spoke.
    pub(super) era: Option<McpProtocolEra>,
    /// The order in which the server lists its tools.
    pub(super) order: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PinnedDefinition {
    pub(super) definition: Definition,
    pub(super) digest: String,
    /// The server still lists it.
    pub(super) present: bool,
}

/// Why a stored manifest cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamManifestError {
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is not a JSON object")]
    Form,
    #[error("its version is unknown")]
    Version,
    #[error("the definition of `{0}` is missing")]
    Definition(String),
}

/// Why a definition is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefinitionHoldReason {
    /// The host never saw it.
    New,
    /// It differs from the accepted one.
    Changed,
}

impl DefinitionHoldReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
        }
    }
}

impl UpstreamManifest {
    /// The manifest after a server listed `now`. `known`: a manifest existed before.
    pub(super) fn updated(
        &self,
        known: bool,
        now: Vec<Definition>,
        new_tools: McpNewToolPolicy,
    ) -> Self {
        let mut next = self.clone();
        next.held.clear();
        next.order = now
            .iter()
            .map(|definition| definition.name.clone())
            .collect();
        next.tools
            .values_mut()
            .for_each(|pinned| pinned.present = false);
        let take_new = match new_tools {
            McpNewToolPolicy::FirstUse => !known,
            McpNewToolPolicy::Ask => false,
            McpNewToolPolicy::Take => true,
        };
        for definition in now {
            let digest = definition.digest();
            match next.tools.get_mut(&definition.name) {
                Some(pinned) if pinned.digest == digest => {
                    pinned.present = true;
                    // Icons are not pinned, and may be newer.
                    pinned.definition = definition;
                }
                None if take_new => next.pin(definition),
                // A changed definition is held under every policy. The accepted one stays pinned beside it: the diff
                // needs it, and a server that returns to the accepted text is offered again without an operator.
                Some(_) | None => {
                    next.held.insert(definition.name.clone(), definition);
                }
            }
        }
        if next.tools.len() > REMEMBERED {
            next.tools.retain(|_, pinned| pinned.present);
        }
        next
    }

    fn pin(&mut self, definition: Definition) {
        let digest = definition.digest();
        self.tools.insert(
            definition.name.clone(),
            PinnedDefinition {
                definition,
                digest,
                present: true,
            },
        );
    }

    /// Accepts a held definition. Returns whether there was one.
    pub(super) fn accept(&mut self, native: &str) -> bool {
        let Some(definition) = self.held.remove(native) else {
            return false;
        };
        self.pin(definition);
        true
    }

    pub(super) fn change(&self, native: &str) -> DefinitionHoldReason {
        if self.tools.contains_key(native) {
            DefinitionHoldReason::Changed
        } else {
            DefinitionHoldReason::New
        }
    }

    /// The difference between the accepted and the held definition.
    pub(super) fn diff(&self, native: &str) -> String {
        let Some(held) = self.held.get(native) else {
            return String::new();
        };
        let old = self
            .tools
            .get(native)
            .map(|pinned| pinned.definition.text())
            .unwrap_or_default();
        let new = held.text();
        let diff = TextDiff::from_lines(&old, &new);
        let text = diff
            .unified_diff()
            .context_radius(3)
            .header("accepted", "now")
            .to_string();
        clean::shortened(&text, DIFF)
    }

    /// The accepted definitions of tools that the server still lists, in its order.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Definition> {
        let usable = |name: &String| {
            let pinned = self.tools.get(name).filter(|pinned| pinned.present)?;
            (!self.held.contains_key(name)).then_some(&pinned.definition)
        };
        self.order.iter().filter_map(usable)
    }

    /// The stored form.
    pub(super) fn text(&self) -> String {
        let tools: Map<String, Value> = self
            .tools
            .iter()
            .map(|(name, pinned)| {
                let kept = json!({ "digest": pinned.digest, "present": pinned.present, "definition": pinned.definition.fields });
                (name.clone(), kept)
            })
            .collect();
        let held: Map<String, Value> = self
            .held
            .iter()
            .map(|(name, definition)| (name.clone(), json!(definition.fields)))
            .collect();
        // Only the older revision is stored: the host tries the newer one first in any case.
        let era = (self.era == Some(McpProtocolEra::Sessions)).then_some(SESSIONS);
        let all = json!({
            "version": VERSION, "era": era, "order": self.order, "tools": tools, "held": held,
            "beside": self.beside,
        });
        all.to_string()
    }

    /// Reads the stored form.
    pub(super) fn read(text: &str) -> Result<Self, UpstreamManifestError> {
        let Value::Object(mut all) = serde_json::from_str(text)? else {
            return Err(UpstreamManifestError::Form);
        };
        if all.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(UpstreamManifestError::Version);
        }
        let mut taken = |field: &str| match all.get_mut(field).map(Value::take) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let tools = taken("tools");
        let held = taken("held");
        let mut manifest = Self::default();
        for (name, mut kept) in tools {
            let Value::Object(fields) = kept["definition"].take() else {
                return Err(UpstreamManifestError::Definition(name));
            };
            let definition = Definition {
                name: name.clone(),
                fields,
            };
            // The digest is computed from the definition. A stored digest could be edited to match a definition that
            // no operator accepted.
            let digest = definition.digest();
            let present = kept["present"].as_bool().unwrap_or(true);
            manifest.tools.insert(
                name,
                PinnedDefinition {
                    definition,
                    digest,
                    present,
                },
            );
        }
        for (name, fields) in held {
            if let Value::Object(fields) = fields {
                manifest
                    .held
                    .insert(name.clone(), Definition { name, fields });
            }
        }
        let order = all.get("order").and_then(Value::as_array);
        manifest.order = order
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let era = all
            .get("era")
            .and_then(Value::as_str)
            .filter(|era| *era == SESSIONS);
        manifest.era = era.map(|_| McpProtocolEra::Sessions);
        manifest.beside = all.remove("beside").unwrap_or_default();
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DefinitionHoldReason, UpstreamManifest};
    use crate::{McpNewToolPolicy, definition::Definition};

    fn tool(name: &str, about: &str) -> Definition {
        let entry =
            json!({ "name": name, "description": about, "inputSchema": { "type": "object" } });
        Definition::read(entry, "s").unwrap()
    }

    fn names(manifest: &UpstreamManifest) -> Vec<&str> {
        manifest
            .offered()
            .map(|definition| definition.name.as_str())
            .collect()
    }

    #[test]
    fn a_first_sight_is_taken_and_later_ones_are_kept_back() {
        let first = UpstreamManifest::default().updated(
            false,
            vec![tool("b", "1"), tool("a", "1")],
            McpNewToolPolicy::FirstUse,
        );
        assert_eq!(names(&first), ["b", "a"]);
        let now = vec![tool("a", "2\u{202e}"), tool("b", "1"), tool("c", "1")];
        let mut next = first.updated(true, now, McpNewToolPolicy::FirstUse);
        assert_eq!(names(&next), ["b"]);
        assert_eq!(
            (next.change("a"), next.change("c")),
            (DefinitionHoldReason::Changed, DefinitionHoldReason::New)
        );
        let diff = next.diff("a");
        assert!(
            diff.contains("-  \"description\": \"1\"\n+  \"description\": \"2\\u{202e}\"\n"),
            "{diff}"
        );
        assert!(next.accept("a") && !next.accept("x"));
        assert_eq!(names(&next), ["a", "b"]);
        assert_eq!(UpstreamManifest::read(&next.text()).unwrap(), next);
    }

    #[test]
    fn each_wish_about_new_tools_is_kept() {
        let now = || vec![tool("a", "1")];
        let ask = UpstreamManifest::default().updated(false, now(), McpNewToolPolicy::Ask);
        assert!(names(&ask).is_empty() && ask.held.len() == 1);
        let take = UpstreamManifest::default().updated(true, now(), McpNewToolPolicy::Take);
        assert_eq!(names(&take), ["a"]);
        let changed = take.updated(true, vec![tool("a", "2")], McpNewToolPolicy::Take);
        assert!(names(&changed).is_empty());
    }

    #[test]
    fn a_tool_that_comes_back_as_it_was_is_known() {
        let first = UpstreamManifest::default().updated(
            false,
            vec![tool("a", "1")],
            McpNewToolPolicy::FirstUse,
        );
        let gone = first.updated(true, vec![], McpNewToolPolicy::FirstUse);
        assert!(names(&gone).is_empty());
        let back = gone.updated(true, vec![tool("a", "1")], McpNewToolPolicy::FirstUse);
        assert_eq!(names(&back), ["a"]);
    }
}

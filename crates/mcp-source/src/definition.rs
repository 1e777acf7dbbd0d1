//! A tool definition of a server: checked, named within the host, declared to the catalog.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolpost_core::Schema;
use toolpost_model::{
    AccessKind, CancelSupport, ClassFact, Declaration, EffectClass, ExecutionKind, ExternalMapping,
    RiskLevel, SourceProblem, ToolId, ToolKind, canonical_json, visible,
};

use super::{McpServer, clean};

/// The longest native name.
const NAME: usize = 512;
/// The longest description in a declaration.
const DESCRIPTION: usize = 16 * 1024;
/// The largest definition, schemas and all.
const DEFINITION: usize = 512 * 1024;
/// The pinned fields. Icons may change without an operator's acceptance.
const PINNED: [&str; 7] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
];
/// Fields that MCP clients of the host get too. Declarations carry them among the annotations.
const BESIDE: [&str; 2] = ["icons", "_meta"];

/// A definition, as the server gave it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    /// The native name.
    pub(super) name: String,
    /// The pinned fields and the icons.
    pub(super) fields: Map<String, Value>,
}

impl Definition {
    /// Reads an entry of a list. `Err`: why it cannot be offered.
    pub(super) fn read(entry: Value, server: &str) -> Result<Self, SourceProblem> {
        let refuse = |code: &str, message: String| Err(problem(server, code, message));
        let Value::Object(mut fields) = entry else {
            return refuse(
                "invalid_spec",
                "an entry of its list of tools is not an object".to_owned(),
            );
        };
        let Some(name) = fields
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
        else {
            return refuse(
                "invalid_tool_name",
                "it lists a tool without a name".to_owned(),
            );
        };
        let shown = visible(&clean::shortened(&name, 100)).into_owned();
        if name.is_empty() || name.len() > NAME {
            return refuse(
                "invalid_tool_name",
                format!("the name of its tool `{shown}` cannot be used"),
            );
        }
        if !fields.get("inputSchema").is_some_and(Value::is_object) {
            return refuse(
                "invalid_schema",
                format!("its tool `{shown}` is left out: it has no input schema"),
            );
        }
        fields.retain(|field, value| {
            (PINNED.contains(&field.as_str()) || field == "icons") && !value.is_null()
        });
        let size = serde_json::to_vec(&fields).map_or(usize::MAX, |text| text.len());
        if size > DEFINITION {
            let message = format!(
                "its tool `{shown}` is left out: its definition has {size} bytes, the limit is {DEFINITION}"
            );
            return refuse("oversized", message);
        }
        Ok(Self { name, fields })
    }

    /// The hash of all pinned fields.
    pub(super) fn digest(&self) -> String {
        const_hex::encode(Sha256::digest(
            canonical_json(&Value::Object(self.pinned())).as_bytes(),
        ))
    }

    /// The digest that rules are bound to. It covers the way to the server, too: an operator who allowed a tool because
    /// its program reaches no network, or because of that program, allowed neither another program nor the network.
    fn bound_digest(&self, route: &str) -> String {
        const_hex::encode(Sha256::digest(format!("{} {route}", self.digest())))
    }

    fn pinned(&self) -> Map<String, Value> {
        let pinned = self
            .fields
            .iter()
            .filter(|(field, _)| PINNED.contains(&field.as_str()));
        pinned
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    }

    /// A text with a line per value, for comparison. Hidden characters are written out.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        write_pretty(&Value::Object(self.pinned()), 0, &mut text);
        text.push('\n');
        visible(&text).into_owned()
    }

    fn text_of(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.fields.get("annotations")?.get(name)?.as_bool()
    }

    /// The declaration for the catalog, and the problems with it. `route`: the way to the server.
    pub(super) fn declare(
        &self,
        id: &ToolId,
        server: &McpServer,
        route: &str,
    ) -> (Declaration, Vec<SourceProblem>) {
        let mut problems = Vec::new();
        let mut told =
            |code: &str, message: String| problems.push(problem(&server.name, code, message));
        let description = clean::stripped(self.text_of("description").unwrap_or_default());
        if description.len() > DESCRIPTION {
            told(
                "oversized",
                format!("the description of `{id}` is cut at {DESCRIPTION} bytes"),
            );
        }
        let mut declaration =
            Declaration::new(id.clone(), clean::shortened(&description, DESCRIPTION));
        let annotations = self.fields.get("annotations");
        let title = self
            .text_of("title")
            .or_else(|| annotations?.get("title")?.as_str());
        declaration.title = title
            .map(|title| clean::line(title, 256))
            .filter(|title| !title.is_empty());
        declaration.kind = ToolKind::Mcp;
        declaration.toolkit.clone_from(&server.name);
        declaration.external_mappings = vec![ExternalMapping::new("mcp", self.name.clone())];
        if let Some(Value::Object(hints)) = annotations {
            let mut hints = Value::Object(hints.clone());
            clean::value(&mut hints);
            declaration.annotations = hints.as_object().cloned().unwrap_or_default();
        }
        for beside in BESIDE {
            // The server's own annotation of this name goes first; it would be mistaken for the field.
            declaration.annotations.remove(beside);
            if let Some(mut value) = self.fields.get(beside).cloned() {
                clean::value(&mut value);
                declaration.annotations.insert(beside.to_owned(), value);
            }
        }
        match self.schema("inputSchema") {
            Some(Ok(schema)) => declaration.input.schema = schema,
            Some(Err(why)) => {
                let message =
                    format!("the schema of `{id}` is invalid, so any object is accepted: {why}");
                told("invalid_schema", message);
            }
            None => {}
        }
        match self.schema("outputSchema") {
            Some(Ok(schema)) => declaration.output.schema = Some(schema),
            Some(Err(why)) => {
                told(
                    "invalid_schema",
                    format!("the output schema of `{id}` is invalid and is ignored: {why}"),
                );
            }
            None => {}
        }
        self.claims(&mut declaration, server);
        declaration.definition = Some(self.bound_digest(route));
        (declaration, problems)
    }

    fn schema(&self, field: &str) -> Option<Result<Arc<Value>, String>> {
        let mut schema = self.fields.get(field)?.clone();
        if clean::hides_names(&schema) {
            return Some(Err(
                "names or values in it contain invisible characters".to_owned()
            ));
        }
        clean::value(&mut schema);
        let schema = Arc::new(schema);
        Some(match Schema::try_out(&schema) {
            Ok(()) => Ok(schema),
            Err(error) => Err(clean::line(&error.to_string(), 500)),
        })
    }

    /// Sets the facts that the server claims. Their origin is `Claimed`, so they can only make a decision stricter.
    fn claims(&self, declaration: &mut Declaration, server: &McpServer) {
        let read_only = self.hint("readOnlyHint").unwrap_or(false);
        let destructive = !read_only && self.hint("destructiveHint").unwrap_or(true);
        let open_world = self.hint("openWorldHint").unwrap_or(true);
        let interface = &mut declaration.interface;
        interface.safety.class = ClassFact::Always(match (read_only, open_world) {
            (true, false) => EffectClass::Read,
            (true, true) => EffectClass::Network,
            (false, false) => EffectClass::Write,
            (false, true) => EffectClass::Unknown,
        });
        interface.safety.destructive = destructive;
        interface.permission.risk = match (read_only, destructive) {
            (true, _) => RiskLevel::Low,
            (false, false) => RiskLevel::Medium,
            (false, true) => RiskLevel::High,
        };
        if open_world {
            interface.permission.access.push(AccessKind::Network);
        }
        let execution = &mut interface.execution;
        execution.kind = ExecutionKind::McpServer;
        execution.streaming = true;
        execution.cancel = CancelSupport::Cooperative;
        execution.idempotent = read_only || self.hint("idempotentHint").unwrap_or(false);
        execution.timeout_ms = server
            .call_timeout
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }
}

/// A problem with a server, for the operator.
pub(super) fn problem(server: &str, code: &str, message: String) -> SourceProblem {
    SourceProblem {
        part: server.to_owned(),
        origin: None,
        code: code.to_owned(),
        message,
    }
}

/// The namespace of a server's tools: its name, with a replacement for each character that ids cannot hold.
pub(super) fn namespace(server: &str) -> String {
    named(
        server,
        |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
        64,
    )
}

/// The id of a tool. A name that ids cannot hold, or that looks like a companion's, is replaced and gets a hash of the
/// original, so that two names never share an id.
pub(super) fn id_of(namespace: &str, native: &str) -> Option<ToolId> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    let name = match native.starts_with(COMPANION) {
        // The NUL is never allowed in a name, so the name is always replaced.
        true => named(&format!("\u{0}{native}"), allowed, 180),
        false => named(native, allowed, 180),
    };
    ToolId::new(namespace, &name).ok()
}

/// The first character of companion names. No tool name starts with it.
const COMPANION: char = ':';

/// The id of a companion, which no tool of the server can have.
pub(super) fn companion_id(namespace: &str, name: &str) -> Option<ToolId> {
    ToolId::new(namespace, &format!("{COMPANION}{name}")).ok()
}

fn named(text: &str, allowed: impl Fn(char) -> bool, longest: usize) -> String {
    if !text.is_empty() && text.len() <= longest && text.chars().all(&allowed) {
        return text.to_owned();
    }
    let digest = Sha256::digest(text.as_bytes());
    let suffix = const_hex::encode(&digest[..4]);
    let stem: String = text
        .chars()
        .take(longest - 9)
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    format!("{stem}_{suffix}")
}

/// Sorted, a line for each value, and a text of several lines as several lines, so that a diff shows the line that
/// changed.
fn write_pretty(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                out.push_str(&format!("\n{indent}{}: ", json!(key)));
                write_pretty(&fields[key], depth + 1, out);
            }
            out.push_str(&format!("\n{}}}", "  ".repeat(depth)));
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for item in items {
                out.push_str(&format!("\n{indent}"));
                write_pretty(item, depth + 1, out);
            }
            out.push_str(&format!("\n{}]", "  ".repeat(depth)));
        }
        Value::String(text) if text.contains('\n') => {
            out.push('"');
            for line in text.lines() {
                out.push_str(&format!("\n{indent}{line}"));
            }
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Definition, companion_id, id_of, namespace};

    fn check(native: &str, expected: &str) {
        assert_eq!(id_of("fs", native).unwrap().as_str(), expected);
    }

    #[test]
    fn native_names_become_ids_and_never_the_same_one() {
        check("read_file", "fs.read_file");
        check("repos/list.all:v2", "fs.repos/list.all:v2");
        check("größe x", "fs.gr__e_x_37eb26ca");
        assert_ne!(id_of("fs", "a b"), id_of("fs", "a_b"));
        assert_ne!(id_of("fs", &"x".repeat(300)), id_of("fs", &"x".repeat(301)));
        assert_ne!(id_of("fs", ":read"), companion_id("fs", "read"));
        assert_eq!(namespace("my-fs"), "my-fs");
        assert!(!namespace("my.fs").contains('.'));
    }

    #[test]
    fn the_digest_counts_what_is_pinned_in_any_order() {
        let read = |value| Definition::read(value, "fs").unwrap();
        let one = read(
            json!({ "name": "a", "description": "d", "inputSchema": { "type": "object", "x": 1 } }),
        );
        let same = read(
            json!({ "inputSchema": { "x": 1, "type": "object" }, "description": "d", "name": "a",
            "icons": [{ "src": "x" }], "title": null }),
        );
        let other = read(
            json!({ "name": "a", "description": "e", "inputSchema": { "type": "object", "x": 1 } }),
        );
        assert_eq!(one.digest(), same.digest());
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn a_rule_is_bound_to_the_definition_and_to_the_way_to_its_server() {
        let definition = |description: &str| {
            let entry = json!({ "name": "a", "description": description, "inputSchema": {} });
            Definition::read(entry, "fs").unwrap()
        };
        let digest = definition("reads").bound_digest("one");
        assert_eq!(digest, definition("reads").bound_digest("one"));
        assert_ne!(digest, definition("reads").bound_digest("two"));
        assert_ne!(digest, definition("sends").bound_digest("one"));
    }

    #[test]
    fn what_cannot_be_offered_is_told() {
        for (entry, code) in [
            (json!("x"), "invalid_spec"),
            (json!({ "inputSchema": {} }), "invalid_tool_name"),
            (json!({ "name": "a" }), "invalid_schema"),
            (
                json!({ "name": "a", "inputSchema": {}, "description": "x".repeat(600_000) }),
                "oversized",
            ),
        ] {
            assert_eq!(Definition::read(entry, "fs").unwrap_err().code, code);
        }
    }
}

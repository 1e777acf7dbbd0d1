//! Layer 1: the declaration of a tool.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Interface, Provenance, ToolId};

/// The portable identity and contract of one tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// The stable name, `namespace.name`.
    pub tool_id: ToolId,
    /// Other names a caller may use.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub aliases: Vec<String>,
    /// A short name for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The description for the model. Untrusted where the tool comes from outside.
    pub description: String,
    /// Search words that the description does not contain.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub search_hint: String,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// Whether the tool can be used at all.
    pub lifecycle: Lifecycle,
    /// The contract of the arguments.
    pub input: InputContract,
    /// The contract of the output.
    pub output: OutputContract,
    /// Whether its schema is shown from the start.
    pub loading: LoadingStrategy,
    /// Classification words, for filters and search.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tags: Vec<String>,
    /// The tool's own version.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub version: String,
    /// The collection it belongs to.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub toolkit: String,
    /// Conditions that a surface must meet before it shows the tool.
    #[serde(skip_serializing_if = "Requirements::is_empty", default)]
    pub requires: Requirements,
    /// Its names in other systems, never lost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub external_mappings: Vec<ExternalMapping>,
    /// Hints that came with the tool. Untrusted.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub annotations: Map<String, Value>,
    /// How the host validates, classifies, executes, renders and persists calls.
    pub interface: Interface,
    /// The kind of place that the tool comes from. The catalog sets it from the tool's source; a value that a source
    /// sets is overwritten, and no file or wire format carries it.
    #[serde(skip)]
    pub provenance: Provenance,
    /// The digest of the definition, from a source that pins definitions. A rule that is bound to a definition allows
    /// the tool with this definition only.
    #[serde(skip)]
    pub definition: Option<String>,
}

impl Declaration {
    /// A declaration with fail-closed defaults: any object in, unknown effects.
    pub fn new(tool_id: ToolId, description: impl Into<String>) -> Self {
        Self {
            tool_id,
            aliases: Vec::new(),
            title: None,
            description: description.into(),
            search_hint: String::new(),
            kind: ToolKind::Function,
            lifecycle: Lifecycle::Available,
            input: InputContract::default(),
            output: OutputContract::default(),
            loading: LoadingStrategy::Eager,
            tags: Vec::new(),
            version: String::new(),
            toolkit: String::new(),
            requires: Requirements::default(),
            external_mappings: Vec::new(),
            annotations: Map::new(),
            interface: Interface::default(),
            provenance: Provenance::default(),
            definition: None,
        }
    }
}

/// The kind of a tool; the filter `kind` selects by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A plain function.
    Function,
    /// Works on files.
    File,
    /// Runs commands.
    Shell,
    /// Makes requests.
    Http,
    /// Evaluates code.
    Code,
    /// A tool of an MCP server.
    Mcp,
    /// Works on earlier results.
    Result,
}

impl ToolKind {
    /// The name in filters and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::File => "file",
            Self::Shell => "shell",
            Self::Http => "http",
            Self::Code => "code",
            Self::Mcp => "mcp",
            Self::Result => "result",
        }
    }
}

/// Whether a tool can be used at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Ready.
    Available,
    /// An installation or a setting is missing; the text names it.
    RequiresSetup(String),
    /// Still works, but callers should move away.
    Deprecated,
    /// Switched off by the operator.
    Disabled,
}

/// Whether a tool's schema is shown from the start or after a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Loading")]
pub enum LoadingStrategy {
    /// In every list.
    Eager,
    /// Found by search; callable after the session has discovered it.
    Deferred,
    /// In no list. Only tools of the same source call it, while they run.
    Internal,
    /// In no list; a face calls it by its id for a protocol operation of its own, such as reading a resource.
    Companion,
}

/// The contract of a tool's arguments.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InputContract {
    /// JSON Schema 2020-12 of the arguments. Fields with `x-sensitive: true` are kept out of every record.
    pub schema: Arc<Value>,
    /// Example arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
}

impl Default for InputContract {
    fn default() -> Self {
        Self {
            schema: Arc::new(json!({ "type": "object" })),
            examples: Vec::new(),
        }
    }
}

/// The contract of a tool's output.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutputContract {
    /// JSON Schema of the structured content, for a tool that promises one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Arc<Value>>,
}

/// Conditions that a surface must meet before it shows the tool. An empty list is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Requirements {
    /// Abilities the model must have, such as `vision`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_capabilities: Vec<String>,
    /// Roles of which the caller must hold one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<crate::PrincipalRole>,
    /// Tasks or skills of which one must be active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

impl Requirements {
    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.model_capabilities.is_empty() && self.roles.is_empty() && self.tasks.is_empty()
    }
}

/// A tool's name in another system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalMapping {
    /// The system, such as `mcp` or `openapi`.
    pub system: String,
    /// The exact name in that system.
    pub native_id: String,
    /// For a system that is called by a template: the arguments that the host fills in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub template: Vec<String>,
}

impl ExternalMapping {
    /// A name in another system.
    pub fn new(system: impl Into<String>, native_id: impl Into<String>) -> Self {
        Self {
            system: system.into(),
            native_id: native_id.into(),
            template: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{Declaration, ExternalMapping, Lifecycle, LoadingStrategy, ToolKind};
    use crate::{
        AccessKind, ArgumentKind, ArgumentMeaning, CancelSupport, ClassFact, EffectClass,
        ExecutionKind, Interrupt, PersistStrategy, PrincipalRole, RiskLevel,
    };

    /// A declaration survives serialisation: reading it back and writing it again gives the same text.
    fn check(declaration: &Declaration) {
        let text = serde_json::to_string(declaration).unwrap();
        let read: Declaration = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{declaration:?}"));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn declarations_survive_being_written_and_read() {
        let mut declaration = Declaration::new("files.read_file".parse().unwrap(), "Reads.");
        check(&declaration);
        declaration.aliases = vec!["cat".to_owned()];
        declaration.title = Some("Read".to_owned());
        declaration.search_hint = "open".to_owned();
        declaration.kind = ToolKind::File;
        declaration.lifecycle = Lifecycle::RequiresSetup("a key".to_owned());
        declaration.input.schema =
            Arc::new(json!({ "type": "object", "required": ["path"], "z": 1, "a": 2.5 }));
        declaration.input.examples = vec![json!({ "path": "a" })];
        declaration.output.schema = Some(Arc::new(json!({ "type": "array" })));
        declaration.loading = LoadingStrategy::Deferred;
        declaration.tags = vec!["io".to_owned()];
        declaration.version = "2".to_owned();
        declaration.toolkit = "desk".to_owned();
        declaration.requires.roles = vec![PrincipalRole::Operator];
        declaration.requires.tasks = vec!["review".to_owned()];
        declaration.external_mappings = vec![
            ExternalMapping::new("mcp", "read-file"),
            ExternalMapping {
                template: vec!["{path}".to_owned()],
                ..ExternalMapping::new("cli", "cat")
            },
        ];
        declaration.annotations = json!({ "readOnlyHint": true }).as_object().unwrap().clone();
        let interface = &mut declaration.interface;
        interface.safety.class = ClassFact::Always(EffectClass::Read);
        interface.safety.destructive = true;
        interface.permission.risk = RiskLevel::Low;
        interface.permission.access = vec![AccessKind::FileRead];
        interface.permission.arguments = vec![ArgumentMeaning::of("path", ArgumentKind::ReadPath)];
        interface.execution.kind = ExecutionKind::LocalProcess;
        interface.execution.cancel = CancelSupport::Cooperative;
        interface.execution.interrupt = Interrupt::Cancel;
        interface.execution.timeout_ms = Some(1_000);
        interface.rendering.subject_argument = Some("path".to_owned());
        interface.persistence.max_inline_chars = Some(10);
        interface.persistence.strategy = PersistStrategy::NeverPersist;
        check(&declaration);
        declaration.interface.safety.class = ClassFact::ByInput;
        check(&declaration);
    }

    #[test]
    fn what_an_older_declaration_does_not_say_fails_closed() {
        let text = r#"{"tool_id":"a.b","description":"","kind":"function","lifecycle":"available",
            "input":{},"output":{},"loading":"eager","interface":{}}"#;
        let read: Declaration = serde_json::from_str(text).unwrap();
        assert_eq!(read.interface, crate::Interface::default());
        assert_eq!(*read.input.schema, json!({ "type": "object" }));
    }
}

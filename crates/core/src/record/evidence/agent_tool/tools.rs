//! Declarations, interfaces, profiles and surfaces.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolpost_model::{
    AccessKind, CancelSupport, ClassFact, ContentDigest, EffectClass, Effects, ExecutionKind,
    Interface, Lifecycle, LoadingStrategy, SandboxProfile, ToolId,
};

use super::{ExportError, RecordingHost, events, push, read, words};
use crate::record::{
    body::{CatalogBody, RecordBodyMember, SurfaceRecordBody},
    declared::{DeclaredTool, ToolTerms},
    journal::StoredRecord,
};

/// The tools that exist at this point of the record.
#[derive(Default)]
pub(super) struct DeclaredToolTable {
    known: HashMap<ToolId, DeclaredTool>,
    /// Declarations that are already exported, by their interface's id.
    told: HashSet<String>,
}

struct DeclarationExport<'a> {
    tool: &'a DeclaredTool,
    /// Distinguishes the versions of one tool.
    mark: String,
    at: Timestamp,
}

impl DeclarationExport<'_> {
    fn part(&self, kind: &str) -> String {
        format!("{}/{kind}@{}", self.tool.declaration.tool_id, self.mark)
    }
}

impl DeclaredToolTable {
    pub(super) fn get(&self, id: &ToolId) -> Option<&DeclaredTool> {
        self.known.get(id)
    }

    pub(super) fn catalog(
        &mut self,
        row: &StoredRecord,
        life: &RecordingHost,
        lines: &mut Vec<String>,
    ) -> Result<(), ExportError> {
        let piece: CatalogBody<Vec<RecordBodyMember<'_, DeclaredTool>>> = read(row)?;
        let is_news = piece.restated.is_none();
        if is_news && piece.whole && piece.part == 1 {
            self.known.clear();
        }
        for part in piece.declared {
            let tool = part.read().map_err(ExportError::of(row))?;
            let digest: [u8; 32] = Sha256::digest(part.text().as_bytes()).into();
            let mark = ContentDigest(digest).to_hex()[..12].to_owned();
            let declared = DeclarationExport {
                tool: &tool,
                mark,
                at: row.record.at,
            };
            if self.told.insert(declared.part("interface")) {
                declaration(&declared, lines);
                interface(&declared, lines);
                execution_profile(&declared, lines);
                permission_profile(&declared, lines);
                events::declared(row, &tool, &declared.part("interface"), life, lines);
            }
            let id = tool.declaration.tool_id.clone();
            if is_news {
                self.known.insert(id, tool);
            } else {
                self.known.entry(id).or_insert(tool);
            }
        }
        for id in piece.removed.iter().filter(|_| is_news) {
            self.known.remove(id);
            events::removed(row, id, life, lines);
        }
        Ok(())
    }

    pub(super) fn surface(
        &self,
        row: &StoredRecord,
        surface: &SurfaceRecordBody,
        life: &RecordingHost,
        told: &mut HashSet<String>,
        lines: &mut Vec<String>,
    ) {
        if !told.insert(surface.surface_id.to_string()) {
            return;
        }
        let all = surface
            .loaded
            .iter()
            .chain(&surface.deferred)
            .chain(surface.blocked.iter().map(|one| &one.tool_id));
        let request = &surface.request;
        push(
            lines,
            "tool_surface",
            json!({
                "surface_id": surface.surface_id,
                "scope": words::scope(request.scope),
                "tenant": request.tenant,
                "created_at": row.record.at,
                "producer": life.producer(),
                "tool_refs": all.collect::<Vec<_>>(),
                "loaded_tools": surface.loaded,
                "deferred_tools": surface.deferred,
                "blocked_tools": surface.blocked,
                "excluded_tools": [],
                "selection_policy": { "task": request.task, "skills": request.skills },
                "model_capabilities": { "abilities": request.model_capabilities },
                "role_constraints": { "role": surface.role },
                "surface_reason": "the first call of this host with this surface",
                "catalog_digest": surface.catalog,
            }),
        );
        for id in &surface.deferred {
            let known = self.known.get(id);
            push(
                lines,
                "deferred_tool",
                json!({
                    "tool_id": id,
                    "name": known.map_or(id.name(), |tool| &tool.name),
                    "namespace": id.namespace(),
                    "search_hint": known.map(|tool| &tool.declaration.search_hint),
                    "source": known.map(|tool| &tool.source),
                    "schema_visibility": "deferred",
                    "loading_state": "discoverable",
                    "reason": "it is listed once a search has shown it",
                    "surface_id": surface.surface_id,
                }),
            );
        }
        events::surface(row, surface, life, lines);
    }
}

fn declaration(declared: &DeclarationExport<'_>, lines: &mut Vec<String>) {
    let tool = declared.tool;
    let about = &tool.declaration;
    let setup = match &about.lifecycle {
        Lifecycle::RequiresSetup(what) => Some(what),
        Lifecycle::Available | Lifecycle::Deprecated | Lifecycle::Disabled => None,
    };
    push(
        lines,
        "tool_declaration",
        json!({
            "tool_id": about.tool_id,
            "namespace": about.tool_id.namespace(),
            "name": tool.name,
            "aliases": about.aliases,
            "search_hint": about.search_hint,
            "title": about.title,
            "description": about.description,
            "lifecycle": words::lifecycle(&about.lifecycle, about.loading == LoadingStrategy::Deferred),
            "setup": setup,
            "tool_kind": about.kind.as_str(),
            "capability_refs": about.requires.model_capabilities,
            "input_contract": {
                "schema": about.input.schema,
                "examples": about.input.examples,
                "sensitive": tool.settings.sensitive,
                "filled_in": tool.settings.filled_in,
            },
            "output_contract": { "schema": about.output.schema },
            "interface_ref": declared.part("interface"),
            "execution_profile_ref": declared.part("execution"),
            "permission_profile_ref": declared.part("permission"),
            "external_mappings": about.external_mappings,
            "annotations": about.annotations,
            "tags": about.tags,
            "version": about.version,
            "source": tool.source,
            "vouched_by": tool.vouched_by,
            "declared_at": declared.at,
        }),
    );
}

/// A fact that holds for every input, or a note that it depends on the input.
fn fact(class: ClassFact, tell: impl Fn(EffectClass) -> bool) -> Value {
    match class {
        ClassFact::Always(class) => tell(class).into(),
        ClassFact::ByInput => "by_input".into(),
    }
}

fn interface(declared: &DeclarationExport<'_>, lines: &mut Vec<String>) {
    let about = &declared.tool.declaration;
    let safety = &about.interface.safety;
    let permission = &about.interface.permission;
    let is_shared = declared
        .tool
        .settings
        .exclusive
        .map(|exclusive| Value::from(!exclusive));
    push(
        lines,
        "tool_interface",
        json!({
            "interface_id": declared.part("interface"),
            "tool_id": about.tool_id,
            "name": declared.tool.name,
            "aliases": about.aliases,
            "search_hint": about.search_hint,
            "model_input_schema": object(&about.input.schema),
            "runtime_input_schema": runtime_schema(object(&about.input.schema), &declared.tool.settings),
            "output_schema": about.output.schema.as_deref().map(object),
            "schema_visibility": if about.loading == LoadingStrategy::Deferred { "deferred" } else { "loaded" },
            "is_enabled": about.lifecycle != Lifecycle::Disabled,
            "is_read_only": fact(safety.class, |class| class == EffectClass::Read),
            "is_concurrency_safe":
                is_shared.unwrap_or_else(|| fact(safety.class, |class| Effects::of(class).concurrency_safe)),
            "is_destructive": safety.destructive,
            "is_open_world": fact(safety.class, |class| Effects::of(class).open_world),
            "requires_user_interaction": safety.requires_user_interaction,
            "classifier_input": permission.arguments,
            "permission_matcher": "rules over tool, class, paths, commands and URLs",
            "execution_profile_ref": declared.part("execution"),
            "permission_profile_ref": declared.part("permission"),
            "max_inline_chars": about.interface.persistence.max_inline_chars,
            "persistence": about.interface.persistence,
            "rendering": about.interface.rendering,
            "external_mappings": about.external_mappings,
        }),
    );
}

/// A schema may be `true` or `false`, which the draft cannot represent.
fn object(schema: &Value) -> Value {
    if schema.is_object() {
        schema.clone()
    } else {
        json!({ "allOf": [schema] })
    }
}

/// The schema of the arguments as the tool gets them, if it differs from the model's: the operator's defaults are
/// always present, references to credentials are values, and the operator's sensitive fields are marked.
fn runtime_schema(mut schema: Value, terms: &ToolTerms) -> Value {
    for name in &terms.filled_in {
        let required = schema
            .as_object_mut()
            .map(|schema| schema.entry("required").or_insert(json!([])));
        if let Some(required) = required.and_then(Value::as_array_mut)
            && !required.iter().any(|known| known == name)
        {
            required.push(name.as_str().into());
        }
        mark(
            &mut schema,
            &format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            "x-filled-in",
        );
    }
    for pointer in &terms.sensitive {
        mark(&mut schema, pointer, "x-sensitive");
    }
    if !terms.credentials.is_empty() {
        schema["x-credentials"] = json!(terms.credentials);
    }
    schema
}

/// Marks the schema of the value at a pointer, if the schema has one.
fn mark(schema: &mut Value, pointer: &str, word: &str) {
    let mut part = schema;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let is_place = name.parse::<usize>().is_ok() && part.get("items").is_some();
        let inner = if is_place {
            part.get_mut("items")
        } else {
            part.pointer_mut("/properties")
                .and_then(|all| all.get_mut(&name))
        };
        let Some(inner) = inner else { return };
        part = inner;
    }
    if let Value::Object(part) = part {
        part.insert(word.to_owned(), true.into());
    }
}

/// Whether its work is confined. Without a setting for the tool, the host's defaults or the tool's own configuration
/// apply, which the catalog does not record; the result of each call does.
fn is_sandboxed(kind: ExecutionKind, set: Option<SandboxProfile>) -> Option<bool> {
    match kind {
        ExecutionKind::LocalProcess | ExecutionKind::Shell => set.map(|set| match set {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => {
                true
            }
            SandboxProfile::None => false,
        }),
        ExecutionKind::EmbeddedRuntime | ExecutionKind::HttpApi | ExecutionKind::McpServer => {
            Some(false)
        }
    }
}

/// The reach of its network access. A tool that starts a program counts as one that may reach the network.
fn network_scope(interface: &Interface) -> &'static str {
    let has = |kind: AccessKind| interface.permission.access.contains(&kind);
    let starts_programs = has(AccessKind::CodeExecution);
    if has(AccessKind::Network) || has(AccessKind::ExternalSend) {
        return "open";
    }
    match (interface.safety.class, interface.execution.kind) {
        (ClassFact::Always(EffectClass::Read | EffectClass::Write), _) if !starts_programs => {
            "none"
        }
        (ClassFact::Always(EffectClass::Network), _) => "open",
        (_, ExecutionKind::LocalProcess | ExecutionKind::Shell) => "depends_on_sandbox",
        (_, ExecutionKind::EmbeddedRuntime | ExecutionKind::HttpApi | ExecutionKind::McpServer) => {
            "open"
        }
    }
}

fn execution_profile(declared: &DeclarationExport<'_>, lines: &mut Vec<String>) {
    let profile = &declared.tool.declaration.interface.execution;
    let settings = &declared.tool.settings;
    push(
        lines,
        "execution_profile",
        json!({
            "execution_profile_id": declared.part("execution"),
            "execution_kind": words::execution_kind(profile.kind),
            "supports_progress": profile.streaming,
            "supports_cancel": profile.cancel != CancelSupport::Unsupported,
            "supports_resume": false,
            "supports_retries": false,
            "supports_partial_results": true,
            "supports_background": true,
            "supports_artifacts": true,
            "supports_context_modifiers": false,
            "sandboxed": is_sandboxed(profile.kind, settings.sandbox),
            "sandbox_profile": settings.sandbox,
            "timeout_ms": settings.timeout_ms.or(profile.timeout_ms),
            "cancel": profile.cancel,
            "idempotent": profile.idempotent,
            "interrupt": profile.interrupt,
            "external_mappings": declared.tool.declaration.external_mappings,
        }),
    );
}

fn permission_profile(declared: &DeclarationExport<'_>, lines: &mut Vec<String>) {
    let interface = &declared.tool.declaration.interface;
    let profile = &interface.permission;
    let writes = match interface.safety.class {
        ClassFact::Always(EffectClass::Read) => "none",
        ClassFact::Always(EffectClass::Write) => "local_persistent",
        ClassFact::Always(EffectClass::Network) => "remote_mutation",
        ClassFact::Always(EffectClass::Execute | EffectClass::Unknown) | ClassFact::ByInput => {
            "irreversible"
        }
    };
    push(
        lines,
        "permission_profile",
        json!({
            "permission_profile_id": declared.part("permission"),
            "risk_level": words::risk(profile.risk),
            "access_kinds": profile.access.iter().map(|kind| words::access(*kind)).collect::<Vec<_>>(),
            "write_effects": [writes],
            "network_scope": network_scope(interface),
            "sandbox_profile": declared.tool.settings.sandbox,
            "approval_required": profile.approval_required || profile.approval_requested,
            "rule_matching_fields": profile.arguments.iter().map(|one| &one.pointer).collect::<Vec<_>>(),
            "redaction_required": !declared.tool.settings.sensitive.is_empty(),
        }),
    );
}

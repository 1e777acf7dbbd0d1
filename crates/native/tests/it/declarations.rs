use std::{path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolpost_model::{
    ClassFact, EffectClass, ErrorClass, ExecutionKind, LoadingStrategy, ToolKind,
};
use toolpost_native::{NATIVE_TOOL_NAMES, NativeParts, native_source};
use toolpost_processes::Workspace;

use crate::desk::{Desk, input, structured, text};

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn every_tool_declares_what_it_is() {
    let desk = Desk::new();
    let check = |name: &str,
                 kind: ToolKind,
                 class: EffectClass,
                 loading: LoadingStrategy,
                 required: Value| {
        let declaration = desk.tool(name).declaration();
        assert_eq!(
            (declaration.kind, declaration.loading),
            (kind, loading),
            "{name}"
        );
        assert_eq!(
            declaration.interface.safety.class,
            ClassFact::Always(class),
            "{name}"
        );
        assert_eq!(
            declaration.interface.execution.kind,
            ExecutionKind::EmbeddedRuntime
        );
        assert_eq!(
            declaration.interface.execution.idempotent,
            class == EffectClass::Read
        );
        assert!(
            declaration.title.is_some() && !declaration.search_hint.is_empty(),
            "{name}"
        );
        assert!(
            !declaration.tags.is_empty()
                && (name == "host.echo" || !declaration.input.examples.is_empty()),
            "{name}"
        );
        let schema = &declaration.input.schema;
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert_eq!(
            schema.get("required").unwrap_or(&json!([])),
            &required,
            "{name}"
        );
        let properties = schema["properties"].as_object().unwrap();
        assert!(
            properties
                .values()
                .all(|property| property["description"].is_string()),
            "{name}: {schema}"
        );
        for example in &declaration.input.examples {
            desk.tool(name).check(&input(example.clone())).unwrap();
        }
    };
    check(
        "files.read_file",
        ToolKind::File,
        EffectClass::Read,
        LoadingStrategy::Eager,
        json!(["path"]),
    );
    check(
        "files.write_file",
        ToolKind::File,
        EffectClass::Write,
        LoadingStrategy::Eager,
        json!(["path", "content"]),
    );
    let strings = json!(["path", "old_string", "new_string"]);
    check(
        "files.edit_file",
        ToolKind::File,
        EffectClass::Write,
        LoadingStrategy::Eager,
        strings,
    );
    check(
        "files.apply_patch",
        ToolKind::File,
        EffectClass::Write,
        LoadingStrategy::Eager,
        json!(["patch"]),
    );
    check(
        "files.move_file",
        ToolKind::File,
        EffectClass::Write,
        LoadingStrategy::Eager,
        json!(["from", "to"]),
    );
    check(
        "files.delete_file",
        ToolKind::File,
        EffectClass::Write,
        LoadingStrategy::Eager,
        json!(["path"]),
    );
    check(
        "files.list_directory",
        ToolKind::File,
        EffectClass::Read,
        LoadingStrategy::Eager,
        json!([]),
    );
    check(
        "files.file_info",
        ToolKind::File,
        EffectClass::Read,
        LoadingStrategy::Deferred,
        json!(["path"]),
    );
    let id = json!(["invocation_id"]);
    check(
        "calls.call_result",
        ToolKind::Result,
        EffectClass::Read,
        LoadingStrategy::Deferred,
        id.clone(),
    );
    check(
        "calls.call_cancel",
        ToolKind::Result,
        EffectClass::Read,
        LoadingStrategy::Deferred,
        id,
    );
    check(
        "host.echo",
        ToolKind::Function,
        EffectClass::Read,
        LoadingStrategy::Eager,
        json!(["message"]),
    );
}

#[test]
fn structured_results_fit_the_declared_schema() {
    let desk = Desk::new();
    desk.file("a.txt", "a\nb\n");
    desk.file("blob", "\0");
    desk.link("link", "a.txt");
    for (tool, arguments) in [
        ("files.read_file", json!({ "path": "a.txt", "limit": 1 })),
        ("files.read_file", json!({ "path": "blob" })),
        (
            "files.write_file",
            json!({ "path": "a.txt", "content": "new" }),
        ),
        (
            "files.edit_file",
            json!({ "path": "a.txt", "old_string": "new", "new_string": "newer" }),
        ),
        (
            "files.apply_patch",
            json!({ "patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-newer\n+newest\n" }),
        ),
        ("files.move_file", json!({ "from": "blob", "to": "moved" })),
        ("files.delete_file", json!({ "path": "moved" })),
        ("files.list_directory", json!({})),
        ("files.file_info", json!({ "path": "a.txt" })),
    ] {
        let schema = desk.tool(tool).declaration().output.schema.unwrap();
        let output = desk.call(tool, arguments).unwrap();
        let facts = structured(&output).as_object().unwrap();
        for key in facts.keys() {
            assert!(
                schema["properties"].get(key).is_some(),
                "{tool} gives `{key}`, which its schema does not know"
            );
        }
        for key in schema["required"].as_array().unwrap() {
            assert!(
                facts.contains_key(key.as_str().unwrap()),
                "{tool} does not give {key}"
            );
        }
    }
}

#[test]
fn unknown_arguments_are_refused() {
    let desk = Desk::new();
    let failed = desk
        .call("files.read_file", json!({ "path": "a.txt", "lines": 3 }))
        .unwrap_err();
    assert_eq!(failed.class, ErrorClass::InvalidArguments);
    assert!(failed.message.contains("`lines`"), "{failed:?}");
}

#[test]
fn echo_gives_the_message_back() {
    let desk = Desk::new();
    assert_eq!(
        text(
            &desk
                .call("host.echo", json!({ "message": "hi\n" }))
                .unwrap()
        ),
        "hi\n"
    );
}

#[test]
fn the_list_of_native_names_is_complete() {
    let home = TempDir::new().unwrap();
    let workspace = Arc::new(Workspace::open(home.path()).unwrap());
    let source = native_source(NativeParts {
        program: Some(PathBuf::from("/bin/true")),
        ..NativeParts::on(workspace)
    })
    .unwrap();
    let mut names: Vec<String> = source
        .tools()
        .map(|tool| tool.declaration().tool_id.name().to_owned())
        .collect();
    names.sort_unstable();
    assert_eq!(names, NATIVE_TOOL_NAMES);
}

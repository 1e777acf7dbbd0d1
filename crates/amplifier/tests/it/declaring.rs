//! Tools of modules as the catalog knows them.

use serde_json::{Value, json};
use toolpost_amplifier::{MAX_DESCRIPTION, MAX_SCHEMA, ModuleId, ToolSpec};

fn spec(name: &str, schema: &Value) -> ToolSpec {
    ToolSpec::new(name, schema.as_object().unwrap().clone()).describe("does it")
}

#[test]
fn ids_are_made_of_module_and_name() {
    for (module, name, id) in [
        ("tool-filesystem", "read_file", "tool-filesystem.read_file"),
        ("tool-web", "echo-tool", "tool-web.echo-tool"),
        ("my.module", "say hello!", "my_module.say_hello_"),
        ("m", "naïve", "m.na_ve"),
    ] {
        let declared = spec(name, &json!({}))
            .declare(&ModuleId::new(module))
            .unwrap();
        assert_eq!(declared.declaration.tool_id.as_str(), id);
        assert_eq!(declared.declaration.toolkit, module);
        assert_eq!(
            ToolSpec::native_name(&declared.declaration),
            name,
            "the module's own name is kept"
        );
        assert!(declared.notes.is_empty());
    }
    assert!(spec("", &json!({})).declare(&ModuleId::new("m")).is_err());
    assert!(
        spec(&"x".repeat(300), &json!({}))
            .declare(&ModuleId::new("m"))
            .is_err()
    );
}

#[test]
fn no_schema_means_any_object() {
    let declared = spec("t", &json!({})).declare(&ModuleId::new("m")).unwrap();
    assert_eq!(
        *declared.declaration.input.schema,
        json!({"type": "object"})
    );
    let schema = json!({"type": "object", "required": ["a"]});
    let declared = spec("t", &schema).declare(&ModuleId::new("m")).unwrap();
    assert_eq!(*declared.declaration.input.schema, schema);
}

#[test]
fn what_is_too_large_is_cut_or_left_out_and_told() {
    let mut long = spec("t", &json!({"description": "x".repeat(MAX_SCHEMA)}));
    long.description = Some("é".repeat(MAX_DESCRIPTION));
    let declared = long.declare(&ModuleId::new("m")).unwrap();
    assert_eq!(declared.declaration.description.len(), MAX_DESCRIPTION);
    assert_eq!(
        *declared.declaration.input.schema,
        json!({"type": "object"})
    );
    assert_eq!(declared.notes.len(), 2, "{:?}", declared.notes);
}

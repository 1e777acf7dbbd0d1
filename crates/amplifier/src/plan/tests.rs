use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::PlannedModule;

fn lookup(name: &str) -> Option<String> {
    match name {
        "ROOM" => Some("attic".to_owned()),
        "AMPLIFIER_MODULE_TOOL_A" => Some("./local/a".to_owned()),
        "AMPLIFIER_MODULE_TOOL_B" => Some("svn://x".to_owned()),
        _ => None,
    }
}

fn read(value: &Value) -> Result<(MountPlan, Vec<PlanNote>), PlanErrors> {
    MountPlan::read(
        value,
        PlanFile {
            name: "plan.yaml",
            folder: Path::new("/plans"),
            lookup: &lookup,
        },
    )
}

fn planned(values: &[Value]) -> Vec<PlannedModule> {
    let plan = values.iter().fold(MountPlan::default(), |under, value| {
        read(value).unwrap().0.over(under)
    });
    plan.settle().0
}

/// `kind id source config` of each module.
fn told(modules: &[PlannedModule]) -> Vec<String> {
    let line = |module: &PlannedModule| {
        let source = module
            .source
            .as_ref()
            .map_or("-".to_owned(), ToString::to_string);
        format!(
            "{:?} {} {source} {}",
            module.kind,
            module.id,
            Value::Object(module.config.clone())
        )
    };
    modules.iter().map(line).collect()
}

#[test]
fn tools_and_hooks_are_planned_and_the_rest_is_noted() {
    let value = json!({
        "session": { "orchestrator": "loop-basic", "context": { "module": "context-simple" } },
        "providers": [{ "module": "provider-x" }],
        "agents": {},
        "tools": [
            { "module": "tool-a", "source": "./mods/a", "config": { "in": "${ROOM}", "at": "${PORT:80}" } },
            { "module": "tool-b" },
        ],
        "hooks": [{ "module": "hooks-tool-dedupe", "source": "git+https://h/o/r@main" }],
        "tols": [],
    });
    let (plan, notes) = read(&value).unwrap();
    let (modules, more) = plan.settle();
    assert_eq!(
        told(&modules),
        [
            "Tool tool-a /plans/mods/a {\"in\":\"attic\",\"at\":\"80\"}",
            "Tool tool-b - {}",
            "Hook hooks-tool-dedupe git+https://h/o/r@main {}",
        ]
    );
    assert_eq!(
        (modules[0].place.as_str(), more),
        ("plan.yaml: tools[0]", Vec::new())
    );
    let mut noted: Vec<(&str, NoteWeight)> = notes
        .iter()
        .map(|note| (note.place.as_str(), note.weight))
        .collect();
    noted.sort_by_key(|(place, _)| *place);
    assert_eq!(
        noted,
        [
            ("plan.yaml: agents", NoteWeight::Info),
            ("plan.yaml: providers", NoteWeight::Info),
            ("plan.yaml: session", NoteWeight::Info),
            ("plan.yaml: tols", NoteWeight::Warning),
        ]
    );
}

#[test]
fn errors_have_the_names_of_amplifiers_checks() {
    let check = |value: Value, expected: &[&str]| {
        let found = match read(&value) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.0.into_iter().map(|error| error.check).collect(),
        };
        assert_eq!(found, expected, "{value}");
    };
    check(json!([]), &["root_type"]);
    check(json!(null), &[]);
    check(json!({ "session": 5 }), &["session_type"]);
    check(
        json!({ "session": { "orchestrator": 5 } }),
        &["session.orchestrator_type"],
    );
    check(
        json!({ "session": { "context": {} } }),
        &["session.context_module_required"],
    );
    check(json!({ "tools": {} }), &["tools_type"]);
    check(json!({ "tools": ["tool-a"] }), &["tools[0]_type"]);
    check(json!({ "tools": [{}] }), &["tools[0]_module_required"]);
    check(
        json!({ "tools": [{ "module": 5 }] }),
        &["tools[0]_module_type"],
    );
    check(
        json!({ "tools": [{ "module": " " }] }),
        &["tools[0]_module_empty"],
    );
    check(
        json!({ "tools": [{ "module": "../x" }] }),
        &["tools[0]_module_type"],
    );
    check(
        json!({ "tools": [{ "module": "a", "config": [] }] }),
        &["tools[0]_config_type"],
    );
    check(
        json!({ "tools": [{ "module": "a", "source": 5 }] }),
        &["tools[0]_source_type"],
    );
    check(
        json!({ "hooks": [{ "module": "a" }, { "module": "" }] }),
        &["hooks[1]_module_empty"],
    );
    check(json!({ "includes": {} }), &["includes_type"]);
    let error = read(&json!({ "tools": [{}] })).unwrap_err().to_string();
    assert_eq!(
        error,
        "plan.yaml: tools[0]: the key `module` is missing (tools[0]_module_required)"
    );
}

#[test]
fn later_plans_are_laid_over_earlier_ones() {
    let under = json!({ "tools": [
        { "module": "tool-a", "source": "/a", "config": { "paths": ["x"], "deep": { "one": 1 } } },
        { "module": "tool-b", "source": "/b" },
    ] });
    let over = json!({ "tools": [
        { "module": "tool-c" },
        { "module": "tool-a", "config": { "paths": ["x", "y"], "deep": { "two": 2 } } },
        { "module": "tool-b", "source": "/elsewhere" },
    ] });
    let modules = planned(&[under.clone(), over]);
    assert_eq!(
        told(&modules),
        [
            "Tool tool-a /a {\"paths\":[\"x\",\"y\"],\"deep\":{\"one\":1,\"two\":2}}",
            "Tool tool-b /elsewhere {}",
            "Tool tool-c - {}",
        ]
    );
    let list =
        json!({ "tools": [{ "module": "tool-a", "config": { "paths": { "replace": ["z"] } } }] });
    let modules = planned(&[under.clone(), list]);
    assert_eq!(modules[0].config["paths"], json!(["z"]));
    let all = json!({ "tools": { "replace": [{ "module": "tool-z" }] } });
    assert_eq!(told(&planned(&[under.clone(), all])), ["Tool tool-z - {}"]);
    let none = json!({ "tools": { "replace": [] } });
    assert_eq!(told(&planned(&[under, none])), Vec::<String>::new());
}

#[test]
fn ids_tell_entries_apart_and_reach_into_other_plans() {
    let under = json!({ "tools": [{ "id": "mine", "module": "tool-a", "config": { "x": 1 } }] });
    let over = json!({ "tools": [{ "id": "mine", "config": { "y": 2 } }, { "id": "nobody", "config": {} }] });
    let plan = read(&over).unwrap().0.over(read(&under).unwrap().0);
    let (modules, notes) = plan.settle();
    assert_eq!(
        told(&modules),
        ["Tool tool-a - {\"x\":1,\"y\":2}", "Tool nobody nobody {}"]
    );
    assert_eq!(
        (notes.len(), notes[0].place.as_str()),
        (1, "plan.yaml: tools[1]")
    );
    let twice = json!({ "tools": [{ "id": "one", "module": "tool-a" }, { "id": "two", "module": "tool-a" }] });
    let (modules, notes) = read(&twice).unwrap().0.settle();
    assert_eq!(notes.len(), 1);
    assert_eq!(told(&modules), ["Tool tool-a - {}", "Tool two two {}"]);
    assert!(
        matches!(&modules[1].source, Some(ModuleSource::Unspoken { why, .. }) if why.contains("twice"))
    );
}

#[test]
fn overrides_sources_and_the_environment_have_the_last_word() {
    let value = json!({
        "tools": [
            { "module": "tool-a", "source": "/a", "config": { "x": 1 } },
            { "module": "tool-b", "source": "/b" },
            { "module": "tool-c", "source": "/c" },
        ],
        "overrides": { "tool-c": { "source": "/other", "config": { "y": [1] } }, "unknown": {} },
        "sources": { "modules": { "tool-b": "/second" } },
    });
    let mut modules = planned(&[value]);
    assert_eq!(
        told(&modules),
        [
            "Tool tool-a /a {\"x\":1}",
            "Tool tool-b /second {}",
            "Tool tool-c /other {\"y\":[1]}"
        ]
    );
    let notes = override_sources(&mut modules, Path::new("/here"), &lookup);
    assert_eq!(
        modules[0].source.as_ref().unwrap().to_string(),
        "/here/local/a"
    );
    assert_eq!(modules[1].source.as_ref().unwrap().to_string(), "/second");
    assert_eq!(
        (notes.len(), notes[0].place.as_str()),
        (1, "AMPLIFIER_MODULE_TOOL_B")
    );
}

#[test]
fn overrides_are_found_by_id_too_and_that_counts_more() {
    let value = json!({
        "tools": [{ "id": "one", "module": "tool-a", "source": "/a" }],
        "overrides": {
            "one": { "source": "/exact", "config": { "y": 2 } },
            "tool-a": { "source": "/wide", "config": { "x": 1, "y": 1 } },
        },
    });
    assert_eq!(
        told(&planned(&[value])),
        ["Tool tool-a /exact {\"x\":1,\"y\":2}"]
    );
}

#[test]
fn a_source_that_is_not_spoken_is_the_modules_own_trouble() {
    let value = json!({ "tools": [
        { "module": "tool-a", "source": "C:\\mods" },
        { "module": "tool-b", "source": "/b" },
    ] });
    assert_eq!(
        told(&planned(&[value])),
        ["Tool tool-a C:\\mods {}", "Tool tool-b /b {}"]
    );
}

#[test]
fn a_bundle_names_what_it_builds_on() {
    let value = json!({
        "bundle": { "name": "mine", "version": "1" },
        "includes": ["./base.yaml", { "bundle": "git+https://h/o/r@main" }, "foundation:behaviors/x"],
    });
    let (plan, notes) = read(&value).unwrap();
    let told = |include: &BundleIncludeEntry| match &include.target {
        IncludeTarget::Source(source) => source.to_string(),
        IncludeTarget::Named { namespace, path } => format!("{path} of {namespace}"),
    };
    let includes: Vec<String> = plan.includes().iter().map(told).collect();
    assert_eq!(
        includes,
        [
            "/plans/base.yaml",
            "git+https://h/o/r@main",
            "behaviors/x of foundation"
        ]
    );
    assert_eq!(
        (plan.header().name.as_deref(), notes),
        (Some("mine"), Vec::new())
    );
}

#[test]
fn a_variable_without_a_value_is_told() {
    let value =
        json!({ "tools": [{ "module": "tool-a", "config": { "key": "${NOBODY_SET_THIS}" } }] });
    let (plan, notes) = read(&value).unwrap();
    assert_eq!(plan.settle().0[0].config["key"], json!(""));
    assert!(
        notes
            .iter()
            .any(|note| note.message.contains("`NOBODY_SET_THIS`")),
        "{notes:?}"
    );
}

//! Declared commands up to the point where a process would start: which declarations are taken, and what they say of
//! themselves.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolpost_model::{
    Declaration, EffectClass, Effects, Lifecycle, ResourceAccess, SessionId, SessionScope, Source,
    SourceSession, ToolId,
};
use toolpost_native::{
    CommandDeclaration, CommandError, CommandOutputFormat, CommandParameter, CommandParameterType,
    NativeParts, native_source,
};
use toolpost_processes::Workspace;

use crate::desk::input;

struct Bench {
    folder: TempDir,
    declaration: Declaration,
    session: Arc<dyn SourceSession>,
}

fn parameter(kind: CommandParameterType) -> CommandParameter {
    CommandParameter {
        kind,
        description: "what it is".to_owned(),
        required: false,
        default: None,
        allow_dash: false,
    }
}

fn command(argv: &[&str]) -> CommandDeclaration {
    CommandDeclaration::new(
        "try",
        "Tries",
        argv.iter().map(|one| (*one).to_owned()).collect(),
    )
}

fn with(
    mut command: CommandDeclaration,
    name: &str,
    parameter: CommandParameter,
) -> CommandDeclaration {
    command.parameters.insert(name.to_owned(), parameter);
    command
}

fn id() -> ToolId {
    ToolId::new("commands", "try").unwrap()
}

fn bench(command: CommandDeclaration) -> Result<Bench, CommandError> {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Arc::new(Workspace::open(folder.path()).unwrap());
    let source = native_source(NativeParts {
        commands: vec![command],
        ..NativeParts::on(workspace)
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let scope = SessionScope {
        session_id: SessionId::new("s"),
        principal: toolpost_model::Principal::agent("test"),
    };
    let session = runtime.block_on(source.open(&scope)).unwrap();
    let declared = runtime.block_on(source.list()).unwrap();
    let declaration = declared
        .into_iter()
        .find(|one| one.tool_id == id())
        .unwrap();
    Ok(Bench {
        folder,
        declaration,
        session,
    })
}

fn effects(bench: &Bench, arguments: Value) -> Effects {
    bench.session.effects(&id(), &input(arguments)).unwrap()
}

#[test]
fn a_declaration_that_cannot_work_says_why() {
    let check = |command: CommandDeclaration, words: &str| {
        let error = bench(command).map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(words) && said.starts_with("command `"),
            "{said}"
        );
    };
    let text = || parameter(CommandParameterType::Text { pattern: None });
    check(command(&[]), "`argv` is empty");
    check(command(&[""]), "`argv` is empty");
    check(
        with(command(&["{a}"]), "a", text()),
        "must not come from a parameter",
    );
    check(
        command(&["x", "{a}"]),
        "names the parameter `a`, which is not declared",
    );
    check(
        command(&["x", "{a?-v}"]),
        "names the parameter `a`, which is not declared",
    );
    check(
        with(command(&["x"]), "a", text()),
        "no argument uses the parameter `a`",
    );
    check(command(&["x", "{a"]), "cannot be read");
    check(
        with(
            command(&["x", "{a}"]),
            "a",
            parameter(CommandParameterType::Choice(Vec::new())),
        ),
        "no values to choose",
    );
    let pattern = parameter(CommandParameterType::Text {
        pattern: Some("(".to_owned()),
    });
    check(
        with(command(&["x", "{a}"]), "a", pattern),
        "not a regular expression",
    );
    let default = |kind, value| CommandParameter {
        default: Some(value),
        ..parameter(kind)
    };
    check(
        with(
            command(&["x", "{a}"]),
            "a",
            default(
                CommandParameterType::Integer {
                    minimum: None,
                    maximum: None,
                },
                json!("one"),
            ),
        ),
        "the default of `a`",
    );
    let both = CommandParameter {
        required: true,
        ..default(
            CommandParameterType::Integer {
                minimum: None,
                maximum: None,
            },
            json!(1),
        )
    };
    check(
        with(command(&["x", "{a}"]), "a", both),
        "is required, so its default",
    );
    check(
        with(command(&["x"]), "a-b", text()),
        "not a name for a parameter",
    );
    let named = |name: &str| CommandDeclaration {
        name: name.to_owned(),
        ..command(&["x"])
    };
    check(named("a b"), "a name can have up to 64 letters");
    check(named(""), "a name can have up to 64 letters");
    let environment = BTreeMap::from([("LD_PRELOAD".to_owned(), "x".to_owned())]);
    check(
        CommandDeclaration {
            environment,
            ..command(&["x"])
        },
        "`LD_PRELOAD` is never passed",
    );
    check(
        CommandDeclaration {
            success_codes: Vec::new(),
            ..command(&["x"])
        },
        "no exit code",
    );
    let outside = Some("../x".to_owned());
    check(
        CommandDeclaration {
            working_directory: outside,
            ..command(&["x"])
        },
        "leaves the workspace",
    );
}

#[test]
fn the_schema_comes_from_the_parameters() {
    let mut declared = command(&["x", "{n}", "{p}", "{c}", "{f?-f}", "{t}"]);
    let required = |kind| CommandParameter {
        required: true,
        ..parameter(kind)
    };
    declared = with(
        declared,
        "n",
        CommandParameter {
            default: Some(json!(3)),
            ..parameter(CommandParameterType::Integer {
                minimum: None,
                maximum: None,
            })
        },
    );
    declared = with(declared, "p", required(CommandParameterType::Path));
    declared = with(
        declared,
        "c",
        parameter(CommandParameterType::Choice(vec![
            "a".to_owned(),
            "b".to_owned(),
        ])),
    );
    declared = with(declared, "f", parameter(CommandParameterType::Boolean));
    declared = with(
        declared,
        "t",
        parameter(CommandParameterType::Text {
            pattern: Some("a|b".to_owned()),
        }),
    );
    declared.output = CommandOutputFormat::Json;
    let bench = bench(declared).unwrap();
    let expected = json!({
        "type": "object",
        "properties": {
            "c": { "type": "string", "enum": ["a", "b"], "description": "what it is" },
            "f": { "type": "boolean", "description": "what it is" },
            "n": { "type": "integer", "default": 3, "description": "what it is" },
            "p": { "type": "string", "minLength": 1, "description": "what it is (a path, relative to the workspace)" },
            "t": { "type": "string", "pattern": "^(?:a|b)$", "description": "what it is" },
        },
        "required": ["p"],
        "additionalProperties": false,
    });
    assert_eq!(*bench.declaration.input.schema, expected);
    assert!(bench.declaration.output.schema.is_none());
    assert!(
        matches!(bench.declaration.lifecycle, Lifecycle::RequiresSetup(_)),
        "there is no launcher here"
    );
}

#[test]
fn effects_come_from_the_class_and_the_paths() {
    let of_class = |class| {
        let declared = with(
            command(&["x", "{p}"]),
            "p",
            parameter(CommandParameterType::Path),
        );
        bench(CommandDeclaration { class, ..declared }).unwrap()
    };
    for (class, access) in [
        (EffectClass::Read, ResourceAccess::Read),
        (EffectClass::Write, ResourceAccess::Write),
    ] {
        let bench = of_class(class);
        let root = bench.folder.path().canonicalize().unwrap();
        let touched = effects(&bench, json!({ "p": "d/../a" }));
        assert_eq!(touched.class, class);
        let key = format!("path:{}", root.join("a").display());
        assert!(
            touched.uses.iter().all(|used| used.key.as_str() == key),
            "{touched:?}"
        );
        assert_eq!(
            (touched.uses[0].access, touched.concurrency_safe),
            (access, true)
        );
        // A program that is given a file to write can tell what was in it.
        assert!(
            touched
                .uses
                .iter()
                .any(|used| used.access == ResourceAccess::Read)
        );
        let nothing = effects(&bench, json!({}));
        assert_eq!(
            (nothing.uses.len(), nothing.concurrency_safe),
            (0, class == EffectClass::Read)
        );
    }
    let executing = effects(&of_class(EffectClass::Execute), json!({ "p": "a" }));
    assert!(!executing.concurrency_safe && !executing.idempotent);
}

#[test]
fn a_command_names_its_program_and_its_template() {
    let text = parameter(CommandParameterType::Text { pattern: None });
    let declared = bench(with(
        command(&["git", "log", "--grep={word}"]),
        "word",
        text,
    ))
    .unwrap()
    .declaration;
    let mapping = serde_json::to_value(&declared.external_mappings).unwrap();
    assert_eq!(
        mapping,
        json!([{ "system": "cli", "native_id": "git", "template": ["log", "--grep={word}"] }])
    );
    let alone = bench(command(&["true"])).unwrap().declaration;
    assert_eq!(
        serde_json::to_value(&alone.external_mappings).unwrap(),
        json!([{ "system": "cli", "native_id": "true" }])
    );
}

//! Declared commands through a whole host, with real processes.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};
use toolpost_model::{
    Disposition, EffectClass, ErrorClass, Outcome, ResultContent, SandboxProfile, ToolResult,
    ToolSettings,
};
use toolpost_native::{
    CommandDeclaration, CommandOutputFormat, CommandParameter, CommandParameterType,
};

use crate::workshop::{Tripwire, Workshop, facts, text};

fn parameter(kind: CommandParameterType) -> CommandParameter {
    CommandParameter {
        kind,
        description: "one".to_owned(),
        required: false,
        default: None,
        allow_dash: false,
    }
}

fn plain() -> CommandParameter {
    parameter(CommandParameterType::Text { pattern: None })
}

fn command(argv: &[&str], parameters: &[(&str, CommandParameter)]) -> CommandDeclaration {
    let argv = argv.iter().map(|one| (*one).to_owned()).collect();
    let mut declaration = CommandDeclaration::new("try", "Tries something", argv);
    declaration.parameters = parameters
        .iter()
        .map(|(name, one)| ((*name).to_owned(), one.clone()))
        .collect();
    declaration
}

async fn shop(declaration: CommandDeclaration) -> Workshop {
    Workshop::planned(|plan| plan.commands = vec![declaration]).await
}

async fn call(shop: &Workshop, arguments: Value) -> ToolResult {
    shop.call("try", arguments).await
}

/// Prints every argument on a line of its own.
const SHOW: [&str; 2] = ["printf", "<%s>\\n"];

#[tokio::test]
async fn every_template_becomes_one_argument_and_no_shell_sees_it() {
    let argv = [
        SHOW[0],
        SHOW[1],
        "{a}",
        "x={a}{b}",
        "{b}",
        "{flag?--flag}",
        "{b?--b}",
        "{{a}}",
    ];
    let parameters = [
        ("a", plain()),
        ("b", plain()),
        ("flag", parameter(CommandParameterType::Boolean)),
    ];
    let shop = shop(command(&argv, &parameters)).await;
    let check = async |arguments: Value, expected: &str| {
        let result = call(&shop, arguments).await;
        assert_eq!(text(&result), expected, "{result:#?}");
        assert_eq!(
            (result.outcome, result.exit_code),
            (Outcome::Succeeded, Some(0))
        );
    };
    check(
        json!({ "a": "$(touch x); `y` * ~ 'q\" \\n\nz" }),
        "<$(touch x); `y` * ~ 'q\" \\n\nz>\n<{a}>\n",
    )
    .await;
    check(
        json!({ "a": "1", "b": "2", "flag": true }),
        "<1>\n<x=12>\n<2>\n<--flag>\n<--b>\n<{a}>\n",
    )
    .await;
    check(
        json!({ "a": "1", "b": "", "flag": false }),
        "<1>\n<x=1>\n<>\n<--b>\n<{a}>\n",
    )
    .await;
    check(json!({}), "<{a}>\n").await;
    assert!(!shop.path("x").exists());
}

#[tokio::test]
async fn a_value_cannot_become_an_option() {
    let dashing = CommandParameter {
        allow_dash: true,
        ..plain()
    };
    let integer = parameter(CommandParameterType::Integer {
        minimum: None,
        maximum: None,
    });
    let argv = [
        SHOW[0],
        SHOW[1],
        "{lead}",
        "{lead}{inner}",
        "--x={inner}",
        "{free}",
        "{number}",
        "--",
        "{after}",
    ];
    let parameters = [
        ("lead", plain()),
        ("inner", plain()),
        ("free", dashing),
        ("number", integer),
        ("after", plain()),
    ];
    let shop = shop(command(&argv, &parameters)).await;
    let refused = async |arguments: Value, at: &str| {
        let error = call(&shop, arguments).await.error.unwrap();
        assert_eq!(error.class, ErrorClass::InvalidArguments);
        assert!(
            error.message.contains(at) && error.message.contains("begins with `-`"),
            "{}",
            error.message
        );
    };
    refused(json!({ "lead": "--rm" }), "/lead").await;
    refused(json!({ "number": -1 }), "/number").await;
    refused(json!({ "lead": "", "inner": "--rm" }), "/lead").await;
    let free = call(&shop, json!({ "inner": "-i", "free": "-f", "after": "-a" })).await;
    assert_eq!(text(&free), "<--x=-i>\n<-f>\n<-->\n<-a>\n");
}

#[tokio::test]
async fn values_are_checked_by_type_choice_and_pattern() {
    let choice = parameter(CommandParameterType::Choice(vec![
        "red".to_owned(),
        "blue".to_owned(),
    ]));
    let pattern = parameter(CommandParameterType::Text {
        pattern: Some("[a-z]+".to_owned()),
    });
    let with_default = CommandParameter {
        default: Some(json!("red")),
        ..choice
    };
    let required = CommandParameter {
        required: true,
        ..parameter(CommandParameterType::Number {
            minimum: Some(1.into()),
            maximum: Some(3.into()),
        })
    };
    let argv = [SHOW[0], SHOW[1], "{colour}", "{word}", "{n}"];
    let shop = shop(command(
        &argv,
        &[("colour", with_default), ("word", pattern), ("n", required)],
    ))
    .await;
    assert_eq!(
        text(&call(&shop, json!({ "n": 1.5 })).await),
        "<red>\n<1.5>\n"
    );
    assert_eq!(
        text(&call(&shop, json!({ "n": 2, "word": "ab", "colour": "blue" })).await),
        "<blue>\n<ab>\n<2>\n"
    );
    for (arguments, at) in [
        (json!({}), "n"),
        (json!({ "n": "1" }), "n"),
        (json!({ "n": 0.5 }), "n"),
        (json!({ "n": 3.5 }), "n"),
        (json!({ "n": 1, "colour": "green" }), "colour"),
        (json!({ "n": 1, "word": "ab1" }), "word"),
        (json!({ "n": 1, "word": "ab\nc" }), "word"),
        (json!({ "n": 1, "other": 1 }), "other"),
    ] {
        let error = call(&shop, arguments.clone()).await.error.unwrap();
        assert_eq!(error.class, ErrorClass::InvalidArguments, "{arguments}");
        assert!(error.message.contains(at), "{arguments}: {}", error.message);
    }
}

#[tokio::test]
async fn paths_are_located_inside_the_workspace() {
    let path = CommandParameter {
        required: true,
        ..parameter(CommandParameterType::Path)
    };
    let mut declared = command(&["cat", "{path}"], &[("path", path)]);
    declared.class = EffectClass::Read;
    let shop = shop(declared).await;
    shop.file("-n", "dash\n");
    shop.file("d/a.txt", "inside\n");
    std::os::unix::fs::symlink("d/a.txt", shop.path("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", shop.path("out")).unwrap();
    for (given, expected) in [
        ("d/a.txt", "inside\n"),
        ("link", "inside\n"),
        ("-n", "dash\n"),
        ("d/../-n", "dash\n"),
    ] {
        assert_eq!(
            text(&call(&shop, json!({ "path": given })).await),
            expected,
            "{given}"
        );
    }
    for given in ["../x", "/etc/passwd", "out"] {
        let error = call(&shop, json!({ "path": given })).await.error.unwrap();
        assert_eq!(
            error.class,
            ErrorClass::SandboxViolation,
            "{given}: {}",
            error.message
        );
    }
}

#[tokio::test]
async fn json_and_lines_are_read_from_standard_output_alone() {
    let run =
        async |output: CommandOutputFormat, script: &str, change: fn(&mut CommandDeclaration)| {
            let mut declared = command(&["bash", "-c", script], &[]);
            declared.output = output;
            change(&mut declared);
            call(&shop(declared).await, json!({})).await
        };
    let json = run(
        CommandOutputFormat::Json,
        "echo noise >&2; echo '{{\"a\": [1, 2]}}'",
        |_| {},
    )
    .await;
    assert_eq!(
        json.structured_content,
        Some(json!({ "a": [1, 2] })),
        "{json:#?}"
    );
    let broken = run(
        CommandOutputFormat::Json,
        "echo noise >&2; echo 'oops {{'",
        |_| {},
    )
    .await;
    let error = broken.error.clone().unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::ExecutionFailed, "not_json")
    );
    assert!(
        error.message.contains("`try` did not write JSON"),
        "{}",
        error.message
    );
    assert_eq!(
        broken.content,
        [
            ResultContent::text("oops {\n"),
            ResultContent::text("noise\n")
        ]
    );
    let large = run(
        CommandOutputFormat::Json,
        "printf '\"%01000d\"' 1",
        |declared| {
            declared.max_output = Some(100);
        },
    )
    .await;
    assert_eq!(large.error.unwrap().code, "output_too_large");
    let lines = run(
        CommandOutputFormat::Lines,
        "echo noise >&2; printf 'a\\n\\nb'",
        |_| {},
    )
    .await;
    assert_eq!(
        facts(&lines),
        &json!({ "lines": ["a", "", "b"], "total_lines": 3, "truncated": false })
    );
    let none = run(CommandOutputFormat::Lines, "true", |_| {}).await;
    assert_eq!(
        (none.disposition, text(&none)),
        (Disposition::Empty, "`try` wrote nothing")
    );
    assert_eq!(facts(&none)["total_lines"], 0);
    let cut = run(CommandOutputFormat::Lines, "seq 1 100", |declared| {
        declared.max_output = Some(10);
    })
    .await;
    assert_eq!(
        facts(&cut),
        &json!({ "lines": ["1", "2", "3", "4", "5"], "total_lines": 100, "truncated": true })
    );
}

#[tokio::test]
async fn exit_codes_decide_and_the_output_is_shown_either_way() {
    let mut declared = command(&["bash", "-c", "echo said; exit $CODE"], &[]);
    declared.environment = [("CODE".to_owned(), "3".to_owned())].into();
    let failed = call(&shop(declared.clone()).await, json!({})).await;
    let error = failed.error.clone().unwrap();
    assert_eq!(
        (failed.outcome, failed.exit_code, error.code.as_ref()),
        (Outcome::Failed, Some(3), "command_failed")
    );
    assert_eq!(error.message, "`try` failed: exit code 3");
    assert_eq!(text(&failed), "said\n[exit code 3]");
    declared.success_codes = vec![0, 3];
    let succeeded = call(&shop(declared).await, json!({})).await;
    assert_eq!(
        (succeeded.outcome, text(&succeeded)),
        (Outcome::Succeeded, "said\n[exit code 3]")
    );
}

#[tokio::test]
async fn input_comes_from_a_template_or_is_closed() {
    let mut declared = command(&["cat"], &[("text", plain())]);
    declared.stdin = Some("<{text}>\n".to_owned());
    let shop1 = shop(declared).await;
    assert_eq!(
        text(&call(&shop1, json!({ "text": "--any\nthing" })).await),
        "<--any\nthing>\n"
    );
    let closed = shop(command(&["cat"], &[])).await;
    let result = call(&closed, json!({})).await;
    assert_eq!(
        (result.outcome, text(&result)),
        (Outcome::Succeeded, "`try` wrote nothing")
    );
    assert_eq!(result.disposition, Disposition::Empty);
}

#[tokio::test]
async fn the_class_chooses_the_profile_unless_the_operator_does() {
    let mut declared = command(&["touch", "made"], &[]);
    declared.class = EffectClass::Read;
    let reading = shop(declared.clone()).await;
    let refused = call(&reading, json!({})).await;
    assert_eq!(
        refused.sandbox.as_ref().unwrap().requested,
        SandboxProfile::ReadOnly
    );
    assert!(
        refused
            .error
            .unwrap()
            .hint
            .unwrap()
            .contains("looks like the sandbox refused")
    );
    assert!(!reading.path("made").exists());
    declared.profile = Some(SandboxProfile::WorkspaceWrite);
    let writing = shop(declared).await;
    assert_eq!(call(&writing, json!({})).await.outcome, Outcome::Succeeded);
    assert!(writing.path("made").exists());
}

#[tokio::test]
async fn the_operator_s_time_limit_holds() {
    let declared = command(
        &[
            "bash",
            "-c",
            "exec 9>wire; echo begun; setsid sleep 1000 & sleep 1000",
        ],
        &[],
    );
    let mut limited = ToolSettings::default();
    limited.execution.timeout = Some(Duration::from_secs(1));
    let shop = Workshop::governed(
        |plan| plan.commands = vec![declared],
        |builder| builder.settings(HashMap::from([("try".to_owned(), limited)])),
    )
    .await;
    let wire = Tripwire::lay(&shop, "wire");
    let mut request = shop.host.request("try", json!({}));
    request.times.timeout = Some(Duration::from_secs(50));
    let answer = shop.host.host.call(request).await;
    assert_eq!(answer.result().outcome, Outcome::TimedOut);
    assert_eq!(text(answer.result()), "begun\n[stopped]");
    wire.sprung().await;
}

#[tokio::test]
async fn long_text_is_kept() {
    let mut declared = command(&["seq", "1", "20000"], &[]);
    declared.max_output = Some(300);
    declared.working_directory = Some(".".to_owned());
    let shop = shop(declared).await;
    let result = call(&shop, json!({})).await;
    assert!(
        text(&result).len() < 600 && text(&result).ends_with("\n20000\n"),
        "{}",
        text(&result)
    );
    let id = facts(&result)["ref"].as_str().unwrap().to_owned();
    let rest = shop
        .call(
            "read_result",
            json!({ "ref": id, "offset": 24, "limit": 3 }),
        )
        .await;
    assert_eq!(text(&rest), "24\n25\n26\n");
}

#[tokio::test]
async fn a_command_runs_under_the_span_of_its_call() {
    let shop = shop(command(&["printenv", "TRACEPARENT"], &[])).await;
    let result = call(&shop, json!({})).await;
    let span = toolpost_model::TraceContext::of_call(result.invocation_id).traceparent();
    assert_eq!(text(&result).trim_end(), span, "{result:#?}");
}

//! `toolpost validate`: what `toolpost new` makes passes, and each way to break it fails the check that is about it.

#[cfg(any(feature = "grpc", feature = "wasm"))]
mod others;

use std::{path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;

use crate::home::{Home, Ran};

const PACKAGE: &str = "tool-word-count/amplifier_module_tool_word_count/__init__.py";

/// The interpreter itself, whatever stands for it on the `PATH`.
fn python() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let asked = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .unwrap();
        String::from_utf8(asked.stdout).unwrap().trim().to_owned()
    })
}

fn scaffold() -> Home {
    let home = Home::new();
    home.run(&["new", "tool", "word-count", "--lang", "python"])
        .expect(0);
    home
}

fn validate(home: &Home, arguments: &[&str]) -> Ran {
    home.run(&[&["validate", "--python", python()], arguments].concat())
}

/// The checks that failed, each with its weight.
fn failed(report: &Value) -> Vec<(String, String)> {
    let checks = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["passed"] == false);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut failed: Vec<_> = checks
        .map(|check| (text(&check["name"]), text(&check["severity"])))
        .collect();
    failed.dedup();
    failed
}

/// The same in short: `name` for an error, `name?` for a warning.
fn marks(report: &Value) -> Vec<String> {
    let marked = |(name, severity): (String, String)| match severity.as_str() {
        "error" => name,
        "warning" => format!("{name}?"),
        other => panic!("{name} fails as {other}"),
    };
    failed(report).into_iter().map(marked).collect()
}

/// Breaks the new module in one way, and compares what fails.
#[track_caller]
fn check(change: &[(&str, &str)], expected: &[&str]) {
    let home = scaffold();
    let mut source = home.read(PACKAGE);
    for (from, to) in change {
        assert!(source.contains(from), "`{from}` is not there to be changed");
        source = source.replace(from, to);
    }
    home.write(PACKAGE, &source);
    let ran = validate(&home, &["tool-word-count", "--json"]);
    let report = ran.json();
    let found = marks(&report);
    assert_eq!(found, expected, "{report:#}");
    let passes = expected.iter().all(|name| name.ends_with('?'));
    assert_eq!(
        (report["passed"] == true, ran.code),
        (passes, i32::from(!passes)),
        "{report:#}"
    );
}

#[test]
fn a_new_python_module_passes() {
    let home = scaffold();
    let arguments = ["validate", "--python", python(), "tool-word-count"];
    let ran = home.run(&arguments).expect(0);
    let shown = ["validate", "tool-word-count"];
    home.compare("validate_python", &shown, &ran);
    // The package's own folder, from inside, and as JSON.
    let ran = validate(
        &home,
        &[
            "tool-word-count/amplifier_module_tool_word_count",
            "--json",
            "--type",
            "tool",
        ],
    );
    home.compare(
        "validate_python_json",
        &["validate", "--json", "--type", "tool"],
        &ran,
    );
    assert_eq!(ran.json()["passed"], true);
}

#[test]
fn a_module_without_calls_is_only_looked_at() {
    let home = scaffold();
    let report = validate(&home, &["tool-word-count", "--no-calls", "--json"])
        .expect(0)
        .json();
    let names: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"tool_execute") && !names.contains(&"empty_input"),
        "{names:?}"
    );
}

#[test]
fn it_is_mounted_once_and_with_the_configuration_that_is_given() {
    let home = scaffold();
    let source = home.read(PACKAGE);
    let counted = "    import os\n    descriptor = os.open('mounts', os.O_CREAT | os.O_APPEND | os.O_WRONLY)\n    \
                   os.write(descriptor, b'x')\n    if os.fstat(descriptor).st_size > 1 or (config or {}).get('limit') != 5:\n        \
                   raise RuntimeError('mounted twice, or without its configuration')\n    tool = ";
    home.write(PACKAGE, &source.replacen("    tool = ", counted, 1));
    validate(
        &home,
        &["tool-word-count", "--mount-config", r#"{"limit": 5}"#],
    )
    .expect(0);
    validate(&home, &["tool-word-count"]).expect(1);
}

#[test]
fn what_cannot_be_loaded() {
    check(
        &[(
            "import logging\n",
            "import logging\nimport nowhere_to_be_found\n",
        )],
        &["module_importable"],
    );
    check(
        &[("async def mount(", "async def mounting(")],
        &["mount_exists"],
    );
}

#[test]
fn what_does_not_mount() {
    let started = "    tool = WordCountTool(coordinator, config or {})\n";
    check(
        &[(started, "    raise RuntimeError('not today')\n")],
        &["protocol_compliance"],
    );
    check(&[(started, "    return None\n")], &["protocol_compliance"]);
    check(
        &[
            (
                "coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> None",
                "coordinator)",
            ),
            ("config or {}", "{}"),
        ],
        &["mount_signature", "protocol_compliance"],
    );
}

#[test]
fn tools_that_are_not_quite_tools() {
    check(
        &[
            ("    name = \"word_count\"\n", "    name = \"\"\n"),
            ("name=tool.name", "name=\"word_count\""),
        ],
        &["tool_name"],
    );
    check(&[("name=tool.name", "name=\"counting\"")], &["mount_name?"]);
    check(
        &[("    description = \"Counts", "    summary = \"Counts")],
        &["protocol_compliance", "tool_description?"],
    );
    check(
        &[("    input_schema = {", "    schema = {")],
        &["tool_input_schema?"],
    );
    check(
        &[("\"required\": [\"text\"]", "\"required\": [\"words\"]")],
        &["input_schema_valid"],
    );
    check(
        &[("\"type\": \"object\"", "\"type\": \"objekt\"")],
        &["input_schema_valid"],
    );
}

#[test]
fn what_the_contract_asks_for_beside_the_tool() {
    check(
        &[("coordinator.register_contributor(", "(lambda *_: None)(")],
        &["observability_events?"],
    );
    check(
        &[
            ("import logging\n", ""),
            (
                "logging.getLogger(__name__)",
                "__import__(\"log\" + \"ging\").getLogger(__name__)",
            ),
        ],
        &["logging?"],
    );
    check(
        &[(
            "__amplifier_module_type__ = \"tool\"",
            "__amplifier_module_type__ = \"hook\"",
        )],
        &["module_type"],
    );
    check(
        &[(
            "async def mount(",
            "def on_session_ready(coordinator):\n    pass\n\n\nasync def mount(",
        )],
        &["on_session_ready_async"],
    );
}

#[test]
fn the_entry_point_must_be_there() {
    let home = scaffold();
    let project = "tool-word-count/pyproject.toml";
    let text = home.read(project);
    for (changed, expected) in [
        (text.replace(":mount", ":start"), "error"),
        (text.replace("amplifier.modules", "others.modules"), "error"),
    ] {
        home.write(project, &changed);
        let report = validate(&home, &["tool-word-count", "--no-calls", "--json"])
            .expect(1)
            .json();
        assert_eq!(
            failed(&report),
            [("entry_point".to_owned(), expected.to_owned())]
        );
    }
    std::fs::remove_file(home.workspace().join(project)).unwrap();
    let report = validate(&home, &["tool-word-count", "--no-calls", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        failed(&report),
        [("entry_point".to_owned(), "warning".to_owned())]
    );
}

const BEGINS: &str = "        text, top = input.get(\"text\"), input.get(\"top\", 3)\n";

#[test]
fn results_that_are_none() {
    check(
        &[(
            "return ToolResult(success=False, error={\"message\": message, \"type\": kind})",
            "return {\"success\": False, \"error\": {\"message\": message}}",
        )],
        &["result_type"],
    );
    check(
        &[("error={\"message\": message, \"type\": kind}", "error=None")],
        &["error_handling?"],
    );
    check(
        &[(
            BEGINS,
            "        text, top = input[\"text\"], input.get(\"top\", 3)\n",
        )],
        &["empty_input", "error_handling?"],
    );
    check(
        &[("if not isinstance(text, str):", "if text is None:")],
        &["wrong_types?", "error_handling?"],
    );
}

#[test]
fn schemas_that_do_not_tell_the_truth() {
    check(
        &[
            ("if not isinstance(text, str):", "if False:"),
            ("len(text)", "0"),
            ("count_words(text, top)", "{\"words\": 0}"),
        ],
        &["schema_honesty?"],
    );
    check(
        &[(
            "        try:\n            output = ",
            "        if True:\n            raise KeyError(\"colour\")\n        try:\n            output = ",
        )],
        &["error_handling?", "schema_honesty?"],
    );
}

#[test]
fn a_tool_that_refuses_its_valid_calls() {
    check(
        &[(
            "return ToolResult(success=True, output=output)",
            "return await self._failed(\"the service is closed\", \"RuntimeError\")",
        )],
        &["valid_call?"],
    );
}

#[test]
fn noise_and_deafness() {
    check(
        &[(BEGINS, &format!("{BEGINS}        print(\"here I am\")\n"))],
        &["print_noise?"],
    );
    let deaf =
        "        try:\n            import time\n            time.sleep(4)\n            output = ";
    check(
        &[("        try:\n            output = ", deaf)],
        &["deadline?", "cancel?"],
    );
}

#[test]
fn a_command_that_is_wrong_is_no_failed_validation() {
    let home = scaffold();
    home.check("validate_nothing_there", &["validate", "tool-nowhere"]);
    home.run(&["validate", "tool-word-count", "--type", "provider"])
        .expect(2);
    home.run(&["validate", "tool-word-count", "--mount-config", "[1]"])
        .expect(2);
}

#[test]
fn what_is_not_a_module_is_told_so() {
    let home = Home::new();
    std::fs::create_dir(home.workspace().join("empty")).unwrap();
    home.check("validate_empty_folder", &["validate", "empty"]);
    for (name, manifest, expected) in [
        ("no-type", "[module]\ntransport = \"grpc\"\n", "manifest"),
        (
            "no-endpoint",
            "[module]\ntransport = \"grpc\"\ntype = \"tool\"\n",
            "manifest",
        ),
        (
            "no-component",
            "[module]\ntransport = \"wasm\"\ntype = \"tool\"\n",
            "module_importable",
        ),
        (
            "no-program",
            "[module]\ntransport = \"rust\"\ntype = \"tool\"\ncrate = \"x\"\n",
            "module_importable",
        ),
    ] {
        std::fs::create_dir(home.workspace().join(name)).unwrap();
        home.write(&format!("{name}/amplifier.toml"), manifest);
        let report = home.run(&["validate", name, "--json"]).expect(1).json();
        assert_eq!(
            failed(&report),
            [(expected.to_owned(), "error".to_owned())],
            "{report:#}"
        );
    }
    home.run(&["new", "tool", "greet", "--lang", "rust"])
        .expect(0);
    std::fs::remove_file(home.workspace().join("tool-greet/amplifier.toml")).unwrap();
    let ran = home.run(&["validate", "tool-greet"]).expect(1);
    assert!(
        ran.stdout
            .contains("hint: for the crate here, add an `amplifier.toml`"),
        "{}",
        ran.stdout
    );
}

/// A module that needs the real `amplifier-core` finds it in the Python that is named.
#[test]
fn a_new_module_passes_beside_amplifier_core() {
    let peer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/bin/python");
    assert!(peer.exists(), "the packages are missing: cargo xtask peers");
    let home = scaffold();
    let ran = home.run(&[
        "validate",
        "tool-word-count",
        "--json",
        "--python",
        peer.to_str().unwrap(),
    ]);
    let report = ran.expect(0).json();
    assert_eq!(failed(&report), []);
    let imported = report["checks"][0]["message"].as_str().unwrap();
    assert!(imported.contains("with amplifier-core 2."), "{imported}");
}

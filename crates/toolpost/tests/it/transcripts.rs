//! The commands and outputs that the pages of `docs` show: a script runs each page from an empty home and compares.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// One test for each page, so that a run names the page that is stale.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $test() {
                let output = script("transcripts.py", &["--binary", BINARY, "--page", $page]);
                assert!(output.status.success(), "{}", printed(&output));
            }
        )*
    };
}

pages! {
    a2a: "a2a",
    a2e: "a2e",
    a2e_client: "a2e-client",
    amplifier: "amplifier",
    approvals: "approvals",
    command_line: "command-line",
    commands: "commands",
    configuration: "configuration",
    evidence: "evidence",
    hooks: "hooks",
    http: "http",
    journal: "journal",
    mcp: "mcp",
    mcp_servers: "mcp-servers",
    native_tools: "native-tools",
    new_tool: "new-tool",
    permissions: "permissions",
    python_modules: "python-modules",
    quick_start: "quick-start",
    redaction: "redaction",
    replay: "replay",
    results: "results",
    run_code: "run-code",
    sandbox: "sandbox",
    scheduling: "scheduling",
    shell: "shell",
    tool_events: "tool-events",
    watching: "watching",
}

const BINARY: &str = env!("CARGO_BIN_EXE_toolpost");

fn script(name: &str, arguments: &[&str]) -> Output {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/transcripts");
    Command::new("python3")
        .arg(folder.join(name))
        .args(arguments)
        .env("TOOLPOST_BIN", BINARY)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    format!(
        "{}{}\nhint: xtask/transcripts/README.md",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// `--list` fails if a page shows commands and has neither a stage nor a reason.
#[test]
fn every_page_with_commands_has_a_test() {
    let output = script("transcripts.py", &["--list"]);
    assert!(output.status.success(), "{}", printed(&output));
    let listed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(listed.lines().collect::<Vec<_>>(), PAGES);
}

#[test]
fn the_comparison_finds_what_differs() {
    let output = script("self_test.py", &[]);
    let report = printed(&output);
    assert!(output.status.success(), "{report}");
    assert!(
        !report.contains("skipped") && !report.contains("Ran 0 tests"),
        "{report}"
    );
}

//! What the command says when nothing much is asked of it: lists, help, references, the doctor.

use super::home::Home;

#[test]
fn alone_it_shows_a_page_that_helps() {
    Home::new().check("welcome", &[]).expect(0);
}

#[test]
fn help_lists_every_command() {
    Home::new().check("help", &["--help"]).expect(0);
    Home::new()
        .check("help_call", &["call", "--help"])
        .expect(0);
    let version = Home::new().run(&["--version"]).expect(0);
    assert_eq!(
        version.stdout,
        format!("toolpost {}\n", env!("CARGO_PKG_VERSION"))
    );
    Home::new().check("unknown_command", &["cal"]).expect(2);
}

#[test]
fn tools_are_listed_and_searched() {
    let home = Home::new();
    home.check("tools", &["tools"]).expect(0);
    home.check("tools_json", &["tools", "--json"]).expect(0);
    home.check("tools_openai", &["tools", "--format", "openai"])
        .expect(0);
    home.check("tools_search", &["tools", "digest", "--deferred"])
        .expect(0);
    home.check("tools_search_without_deferred", &["tools", "checksum"])
        .expect(1);
    home.check(
        "tools_filtered",
        &[
            "tools", "--kind", "file", "--tag", "files", "--tag", "write",
        ],
    )
    .expect(0);
    home.check("tools_hidden", &["tools", "--hidden", "--mode", "plan"])
        .expect(0);
    home.check("tools_bad_format", &["tools", "--format", "xml"])
        .expect(2);
    let limited = home.run(&["tools", "--limit", "1"]).expect(0);
    assert_eq!(limited.stdout.lines().count(), 1);
}

#[test]
fn every_format_is_json_with_the_same_tools() {
    let home = Home::new();
    for (format, pointer) in [
        ("toolpost", "/tools/0/name"),
        ("openai", "/0/function/name"),
        ("anthropic", "/0/name"),
        ("gemini", "/0/functionDeclarations/0/name"),
        ("mcp", "/tools/0/name"),
    ] {
        let list = home.run(&["tools", "--format", format]).expect(0).json();
        assert_eq!(list.pointer(pointer).unwrap(), "read_file", "{format}");
    }
}

#[test]
fn completions_know_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).expect(0).stdout;
        for word in ["serve", "explain", "journal"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    home.run(&["completions", "tcl"]).expect(2);
}

#[test]
fn the_references_are_whole() {
    let home = Home::new();
    let cli = home.run(&["reference", "cli"]).expect(0).stdout;
    for part in [
        "# The command line",
        "### `toolpost serve`",
        "#### `toolpost journal verify`",
        "Exit codes: 0 done",
    ] {
        assert!(cli.contains(part), "`{part}` is missing");
    }
    assert!(
        !cli.contains("`toolpost reference`"),
        "what is hidden stays hidden"
    );
    let errors = home.run(&["reference", "errors"]).expect(0).stdout;
    assert!(errors.contains("| `schema_not_loaded` |"));
    let configuration = home.run(&["reference", "configuration"]).expect(0).stdout;
    assert!(configuration.contains("argument_bytes"));
    let schema = home.run(&["reference", "config-schema"]).expect(0).json();
    assert!(schema["properties"]["rules"].is_object());
    let openapi = home.run(&["reference", "openapi"]).expect(0).json();
    assert!(openapi["paths"]["/tools/{name}/call"].is_object());
}

#[test]
fn the_doctor_tells_what_is_in_place() {
    let home = Home::new();
    home.check("doctor_fresh", &["doctor"]).expect(0);
    home.run(&["call", "echo", "message=hi"]).expect(0);
    home.check("doctor", &["doctor"]).expect(0);
    let told = home.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!(told["healthy"], true);
    home.write("toolpost.yaml", "mode: plan\nrules: [allow write_file]\n");
    home.check("doctor_untrusted", &["doctor"]).expect(0);
    home.write("toolpost.yaml", "mode: plann\n");
    home.check("doctor_bad_configuration", &["doctor"])
        .expect(1);
}

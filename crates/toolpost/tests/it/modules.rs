//! Modules of mount plans on their way to this machine: real repositories, real archives over HTTP, real packages, and
//! what becomes of them when somebody changes what is kept.

mod archives;
mod fail_closed;
mod git;
mod git_tls;
mod packages;
pub(crate) mod place;

use std::fs;

use place::Place;

use crate::served::Served;

#[test]
fn a_path_is_used_where_it_is() {
    let place = Place::new();
    place.module("mods/tool-here", "tool-here", "");
    place.plan("tools:\n  - { module: tool-here, source: ./mods/tool-here }\n");
    let listed = place.modules(&["list", "--json"]).expect(0).json();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["transport"]),
        (&"in_place".into(), &"python".into()),
        "{listed}"
    );
    let fetched = place.modules(&["fetch", "--json"]).expect(0).json();
    assert_eq!(
        fetched["modules"][0]["root"],
        place.path("mods/tool-here").to_str().unwrap()
    );
    assert!(!place.cache().exists(), "nothing had to be kept");
    fs::remove_dir_all(place.path("mods")).unwrap();
    let gone = place.modules(&["list"]).expect(1);
    assert!(
        gone.stdout.contains("broken") && gone.stdout.contains("does not exist"),
        "{}",
        gone.stdout
    );
}

#[test]
fn the_environment_has_the_last_word_on_where_a_module_is() {
    let place = Place::new();
    place.module("elsewhere", "tool-here", "");
    place.plan("tools:\n  - { module: tool-here, source: ./nowhere }\n");
    place.modules(&["list"]).expect(1);
    let mut command = place.command(&["list", "--json"]);
    let ran = command
        .env("AMPLIFIER_MODULE_TOOL_HERE", place.path("elsewhere"))
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        listed[0]["source"],
        place.path("elsewhere").to_str().unwrap()
    );
    assert_eq!(listed[0]["state"], "in_place");
}

#[test]
fn a_source_that_is_not_spoken_here_fails_alone() {
    let place = Place::new();
    place.module("mods/tool-here", "tool-here", "");
    place.plan(
        "tools:\n  - { module: tool-here, source: ./mods/tool-here }\n  - { module: tool-there, source: 'C:\\mods' }\n",
    );
    let tools = place.run("tools", &["--json"]).expect(6).json();
    assert_eq!(tools["unavailable"][0]["part"], "tool-there", "{tools}");
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"amplifier_module_tool_here"), "{names:?}");
}

#[test]
fn doctor_tells_what_a_running_host_misses() {
    let place = Place::new();
    place.module("mods/tool-here", "tool-here", "");
    place.plan(
        "tools:\n  - { module: tool-here, source: ./mods/tool-here }\n  - { module: tool-gone, source: ./mods/tool-gone }\n",
    );
    let host =
        Served::spawn(&mut place.command_of("serve", &["--http", "127.0.0.1:0"], &place.cache()));
    // The host's own plan counts, whatever doctor is given.
    let told = place.home.run(&["doctor", "--json"]).expect(1).json();
    let tools = told["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["what"] == "tools")
        .unwrap();
    assert_eq!(tools["state"], "bad", "{told}");
    assert!(
        tools["text"].as_str().unwrap().contains("tool-gone"),
        "{told}"
    );
    drop(host);
}

#[test]
fn a_path_may_begin_at_home() {
    let place = Place::new();
    place.module("mods/tool-here", "tool-here", "");
    place.plan("tools:\n  - { module: tool-here, source: ~/mods/tool-here }\n");
    let mut command = place.command(&["list", "--json"]);
    let ran = command.env("HOME", place.path(".")).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(listed[0]["state"], "in_place", "{listed}");
}

#[test]
fn sections_of_the_agent_are_noted_and_slips_are_told() {
    let place = Place::new();
    place.plan("session: { orchestrator: loop-basic }\nproviders: [{ module: p }]\ntols: []\n");
    let listed = place.modules(&["list"]).expect(0);
    assert!(
        listed
            .stdout
            .contains("`providers` (models) is ignored: it is for the agent"),
        "{}",
        listed.stdout
    );
    assert!(
        listed.stderr.contains("the section `tols` is unknown"),
        "{}",
        listed.stderr
    );
    assert!(
        listed.stderr.contains("no plan names a module"),
        "{}",
        listed.stderr
    );
    place.plan("tools: [{ config: {} }]\n");
    let wrong = place.modules(&["list"]).expect(2);
    assert!(
        wrong.stderr.contains("tools[0]_module_required"),
        "{}",
        wrong.stderr
    );
    place.plan("tools: [{ module: tool-a }]\n");
    let unknown = place.modules(&["list", "tool-b"]).expect(2);
    assert!(
        unknown.stderr.contains("the modules are: tool-a"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn trust_in_a_file_is_trust_in_the_plans_it_includes() {
    let place = Place::new();
    place.module("mods/tool-here", "tool-here", "");
    let plan = "tools:\n  - { module: tool-here, source: ../mods/tool-here }\n";
    let workspace = place.home.workspace();
    fs::write(workspace.join("plan.yaml"), plan).unwrap();
    place.home.write("toolpost.yaml", "include: [plan.yaml]\n");
    let list = |code: i32| place.home.run(&["modules", "list"]).expect(code);
    let untrusted = list(0);
    assert!(
        untrusted.stderr.contains("`include: plan.yaml` is ignored"),
        "{}",
        untrusted.stderr
    );
    assert_eq!(untrusted.stdout, "");
    place.home.run(&["trust"]).expect(0);
    assert!(
        list(1).stdout.contains("tool-here"),
        "its source is not where the file says"
    );
    fs::write(
        workspace.join("plan.yaml"),
        plan.replace("../mods", "../../mods"),
    )
    .unwrap();
    assert_eq!(
        list(0).stdout,
        "",
        "another plan is not the one that was trusted"
    );
    place.home.run(&["trust"]).expect(0);
    list(1);
    fs::remove_file(workspace.join("plan.yaml")).unwrap();
    assert_eq!(list(0).stdout, "");
    let refused = place.home.run(&["trust"]).expect(2);
    assert!(
        refused
            .stderr
            .contains("a mount plan in its `include` cannot be read"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_description_is_listed_by_its_first_line_that_says_something() {
    let place = Place::new();
    place.module("mods/tool-a", "tool-a", "");
    let code =
        fs::read_to_string(place.path("mods/tool-a/amplifier_module_tool_a/__init__.py")).unwrap();
    let long = code.replace(
        "'Greets.'",
        "'\\n\\n    Greets a person.\\n    At length.\\n'",
    );
    place.write("mods/tool-a/amplifier_module_tool_a/__init__.py", &long);
    place.plan("tools:\n  - module: tool-a\n    source: ./mods/tool-a\n");
    let listed = place.run("tools", &[]).expect(0).stdout;
    let line = listed
        .lines()
        .find(|line| line.starts_with("amplifier_module_tool_a "))
        .unwrap();
    assert!(line.ends_with(" Greets a person."), "{line}");
    assert!(!listed.contains("At length."), "{listed}");
}

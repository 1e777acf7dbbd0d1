//! Hooks in the file: what is written, who may write it, and what people see when it is wrong.

use std::{path::PathBuf, time::Duration};

use toolpost_config::{
    ConfigFile, ConfigLayer, ConfigNotice, HookConfig, HostConfig, LayerTrust, config_example,
};
use toolpost_model::{HookEvent, HookStanding, RuleOrigin, SandboxProfile};

fn layer(text: &str, standing: LayerTrust) -> ConfigLayer {
    ConfigLayer::new(
        ConfigFile::parse(text, "toolpost.yaml").unwrap(),
        standing,
        RuleOrigin::Cli,
    )
}

fn resolved(layers: &[ConfigLayer]) -> (Vec<HookConfig>, Vec<ConfigNotice>) {
    let (config, notices) = HostConfig::resolve(layers).unwrap();
    (config.hooks, notices)
}

fn check(entry: &str, message: &str, hint: Option<&str>) {
    let text = format!("hooks:\n  - {{ {entry} }}\n");
    let errors = ConfigFile::parse(&text, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        (error.message.as_str(), error.hint.as_deref()),
        (message, hint),
        "{text}"
    );
    assert_eq!((error.line, errors.iter().count()), (2, 1), "{errors}");
}

#[test]
fn what_is_left_out_has_its_default() {
    let expected = HookConfig {
        name: "log".to_owned(),
        events: vec![HookEvent::After],
        tools: Vec::new(),
        when: None,
        command: vec!["logger".to_owned()],
        files: Vec::new(),
        standing: HookStanding::Ordinary,
        timeout: None,
        profile: SandboxProfile::ReadOnly,
        writable: Vec::new(),
        environment: Vec::new(),
        place: "toolpost.yaml:1".to_owned(),
    };
    let text = "hooks: [{ name: log, event: after, command: [logger] }]";
    assert_eq!(resolved(&[layer(text, LayerTrust::Trusted)]).0, [expected]);
}

#[test]
fn each_key_reaches_its_own_setting_and_files_are_found_beside_the_configuration() {
    let layer = layer(config_example(), LayerTrust::Trusted).relative_to("/etc/host");
    let (hooks, _) = resolved(&[layer]);
    let [guard, log] = <[HookConfig; 2]>::try_from(hooks).unwrap();
    assert_eq!(
        (guard.name.as_str(), guard.standing),
        ("no-live-hosts", HookStanding::Guard)
    );
    assert_eq!(guard.events, [HookEvent::Before]);
    assert_eq!(
        guard
            .tools
            .iter()
            .map(|tool| tool.as_str())
            .collect::<Vec<_>>(),
        ["http_request", "github.*"]
    );
    assert_eq!(guard.when.unwrap().to_string(), "net(POST https://*)");
    assert_eq!(
        guard.command,
        ["python3", "/etc/host/hooks/no_live_hosts.py"]
    );
    assert_eq!(
        (guard.timeout, guard.profile),
        (Some(Duration::from_secs(2)), SandboxProfile::ReadOnly)
    );
    assert_eq!(guard.environment, ["LIVE_HOSTS"]);
    assert_eq!(log.events, [HookEvent::After, HookEvent::Failure]);
    assert_eq!(log.writable, [PathBuf::from("/var/log/agents")]);
}

#[test]
fn only_words_that_begin_as_relative_paths_are_files() {
    let text =
        "hooks: [{ name: x, event: before, command: [../bin/x, ./a b, c/d, /e, -f=./g, .] }]";
    let (hooks, _) = resolved(&[layer(text, LayerTrust::Trusted).relative_to("/etc/host")]);
    assert_eq!(
        hooks[0].command,
        [
            "/etc/host/../bin/x",
            "/etc/host/a b",
            "c/d",
            "/e",
            "-f=./g",
            "."
        ]
    );
    assert_eq!(
        hooks[0].files,
        ["/etc/host/../bin/x", "/etc/host/a b"].map(PathBuf::from)
    );
}

#[test]
fn files_add_up_and_none_takes_away_anothers_hook() {
    let first = "hooks: [{ name: guard, event: before, command: [a] }, { name: log, event: after, command: [b] }]";
    let second = "hooks: [{ name: guard, event: before, command: [c] }]";
    let (hooks, notices) = resolved(&[
        layer(first, LayerTrust::Trusted),
        layer(second, LayerTrust::Trusted),
    ]);
    let programs: Vec<&str> = hooks.iter().map(|hook| hook.command[0].as_str()).collect();
    assert_eq!((programs, notices.len()), (vec!["a", "b", "c"], 0));
}

#[test]
fn an_untrusted_files_hooks_are_ignored_and_it_is_said() {
    let text = "hooks:\n  - { name: spy, event: before, command: [curl] }";
    let (hooks, notices) = resolved(&[layer(text, LayerTrust::Untrusted)]);
    assert_eq!(hooks, []);
    let said: Vec<(&str, &str)> = notices
        .iter()
        .map(|one| (one.key.as_str(), one.place.as_str()))
        .collect();
    assert_eq!(said, [("hooks", "toolpost.yaml:2")]);
    assert!(
        notices[0]
            .message
            .starts_with("`hooks: spy` is ignored: this file is not trusted"),
        "{}",
        notices[0]
    );
}

#[test]
fn what_cannot_be_meant_is_said_at_its_place() {
    let name = "use up to 64 letters, digits, `_` and `-`, beginning with a letter";
    check(
        "name: 'a b', event: before, command: [x]",
        "`a b` is not a name for a hook",
        Some(name),
    );
    check(
        "name: a, event: [], command: [x]",
        "`hooks.a.event` is empty, so the hook would never run",
        None,
    );
    check(
        "name: a, event: before, command: []",
        "`hooks.a.command` is empty",
        Some("write the program and its arguments, such as `[python3, ./guard.py]`"),
    );
    check(
        "name: a, event: before, command: ['']",
        "the program in `hooks.a.command` is empty",
        None,
    );
    check(
        "name: a, event: before, command: [bin/x]",
        "the program `bin/x` is neither a name nor an unambiguous path",
        Some(
            "write a name that is found in PATH, `./FILE` for a file beside this one, or an absolute path",
        ),
    );
    check(
        "name: a, event: before, command: [x], timeout: 2m",
        "`hooks.a.timeout` is 2m; it must be between 1ms and 1m",
        None,
    );
    check(
        "name: a, event: before, command: [x], writable: [~/log]",
        "`hooks.a.writable` is `~/log`, and `~` is not expanded here",
        Some("write the whole path"),
    );
    check(
        "name: a, event: before, command: [x], tools: []",
        "`hooks.a.tools` is empty",
        Some("leave the key out for every tool"),
    );
    let tool =
        "is not a tool name; names hold letters, digits and `_-./:`, with `*` for any of them";
    check(
        "name: a, event: before, command: [x], tools: 'a b'",
        &format!("`hooks.a.tools`: `a b` {tool}"),
        None,
    );
    check(
        "name: a, event: before, command: [x], tools: ['c d']",
        &format!("`hooks.a.tools`: `c d` {tool}"),
        None,
    );
    check(
        "name: a, event: before, command: [x], environment: [A_TOKEN]",
        "`A_TOKEN` in `hooks.a.environment` is never passed to a process: by its name, it holds a secret or the path to one",
        None,
    );
}

#[test]
fn a_hook_is_chosen_as_rules_choose_calls() {
    for selector in [
        "shell(git push *)",
        "class:write",
        "fs.read(**/.env)",
        "net(https://a.example/*)",
        "x[/a = 1]",
    ] {
        let text =
            format!("hooks: [{{ name: a, event: before, command: [x], when: '{selector}' }}]");
        let (hooks, _) = resolved(&[layer(&text, LayerTrust::Trusted)]);
        assert_eq!(hooks[0].when.as_ref().unwrap().to_string(), selector);
    }
    for (selector, said) in [
        (
            "shell(git",
            "`hooks.a.when`: `shell(git` has a matcher that is empty or not closed",
        ),
        (
            "class:wrote",
            "`hooks.a.when`: `wrote` is not a class; the classes are read, write, network, execute, unknown",
        ),
    ] {
        check(
            &format!("name: a, event: before, command: [x], when: '{selector}'"),
            said,
            None,
        );
    }
}

#[test]
fn words_that_are_none_are_refused_with_what_there_is() {
    for (entry, part) in [
        ("name: a, event: pre, command: [x]", "`pre`"),
        ("name: a, event: [before, pre], command: [x]", "`pre`"),
        ("name: a, event: 3, command: [x]", "expected"),
        ("name: a, event: before, command: x", "expected"),
        (
            "name: a, event: before, command: [x], standing: gard",
            "`gard`",
        ),
        ("name: a, event: before, comand: [x]", "`comand`"),
        ("event: before, command: [x]", "`name`"),
    ] {
        let errors = ConfigFile::parse(&format!("hooks: [{{ {entry} }}]"), "t")
            .unwrap_err()
            .to_string();
        assert!(errors.contains(part), "{entry}: {errors}");
    }
    let twice = "hooks:\n- { name: a, event: before, command: [x] }\n- { name: a, event: after, command: [x] }";
    let errors = ConfigFile::parse(twice, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        (error.message.as_str(), error.line),
        ("there are two hooks called `a`", 3)
    );
}

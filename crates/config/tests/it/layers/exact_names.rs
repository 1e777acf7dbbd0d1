//! Keys that loosen mean outside tools by id only.

use std::time::Duration;

use toolpost_model::{
    EffectClass, Provenance, SandboxProfile, ToolExecutionSettings, ToolInputSettings,
    ToolSettings, ToolSurfaceSettings,
};

use super::{Word, check, resolve, trusted};
use crate::{native, tool};

#[test]
fn under_a_bare_name_an_outside_tool_is_restricted_and_never_loosened() {
    let host = trusted(
        "tools:\n  shell: { class: read, idempotent: true, exclusive: false, approval_required: false, \
         defaults: { key: secret }, name: sh, hidden: true, sensitive: [/a], sandbox: read-only }\n  \
         evil.*: { argument_bytes: 2KiB }\n  wired__shell: { class: read, enabled: false }\n  good.shell: { class: read }\n  \"sh*\": { exclusive: true, timeout: 5s }\n",
    );
    let (config, _) = resolve(&[host]);
    for provenance in [Provenance::MountPlan, Provenance::Outside] {
        let found = config.settings_for(&tool("evil.shell", provenance), "");
        let restricted = ToolSettings {
            surface: ToolSurfaceSettings {
                hidden: Some(true),
                ..ToolSurfaceSettings::default()
            },
            execution: ToolExecutionSettings {
                exclusive: Some(true),
                ceiling: Some(Duration::from_secs(5)),
                sandbox: Some(SandboxProfile::ReadOnly),
                ..ToolExecutionSettings::default()
            },
            input: ToolInputSettings {
                sensitive: vec!["/a".to_owned()],
                argument_bytes: Some(2_048),
                ..ToolInputSettings::default()
            },
            ..ToolSettings::default()
        };
        assert_eq!(found, restricted, "{provenance:?}");
        let good = config.settings_for(&tool("good.shell", provenance), "");
        assert_eq!(
            (good.permission.class, good.input.defaults.len()),
            (Some(EffectClass::Read), 0),
            "{provenance:?}"
        );
    }
    let wired = config.settings_for(&tool("wired.shell", Provenance::Outside), "");
    assert_eq!(
        (wired.permission.class, wired.surface.enabled),
        (Some(EffectClass::Read), Some(false)),
        "by the form that agents see"
    );
    let own = config.settings_for(&native("shell.shell"), "");
    assert_eq!(
        (
            own.permission.class,
            own.permission.approval_required,
            own.input.defaults.len()
        ),
        (Some(EffectClass::Read), Some(false), 1)
    );
    let loosens: Vec<&String> = config.loosening_tool_keys().into_iter().collect();
    assert_eq!(
        loosens,
        ["evil.*", "good.shell", "sh*", "shell", "wired__shell"]
    );
}

#[test]
fn code_is_granted_no_more_by_an_untrusted_file() {
    for (host, project, expected) in [
        ("", "[read_file]", Word::Counts),
        ("", "['github.*']", Word::Counts),
        ("tools: ['*']", "[read_file]", Word::Counts),
        ("tools: ['*']", "['github.*']", Word::Ignored("code.tools")),
        ("tools: ['github.*']", "[github.get]", Word::Counts),
        ("tools: ['github.*']", "['*']", Word::Ignored("code.tools")),
        ("tools: ['*.get_*']", "[a.get_x]", Word::Counts),
        ("tools: ['*.get_*']", "['a.*']", Word::Ignored("code.tools")),
    ] {
        check(
            &format!("code: {{ {host} }}"),
            &format!("code: {{ tools: {project} }}"),
            expected,
        );
    }
}

#[test]
fn untrusted_files_may_narrow_what_code_can_do() {
    for (host, project, expected) in [
        ("", "tools: [read_file]", Word::Counts),
        ("", "tools: []", Word::Counts),
        ("", "tools: ['*']", Word::Counts),
        ("", "tools: ['*.*']", Word::Same),
        (
            "tools: ['files.*']",
            "tools: [files.read_file, 'files.w*']",
            Word::Counts,
        ),
        (
            "tools: ['files.*']",
            "tools: [files.read_file, shell]",
            Word::Ignored("code.tools"),
        ),
        (
            "tools: ['files.*']",
            "tools: ['f*']",
            Word::Ignored("code.tools"),
        ),
        (
            "tools: [read_file]",
            "tools: ['read_file*']",
            Word::Ignored("code.tools"),
        ),
        ("tools: []", "tools: [echo]", Word::Ignored("code.tools")),
        ("", "memory: 64MiB", Word::Counts),
        ("", "memory: 1GiB", Word::Ignored("code.memory")),
        ("", "calls: 0", Word::Counts),
        ("", "calls: 201", Word::Ignored("code.calls")),
        ("", "python3: false", Word::Counts),
        (
            "python3: false",
            "python3: true",
            Word::Ignored("code.python3"),
        ),
    ] {
        check(
            &format!("code: {{ {host} }}"),
            &format!("code: {{ {project} }}"),
            expected,
        );
    }
}

//! `sandbox` and `code`: limits under which programs can run, and variables that they may get.

use toolpost_model::{ToolPattern, never_passed};

use crate::{CodeSection, LocatedValue, SandboxSection, error::ConfigComplaint, snippet::shown};

use super::{
    limits::{check_lifetime, check_range, size},
    path_complaint,
};

pub(super) fn check(sandbox: &SandboxSection, complaints: &mut Vec<ConfigComplaint>) {
    let readable = sandbox.readable.iter();
    complaints.extend(readable.filter_map(|path| path_complaint("sandbox.readable", path)));
    check_variables("sandbox.environment", &sandbox.environment, complaints);
    check_range(
        "sandbox.memory",
        sandbox.memory,
        size(16 << 20)..=size(1 << 40),
        complaints,
    );
    check_range(
        "sandbox.processes",
        sandbox.processes,
        1..=1_000_000,
        complaints,
    );
    check_range(
        "sandbox.tmp",
        sandbox.tmp,
        size(1 << 20)..=size(1 << 40),
        complaints,
    );
    check_range(
        "sandbox.file_size",
        sandbox.file_size,
        size(1 << 10)..=size(1 << 50),
        complaints,
    );
    check_range(
        "sandbox.open_files",
        sandbox.open_files,
        16..=1_000_000,
        complaints,
    );
    check_lifetime("sandbox.lifetime", sandbox.lifetime, complaints);
}

pub(super) fn check_code(code: &CodeSection, complaints: &mut Vec<ConfigComplaint>) {
    let patterns = code.tools.iter().flat_map(|tools| &tools.value);
    for pattern in patterns.filter(|pattern| tool_pattern(&pattern.value).is_none()) {
        let message = format!(
            "`{}` in `code.tools` is not the name of a tool",
            shown(&pattern.value)
        );
        let hint = "names hold letters, digits and `_-./:`, with `*` for any characters";
        complaints.push(ConfigComplaint::new(pattern.at, message).hint(Some(hint.to_owned())));
    }
    check_range(
        "code.memory",
        code.memory,
        size(16 << 20)..=size(1 << 36),
        complaints,
    );
    check_range("code.calls", code.calls, 0..=1_000_000, complaints);
}

/// An entry of `code.tools`.
pub(crate) fn tool_pattern(text: &str) -> Option<ToolPattern> {
    text.parse().ok().filter(|_| text.len() <= 256)
}

/// Reports invalid names, and variables that no child may get.
pub(super) fn check_variables(
    key: &str,
    names: &[LocatedValue<String>],
    complaints: &mut Vec<ConfigComplaint>,
) {
    for name in names {
        let quoted = shown(&name.value);
        if !is_variable(&name.value) {
            let message = format!("`{quoted}` in `{key}` is not the name of a variable");
            let hint = name.value.contains('=').then(|| {
                "write only the name; the value comes from the host's environment".to_owned()
            });
            complaints.push(ConfigComplaint::new(name.at, message).hint(hint));
        } else if let Some(why) = never_inherited(&name.value) {
            let message = format!("`{quoted}` in `{key}` is never passed to a process: {why}");
            complaints.push(ConfigComplaint::new(name.at, message));
        }
    }
}

pub(super) fn is_variable(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 256 && text.starts_with(begins) && text.bytes().all(legal)
}

/// Variables that the host sets itself.
const OWN: [&str; 5] = ["PATH", "HOME", "TMPDIR", "TERM", "NO_COLOR"];

/// The reason to withhold a variable in spite of the configuration. Case does not matter: some programs read both.
fn never_inherited(name: &str) -> Option<&'static str> {
    never_passed(name).or_else(|| {
        let own = OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
        own.then_some("only the host sets it")
    })
}

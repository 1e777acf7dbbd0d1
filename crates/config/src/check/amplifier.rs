//! `amplifier` and `include`: plausible paths, and variables that modules may get.

use toolpost_model::changes_code;

use crate::{AmplifierSection, ConfigFile, LocatedValue, error::ConfigComplaint, snippet::shown};

use super::{
    limits::{check_deadline, check_range, size},
    path_complaint,
    sandbox::is_variable,
};

pub(super) fn check(file: &ConfigFile, complaints: &mut Vec<ConfigComplaint>) {
    let amplifier = &file.amplifier;
    for LocatedValue { value, at } in &file.include {
        complaints.extend(path_complaint(
            "include",
            &LocatedValue {
                value: value.path().clone(),
                at: *at,
            },
        ));
    }
    complaints.extend(
        amplifier
            .python
            .as_ref()
            .and_then(|path| path_complaint("amplifier.python", path)),
    );
    for (key, paths) in [
        ("amplifier.readable", &amplifier.readable),
        ("amplifier.writable", &amplifier.writable),
    ] {
        complaints.extend(paths.iter().filter_map(|path| path_complaint(key, path)));
    }
    variables(amplifier, complaints);
    check_deadline(
        "amplifier.mount_timeout",
        amplifier.mount_timeout,
        complaints,
    );
    check_range(
        "amplifier.max_result",
        amplifier.max_result,
        size(1 << 10)..=size(1 << 30),
        complaints,
    );
    for (module, LocatedValue { value: entry, .. }) in &amplifier.wasm {
        let key = |part: &str| format!("amplifier.wasm.{}.{part}", shown(module));
        let directories = entry
            .directories
            .iter()
            .map(|directory| &directory.value.path);
        complaints.extend(directories.filter_map(|path| path_complaint(&key("directories"), path)));
        check_range(
            &key("memory"),
            entry.memory,
            size(1 << 16)..=size(1 << 32),
            complaints,
        );
        for (name, value) in &entry.environment {
            complaints.extend(name_complaint(&key("environment"), name, value.at));
        }
    }
}

fn variables(amplifier: &AmplifierSection, complaints: &mut Vec<ConfigComplaint>) {
    for name in &amplifier.pass {
        complaints.extend(name_complaint("amplifier.pass", &name.value, name.at));
        complaints.extend(code_complaint("amplifier.pass", &name.value, name.at));
    }
    for name in &amplifier.fetch_pass {
        complaints.extend(name_complaint("amplifier.fetch_pass", &name.value, name.at));
        complaints.extend(code_complaint("amplifier.fetch_pass", &name.value, name.at));
    }
    for (name, value) in &amplifier.environment {
        complaints.extend(name_complaint("amplifier.environment", name, value.at));
        complaints.extend(code_complaint("amplifier.environment", name, value.at));
    }
}

fn name_complaint(key: &str, name: &str, at: crate::FilePosition) -> Option<ConfigComplaint> {
    let message = format!("`{}` in `{key}` is not the name of a variable", shown(name));
    (!is_variable(name)).then(|| ConfigComplaint::new(at, message))
}

/// An operator may pass a secret to the modules by name, but not a variable that decides which code they load.
fn code_complaint(key: &str, name: &str, at: crate::FilePosition) -> Option<ConfigComplaint> {
    let message = format!(
        "`{}` in `{key}` is never passed to a process: it changes which code is loaded",
        shown(name)
    );
    changes_code(name).then(|| ConfigComplaint::new(at, message))
}

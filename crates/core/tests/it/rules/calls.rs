//! Calls as the tables write them: `shell: git push`, `write: src/a.rs`, `http: POST https://host/`.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_core::PermissionFacts;
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, Arguments, Declaration, EffectClass, EffectOrigin, Effects,
    ExecutionKind, PermissionInput, Principal, Provenance, ResourceAccess, ResourceKey,
    SandboxProfile,
};

/// A call, made up the way the host would see it.
pub(crate) struct MadeCall {
    pub(crate) declaration: Declaration,
    pub(crate) effects: Effects,
    input: PermissionInput,
}

impl MadeCall {
    pub(crate) fn facts<'a>(&'a self, principal: &'a Principal) -> PermissionFacts<'a> {
        PermissionFacts {
            declaration: &self.declaration,
            input: Some(&self.input),
            effects: &self.effects,
            principal,
            opinions: &[],
            delegated: &[],
            at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Reads `TOOL: REST`.
    pub(crate) fn read(text: &str, confined: Option<SandboxProfile>) -> Self {
        let (tool, rest) = text
            .split_once(':')
            .unwrap_or_else(|| panic!("{text} is not a call"));
        let rest = rest.trim();
        match tool.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["shell"] => shell(rest, None, confined),
            ["shell", "in", directory] => shell(rest, Some(directory), confined),
            // `shell with NAME=value …: command`, with variables in the argument for them.
            ["shell", "with", variables @ ..] => shell_with(variables, rest, confined),
            // What the shell tool itself found to be reading only runs in a sandbox that can only read.
            ["reading"] => {
                let mut call = shell(rest, None, Some(SandboxProfile::ReadOnly));
                call.effects = Effects::of(EffectClass::Read).confined_by(SandboxProfile::ReadOnly);
                call
            }
            ["read"] => files(
                "read_file",
                EffectClass::Read,
                &[(rest, ResourceAccess::Read)],
            ),
            ["grep"] => files("grep", EffectClass::Read, &[(rest, ResourceAccess::Read)]),
            ["write"] => files(
                "write_file",
                EffectClass::Write,
                &[(rest, ResourceAccess::Write)],
            ),
            ["delete"] => files(
                "delete_file",
                EffectClass::Write,
                &[(rest, ResourceAccess::Write)],
            ),
            ["edit"] => files(
                "edit_file",
                EffectClass::Write,
                &[(rest, ResourceAccess::Read), (rest, ResourceAccess::Write)],
            ),
            // Into folders that do not exist yet: the topmost is touched too.
            ["create"] => {
                let top = rest.split('/').next().unwrap();
                files(
                    "write_file",
                    EffectClass::Write,
                    &[(top, ResourceAccess::Write), (rest, ResourceAccess::Write)],
                )
            }
            ["protected"] => {
                let mut call = files(
                    "write_file",
                    EffectClass::Write,
                    &[(rest, ResourceAccess::Write)],
                );
                call.effects = call.effects.with_caution("it is protected");
                call
            }
            ["steering"] => {
                let mut call = files(
                    "write_file",
                    EffectClass::Write,
                    &[(rest, ResourceAccess::Write)],
                );
                let key = call.effects.uses[0].key.clone();
                call.effects = call.effects.with_path_caution(key, "it steers agents");
                call
            }
            ["move"] => {
                let (from, to) = rest.split_once(" -> ").unwrap();
                let touched = [
                    (from, ResourceAccess::Read),
                    (from, ResourceAccess::Write),
                    (to, ResourceAccess::Write),
                ];
                files("move_file", EffectClass::Write, &touched)
            }
            ["http"] => http(rest, None),
            ["save", path] => http(rest, Some(path)),
            ["fetch"] => fetch(rest),
            ["code"] => made(
                "code.run_code",
                EffectClass::Execute,
                json!({ "code": rest }),
                |_| {},
            ),
            ["approved"] => made("people.ask", EffectClass::Read, json!({}), |declaration| {
                declaration.interface.permission.approval_required = true;
            }),
            ["requested"] => {
                let mut call = made(
                    "tool-desk.act",
                    EffectClass::Execute,
                    json!({ "command": rest }),
                    |declaration| {
                        declaration.interface.permission.approval_requested = true;
                    },
                );
                call.declaration.provenance = Provenance::MountPlan;
                call
            }
            ["tool", id, class] => {
                let class = EffectClass::ALL
                    .into_iter()
                    .find(|one| one.as_str() == *class)
                    .unwrap();
                made(
                    id,
                    class,
                    serde_json::from_str(rest).unwrap_or(json!({})),
                    |_| {},
                )
            }
            // From outside: it says what its argument is, and nobody vouches for more.
            ["remote", id, kind] => remote(id, kind, rest),
            other => panic!("{other:?} is not a kind of call"),
        }
    }
}

fn made(
    id: &str,
    class: EffectClass,
    arguments: Value,
    change: impl FnOnce(&mut Declaration),
) -> MadeCall {
    let mut declaration = Declaration::new(id.parse().unwrap(), "");
    declaration.provenance = Provenance::CompiledIn;
    change(&mut declaration);
    let input = PermissionInput::new(Arguments::from_value(arguments));
    MadeCall {
        declaration,
        effects: Effects::of(class),
        input,
    }
}

fn shell(command: &str, directory: Option<&str>, confined: Option<SandboxProfile>) -> MadeCall {
    shell_of(
        json!({ "command": command, "working_directory": directory }),
        confined,
    )
}

fn shell_with(variables: &[&str], command: &str, confined: Option<SandboxProfile>) -> MadeCall {
    let environment: Value = match variables {
        // As other tools may take it, and in forms that mean nothing.
        ["list", variables @ ..] => json!(variables),
        ["odd", odd] => serde_json::from_str(odd).unwrap(),
        variables => variables
            .iter()
            .map(|one| one.split_once('=').unwrap())
            .collect(),
    };
    shell_of(
        json!({ "command": command, "environment": environment }),
        confined,
    )
}

fn shell_of(arguments: Value, confined: Option<SandboxProfile>) -> MadeCall {
    let mut call = made(
        "shell.shell",
        EffectClass::Execute,
        arguments,
        |declaration| {
            declaration.interface.execution.kind = ExecutionKind::Shell;
            declaration.interface.permission.arguments = vec![
                ArgumentMeaning::of("command", ArgumentKind::Command),
                ArgumentMeaning::of("working_directory", ArgumentKind::Directory),
                ArgumentMeaning::of("environment", ArgumentKind::Environment),
            ];
        },
    );
    call.effects.confined = confined;
    call
}

/// A file tool names what it touches itself, resolved.
fn files(name: &str, class: EffectClass, touched: &[(&str, ResourceAccess)]) -> MadeCall {
    let mut call = made(
        &format!("files.{name}"),
        class,
        json!({ "path": touched[0].0 }),
        |_| {},
    );
    for (path, access) in touched {
        let path = if path.starts_with('/') {
            (*path).to_owned()
        } else {
            format!("/w/{path}")
        };
        call.effects = call.effects.using(ResourceKey::path(&path), *access);
    }
    call
}

fn http(request: &str, save_to: Option<&str>) -> MadeCall {
    let (method, url) = request.split_once(' ').unwrap_or(("", request));
    let arguments = match method {
        "" => json!({ "url": url }),
        method => json!({ "url": url, "method": method }),
    };
    let mut call = made(
        "http.http_request",
        EffectClass::Network,
        arguments,
        |declaration| {
            declaration.interface.permission.arguments = vec![
                ArgumentMeaning::of("url", ArgumentKind::Url),
                ArgumentMeaning::of("method", ArgumentKind::Method),
            ];
            declaration.input.schema =
                json!({ "properties": { "method": { "default": "GET" } } }).into();
        },
    );
    if let Some(path) = save_to {
        call.effects = call.effects.using(
            ResourceKey::path(&format!("/w/{path}")),
            ResourceAccess::Write,
        );
    }
    call
}

fn fetch(url: &str) -> MadeCall {
    let mut call = made(
        "http.fetch_page",
        EffectClass::Network,
        json!({ "url": url }),
        |declaration| {
            declaration.interface.permission.arguments =
                vec![ArgumentMeaning::of("url", ArgumentKind::Url)];
        },
    );
    call.effects.idempotent = true;
    call
}

fn remote(id: &str, kind: &str, rest: &str) -> MadeCall {
    let kind: ArgumentKind = serde_json::from_value(json!(kind)).unwrap();
    let argument = serde_json::from_str(rest).unwrap_or(json!(rest));
    let mut call = made(
        id,
        EffectClass::Unknown,
        json!({ "it": argument }),
        |declaration| {
            declaration.interface.permission.arguments = vec![ArgumentMeaning::of("it", kind)];
        },
    );
    call.effects = call.effects.as_stated_by(EffectOrigin::Claimed);
    call
}

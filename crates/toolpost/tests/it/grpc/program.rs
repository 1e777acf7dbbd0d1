//! Modules that are programs: `transport = "rust"`. The contract is about a program, a port and a line; it does not
//! matter what the program is written in.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolpost_amplifier::ModuleTransport;
use toolpost_model::{ErrorClass, SandboxProfile};
use toolpost_modules::{GrpcHandle, GrpcModule, GrpcSettings, SidecarParts, resolve};
use toolpost_processes::{ChildEnvironment, ChildSettings, HostEnvironment, Workspace};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

use super::{
    error,
    peer::{generate, python},
    planned,
};
use crate::workshop;

/// A module with a program, beside a workspace.
struct Module {
    folder: TempDir,
}

impl Module {
    fn new(program: &str) -> Self {
        let module = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["module", "workspace"] {
            std::fs::create_dir(module.path(name)).unwrap();
        }
        let manifest = "[module]\ntype = \"tool\"\ntransport = \"rust\"\ncrate = \"worker\"\n";
        std::fs::write(module.path("module/amplifier.toml"), manifest).unwrap();
        let path = module.path("module/worker");
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        module
    }

    /// The service of the other tests as a program.
    fn worker() -> Self {
        let run = "import os, sys; sys.path.insert(0, os.path.dirname(os.path.abspath(__file__))); import tool_server";
        let module = Self::new(&format!("#!{}\n{run}\n", python().display()));
        generate(&module.path("module"));
        module
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// How many processes of the machine have the program's path on their command line.
    fn processes(&self) -> usize {
        let program = self
            .path("module/worker")
            .into_os_string()
            .into_encoded_bytes();
        let named = |entry: std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == program)
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(Result::ok)
            .map(named)
            .filter(|found| *found)
            .count()
    }

    async fn host(&self, profile: SandboxProfile) -> (TestHost, GrpcHandle) {
        let planned = planned(&json!({ "depth": 2 }));
        let root = self.path("module");
        let resolved = resolve(&planned, &root).unwrap();
        let ModuleTransport::Rust { name } = resolved.transport else {
            panic!("{resolved:?}")
        };
        let variables = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("SECRET_TOKEN", "not for modules".to_owned()),
        ];
        let shown = HostEnvironment {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            home: None,
        };
        // The environment, and the Python that it was made of.
        let home = |python: &Path| python.parent().unwrap().parent().unwrap().to_owned();
        let peers = home(&python());
        let base = home(&python().canonicalize().unwrap());
        let parts = SidecarParts {
            launcher: Some(Launcher::new(workshop::program())),
            children: ChildSettings {
                profile,
                readable: vec![peers, base],
                environment: ChildEnvironment::new(&shown, &[], &[]),
                ..ChildSettings::default()
            },
            workspace: Arc::new(Workspace::open(&self.path("workspace")).unwrap()),
            variables: BTreeMap::from([("WORKER_COLOUR".to_owned(), "green".to_owned())]),
            writable: Vec::new(),
        };
        let module =
            GrpcModule::sidecar(&planned, &root, &name, GrpcSettings::default(), parts).unwrap();
        let handle = module.handle();
        (
            TestHost::build(|builder| builder.source(module)).await,
            handle,
        )
    }
}

async fn about(host: &TestHost) -> Value {
    let result = host.call("worker", json!({ "do": "about" })).await;
    result
        .structured_content
        .clone()
        .unwrap_or_else(|| panic!("{result:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_started_once_mounted_and_confined() {
    let module = Module::worker();
    let (host, handle) = module.host(SandboxProfile::WorkspaceWrite).await;
    let first = about(&host).await;
    assert_eq!(
        about(&host).await["pid"],
        first["pid"],
        "it is the same process"
    );
    let environment: Vec<&str> = first["environment"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        environment.contains(&"WORKER_COLOUR") && !environment.contains(&"SECRET_TOKEN"),
        "{environment:?}"
    );
    let mounted = host.call("worker", json!({ "do": "config" })).await;
    assert_eq!(
        mounted.structured_content,
        Some(json!({ "config": { "depth": "2" }, "mounts": 1 }))
    );
    let applied = mounted
        .sandbox
        .expect("the result says what confines the program");
    assert_eq!(applied.requested, SandboxProfile::Network);

    let outside = module.path("module/outside.txt");
    for (path, works) in [
        (module.path("workspace/inside.txt"), true),
        (outside.clone(), false),
    ] {
        let result = host
            .call("worker", json!({ "do": "write", "path": path }))
            .await;
        assert_eq!(!result.is_error, works, "{result:?}");
        assert_eq!(path.exists(), works);
    }
    handle.close().await;
    let again = about(&host).await;
    assert!(
        again["pid"].is_u64(),
        "a call after the end begins anew: {again}"
    );
    assert_eq!(module.processes(), 1);
    handle.close().await;
    assert_eq!(module.processes(), 0, "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_only_reads_keeps_a_program_from_writing() {
    let module = Module::worker();
    let (host, handle) = module.host(SandboxProfile::ReadOnly).await;
    let path = module.path("workspace/inside.txt");
    let result = host
        .call("worker", json!({ "do": "write", "path": path }))
        .await;
    assert!(result.is_error && !path.exists(), "{result:?}");
    handle.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_is_told_of_and_started_again() {
    let module = Module::worker();
    let (host, handle) = module.host(SandboxProfile::WorkspaceWrite).await;
    let died = host.call("worker", json!({ "do": "die", "code": 7 })).await;
    let lost = error(&died);
    assert_eq!(
        (lost.class, lost.code.as_ref()),
        (ErrorClass::DependencyUnavailable, "connection_lost")
    );
    assert!(
        lost.message.contains("exit code 7") && lost.message.contains("out of luck"),
        "{}",
        lost.message
    );
    assert!(!lost.retry.safe);
    let again = host.call("worker", json!({ "do": "config" })).await;
    assert_eq!(
        again.structured_content,
        Some(json!({ "config": { "depth": "2" }, "mounts": 1 })),
        "{again:?}"
    );
    handle.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_get_ready_is_a_problem() {
    for (program, words) in [
        (
            "#!/bin/sh\necho some noise\necho ERROR:no licence\nsleep 100\n",
            "`ERROR:no licence`",
        ),
        ("#!/bin/sh\necho READY:1\nsleep 100\n", "`READY:1`"),
        ("#!/bin/sh\necho what is wrong >&2\nexit 4\n", "exit code 4"),
        ("#!/nowhere/at/all\n", "nowhere"),
    ] {
        let module = Module::new(program);
        let (host, _) = module.host(SandboxProfile::WorkspaceWrite).await;
        let problems = host.host.catalog().unavailable().to_vec();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let said = &problems[0].message;
        let told = said.contains(words) || (words == "nowhere" && said.contains("module/worker"));
        assert!(told, "{said}");
        if words == "exit code 4" {
            assert!(said.contains("what is wrong"), "{said}");
        }
    }
}

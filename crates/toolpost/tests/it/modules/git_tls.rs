//! Modules of git repositories over TLS: real git, a real TLS server on loopback, and an authority that only tests trust.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::place::{Place, python, said};
use crate::home::Ran;

/// A server with the repository `repo`, which has one module.
struct TlsServer {
    place: Place,
    server: Child,
    port: String,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl TlsServer {
    fn start() -> Self {
        let place = Place::new();
        place.module("served/repo/mods/tool-a", "tool-a", "");
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        for name in ["authority.pem", "other.pem"] {
            place.write(
                &format!("tls/{name}"),
                &fs::read_to_string(tests.join("tls").join(name)).unwrap(),
            );
        }
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(place.path("served/repo")).args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
            ]);
            said(git.args(words).env("GIT_CONFIG_GLOBAL", "/dev/null"))
        };
        git(&["init", "--quiet", "--initial-branch=main", "."]);
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "one"]);
        let mut program = Command::new(python());
        program
            .arg(tests.join("git/tls_server.py"))
            .arg(place.path("served"))
            .arg(tests.join("tls/server.pem"));
        let mut server = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let port = port.trim().to_owned();
        assert!(
            port.parse::<u16>().is_ok(),
            "the server did not start: {port:?}"
        );
        let server = Self {
            place,
            server,
            port,
        };
        server.plan("");
        server
    }

    /// A plan with the module of the repository, below a folder of the server.
    fn plan(&self, folder: &str) {
        let address = format!("git+https://127.0.0.1:{}/{folder}repo@main", self.port);
        self.place.plan(&format!(
            "tools:\n  - module: tool-a\n    source: {address}#subdirectory=mods/tool-a\n"
        ));
    }

    /// Runs a command that knows an authority by a file.
    fn run(&self, command: &str, words: &[&str], authority: Option<PathBuf>) -> Ran {
        let mut command = self.place.command_of(command, words, &self.place.cache());
        command.envs(authority.map(|path| ("GIT_SSL_CAINFO", path)));
        Ran::from(command.output().unwrap())
    }
}

#[test]
fn a_module_comes_over_tls_from_a_server_whose_authority_the_operator_names() {
    let server = TlsServer::start();
    // Outside of the workspace and of the system's own folders, so git must be given it to read.
    let authority = server.place.path("tls/authority.pem");
    let fetched = server
        .run("modules", &["fetch", "--json"], Some(authority))
        .expect(0)
        .json();
    assert_eq!(fetched["modules"][0]["state"], "fetched", "{fetched}");
    // Later starts need neither the server nor the authority.
    let called = server
        .run(
            "call",
            &["amplifier_module_tool_a", "--mode", "bypass"],
            None,
        )
        .expect(0);
    assert!(called.stdout.contains("hello"), "{}", called.stdout);
}

#[test]
fn a_server_whose_authority_is_unknown_or_another_is_refused() {
    let server = TlsServer::start();
    for authority in [None, Some(server.place.path("tls/other.pem"))] {
        let refused = server.run("modules", &["fetch"], authority.clone());
        assert_ne!(refused.code, 0, "{authority:?}: {}", refused.page());
        assert!(
            refused.page().contains("certificate problem")
                || refused.page().contains("certificate verif"),
            "{authority:?}: {}",
            refused.page()
        );
    }
}

#[test]
fn a_redirect_to_an_address_without_tls_is_not_followed() {
    let server = TlsServer::start();
    server.plan("to-http/");
    let refused = server.run(
        "modules",
        &["fetch"],
        Some(server.place.path("tls/authority.pem")),
    );
    assert_ne!(refused.code, 0, "{}", refused.page());
    assert!(refused.page().contains("http"), "{}", refused.page());
}

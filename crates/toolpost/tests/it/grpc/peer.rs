//! The other end: Python with grpcio, from the environment that tests talk with.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
};

use tempfile::TempDir;

use crate::workshop::PATIENCE;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub(crate) fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/grpc")
}

/// The Python that has grpcio.
pub(crate) fn python() -> PathBuf {
    let python = root().join("target/peers/bin/python");
    assert!(
        python.exists(),
        "there is no `target/peers` with the packages that this test talks with\nhint: cargo xtask peers"
    );
    python
}

#[track_caller]
pub(crate) fn run_python(arguments: &[&str]) {
    let output = Command::new(python()).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A folder with the service and what was made of our `.proto` for it.
pub(crate) fn generated() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    folder
}

pub(crate) fn generate(folder: &Path) {
    let proto = root().join("docs/tool_service.proto");
    let include = format!("-I{}", proto.parent().unwrap().display());
    let code = format!("--python_out={}", folder.display());
    let stubs = format!("--grpc_python_out={}", folder.display());
    run_python(&[
        "-m",
        "grpc_tools.protoc",
        &include,
        &code,
        &stubs,
        proto.to_str().unwrap(),
    ]);
    std::fs::copy(
        scripts().join("tool_server.py"),
        folder.join("tool_server.py"),
    )
    .unwrap();
}

/// A service that runs. Killed when dropped.
pub(crate) struct Peer {
    child: Child,
    pub(crate) port: u16,
    lines: Receiver<String>,
}

impl Peer {
    /// On a port; 0 for any.
    pub(crate) fn start(folder: &Path, port: u16) -> Self {
        let mut child = Command::new(python())
            .arg(folder.join("tool_server.py"))
            .args(["--port", &port.to_string()])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let mut peer = Self {
            child,
            port: 0,
            lines,
        };
        peer.port = peer
            .until("READY:")
            .trim_start_matches("READY:")
            .parse()
            .unwrap();
        peer
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The next line that begins so.
    pub(crate) fn until(&self, words: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("it never says `{words}`"));
            if line.starts_with(words) {
                return line;
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A script that runs until it is dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(script: &Path) -> Self {
        Self(
            Command::new(python())
                .arg(script)
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

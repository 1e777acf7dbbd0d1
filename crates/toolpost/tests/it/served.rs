//! `toolpost serve` as a process: started, read, signalled, killed.

use std::{
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, ExitStatus},
    thread::JoinHandle,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{home::Home, http::Http};

/// A host that runs. Killed when dropped, so that no test leaves one behind.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) banner: String,
    rest: Option<JoinHandle<String>>,
}

impl Served {
    /// Starts on a free port and waits for the banner's last line.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--http", "127.0.0.1:0"];
        all.extend(arguments);
        Self::spawn(&mut home.command(&all))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut banner = String::new();
        let mut address = None;
        loop {
            let before = banner.len();
            if stderr.read_line(&mut banner).unwrap() == 0 {
                panic!(
                    "it ended with {:?} instead of serving:\n{banner}",
                    child.wait().unwrap()
                );
            }
            let line = banner[before..].trim();
            if let Some(found) = line
                .strip_prefix("listening")
                .and_then(|rest| rest.trim().strip_prefix("http://"))
            {
                address = found.parse().ok();
            }
            if line.is_empty() && banner.contains("try it:") {
                break;
            }
        }
        // Read on, so that the host never waits for a full pipe.
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).unwrap();
            rest
        });
        Self {
            child,
            address: address.expect("the banner says where it listens"),
            banner,
            rest: Some(rest),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn token(home: &Home) -> String {
        std::fs::read_to_string(home.data_dir().join("token"))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// A connection with the token of the file the banner names.
    pub(crate) fn connect(&self, home: &Home) -> Http {
        Http::connect(self.address, &Self::token(home)).unwrap()
    }

    /// A connection over the socket, which is an operator's.
    pub(crate) fn socket(&self, home: &Home) -> Http {
        let socket = home.data_dir().join("socket");
        Http::over_socket(&socket).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; gives how it ended and what it said after the banner.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let rest = self.rest.take().unwrap().join().unwrap();
        (status, rest)
    }

    /// Ends it as a service manager would.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Ends it as a power cut would, as far as a process can see one.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

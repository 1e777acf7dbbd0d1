//! The host's power switch: cut at a moment's notice, back on the same port and record.

use std::{
    io,
    net::SocketAddr,
    sync::{Condvar, Mutex},
    time::Duration,
};

use super::{Home, Http, Served};

/// Far beyond a start of the host: turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// The host, on or off.
pub(super) struct Power<'h> {
    home: &'h Home,
    address: SocketAddr,
    token: String,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// `None`: off. Set before the host is killed, so that nobody takes a broken connection for anything else.
    on: Option<Served>,
    starts: usize,
    kills: usize,
}

impl<'h> Power<'h> {
    /// Starts the first host, which chooses the port.
    pub(super) fn on(home: &'h Home) -> Self {
        let served = Served::start(home, &["--mode", "edits"]);
        let address = served.address;
        let token = Served::token(home);
        let state = State {
            on: Some(served),
            starts: 1,
            kills: 0,
        };
        Self {
            home,
            address,
            token,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn serve(&self) -> Served {
        let address = self.address.to_string();
        Served::spawn(
            &mut self
                .home
                .command(&["serve", "--http", &address, "--mode", "edits"]),
        )
    }

    /// Kills the host and starts it again, so many times.
    pub(super) fn cut(&self, times: usize) {
        let mut served = self.state.lock().unwrap().on.take().expect("the host runs");
        for _ in 0..times {
            served.kill();
            served = self.serve();
            let mut state = self.state.lock().unwrap();
            state.kills += 1;
            state.starts += 1;
        }
        self.state.lock().unwrap().on = Some(served);
        self.changed.notify_all();
    }

    /// Ends the host in order.
    pub(super) fn stop(&self) {
        let served = self.state.lock().unwrap().on.take().expect("the host runs");
        let (status, said) = served.stop();
        assert_eq!(status.code(), Some(0), "{said}");
    }

    pub(super) fn start(&self) {
        let served = self.serve();
        let mut state = self.state.lock().unwrap();
        state.on = Some(served);
        state.starts += 1;
    }

    pub(super) fn kills(&self) -> usize {
        self.state.lock().unwrap().kills
    }

    /// Waits until the host runs; gives how often it was started by then.
    pub(super) fn wait(&self) -> usize {
        let state = self.state.lock().unwrap();
        let (state, waited) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.on.is_none())
            .unwrap();
        assert!(!waited.timed_out(), "the host did not come back");
        state.starts
    }

    pub(super) fn connect(&self) -> io::Result<Http> {
        Http::connect(self.address, &self.token)
    }
}

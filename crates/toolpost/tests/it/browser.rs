//! A Chromium without a window, told what to do through its own driver: WebDriver over HTTP on loopback.

use std::{
    io::{BufRead, BufReader, Lines},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::Http;

/// What WebDriver calls an element in its JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The driver lets the kernel choose a port for one family of addresses and then takes the same port for the other. Where
/// another test listens there in between, the driver ends, so it is started again.
const DRIVER_STARTS: usize = 5;

/// A browser with a fresh profile. It ends with the test.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    /// Held open, or the driver would end at its next word.
    _said: Lines<BufReader<ChildStdout>>,
    _profile: TempDir,
}

/// Starts a driver on a free port. `None` if it ended before it listened.
fn start_driver() -> Option<(Child, u16, Lines<BufReader<ChildStdout>>)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts\nhint: apt-get install chromium chromium-driver");
    let mut said = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = said.by_ref().find_map(|line| {
        let line = line.ok()?;
        line.strip_prefix("ChromeDriver was started successfully on port ")?
            .trim_end_matches('.')
            .parse()
            .ok()
    });
    match port {
        Some(port) => Some((driver, port, said)),
        None => {
            driver.wait().unwrap();
            None
        }
    }
}

impl Browser {
    pub(crate) fn open() -> Self {
        let (driver, port, said) = (0..DRIVER_STARTS)
            .find_map(|_| start_driver())
            .expect("chromedriver says where it listens");
        let profile = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser = Self {
            driver,
            address,
            session: String::new(),
            _said: said,
            _profile: profile,
        };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let options = json!({ "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-dev-shm-usage", "--no-first-run", "--window-size=900,760", folder,
        ] });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let made = browser.send("/session", &wanted);
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    fn send(&self, path: &str, body: &Value) -> Value {
        // The driver takes a new connection only when the one before it is over.
        let driver = Http::connect(self.address, "none").unwrap();
        let answer = driver.once("POST", path, &body.to_string()).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()["value"].clone()
    }

    fn tell(&self, command: &str, body: &Value) -> Value {
        self.send(&format!("/session/{}/{command}", self.session), body)
    }

    pub(crate) fn go(&self, url: &str) {
        self.tell("url", &json!({ "url": url }));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.tell(
            "element",
            &json!({ "using": "css selector", "value": selector }),
        );
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    /// Types into the one field that fits.
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        let id = self.element(selector);
        self.tell(&format!("element/{id}/value"), &json!({ "text": text }));
    }

    pub(crate) fn click(&self, selector: &str) {
        let id = self.element(selector);
        self.tell(&format!("element/{id}/click"), &json!({}));
    }

    /// What a function's body gives on the page.
    pub(crate) fn ask(&self, script: &str) -> Value {
        self.tell("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Has the page look as on a system with these colours: `light` or `dark`.
    pub(crate) fn colours(&self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.tell(
            "goog/cdp/execute",
            &json!({ "cmd": "Emulation.setEmulatedMedia", "params": media }),
        );
    }

    /// A picture of what a person would see, as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let driver = Http::connect(self.address, "none").unwrap();
        let answer = driver
            .once("GET", &format!("/session/{}/screenshot", self.session), "")
            .unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        STANDARD
            .decode(answer.json()["value"].as_str().unwrap())
            .expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser when it is asked to, and not when it is killed.
        if let Ok(driver) = Http::connect(self.address, "none") {
            let _ = driver.once("DELETE", &format!("/session/{}", self.session), "");
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

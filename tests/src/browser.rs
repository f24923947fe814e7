//! A real browser without a screen, driven over a pipe, in a network namespace of its own: it can reach nothing.
#![expect(clippy::indexing_slicing, reason = "a missing field of a JSON answer is null")]

use crate::wait::{PATIENCE, wait};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use tempfile::TempDir;

/// How long the browser may take for an answer.
const ANSWER: std::time::Duration = PATIENCE;

/// The browser reads its commands from descriptor 3 and answers on 4, each ended by a NUL.
const PIPES: &str = "exec unshare --net \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";

const OPTIONS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
];

/// A page in a browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// The addresses that the page has asked for.
    requests: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts Debian's Chromium with an empty page of this size.
    #[must_use]
    pub fn start(width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().expect("a temporary directory");
        let mut child = Command::new("sh")
            .args(["-c", PIPES, "sh", "chromium"])
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, answers) = channel();
        spawn(move || {
            let mut text = Vec::new();
            while output.read_until(0, &mut text).is_ok_and(|size| size > 0) {
                let message = serde_json::from_slice(text.strip_suffix(&[0]).unwrap_or(&text));
                if sender.send(message.unwrap_or_default()).is_err() {
                    break;
                }
                text.clear();
            }
        });
        let (session, requests) = (None, Vec::new());
        let mut browser =
            Self { child, input, answers, sent: 0, session, requests, _profile: profile };
        browser.attach(width, height);
        browser
    }

    fn attach(&mut self, width: u32, height: u32) {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", &attach);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Network.enable", "Runtime.enable"] {
            self.call(domain, &json!({}));
        }
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Opens a page and waits until it has drawn.
    pub fn open(&mut self, page: &Path) {
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", &json!({"url": url}));
        let drawn = "window.timeline ? window.timeline.drawn().lanes : 0";
        let lanes = wait(|| self.evaluate(drawn).as_u64().filter(|lanes| *lanes > 0));
        assert!(lanes.is_some(), "{} draws nothing", page.display());
    }

    /// The value of an expression on the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let call = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &call);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Moves the pointer.
    pub fn hover(&mut self, x: f64, y: f64) {
        let event = json!({"type": "mouseMoved", "x": x, "y": y});
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Types a text into an element.
    pub fn type_into(&mut self, id: &str, text: &str) {
        self.evaluate(&format!("document.getElementById('{id}').select()"));
        self.call("Input.insertText", &json!({"text": text}));
        self.settle();
    }

    /// Waits until what was changed is drawn.
    pub fn settle(&mut self) {
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
        let call = json!({"expression": frames, "awaitPromise": true});
        self.call("Runtime.evaluate", &call);
    }

    /// The page as a PNG in base64.
    pub fn screenshot(&mut self) -> String {
        let answer = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        answer["data"].as_str().expect("a picture").to_owned()
    }

    /// The seconds of CPU that drawing pages has taken so far.
    pub fn cpu_seconds(&mut self) -> f64 {
        let session = self.session.take();
        let answer = self.call("SystemInfo.getProcessInfo", &json!({}));
        self.session = session;
        let processes = answer["processInfo"].as_array().cloned().unwrap_or_default();
        processes
            .iter()
            .filter(|it| it["type"] != "browser")
            .filter_map(|it| it["cpuTime"].as_f64())
            .sum()
    }

    /// The addresses that the page has asked for, itself first.
    #[must_use]
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let written = write!(self.input, "{message}\0").and_then(|()| self.input.flush());
        written.expect("the browser runs");
        loop {
            let answer = self.answers.recv_timeout(ANSWER);
            let mut answer =
                answer.unwrap_or_else(|_| panic!("{method}: no answer; is chromium installed?"));
            if answer["method"] == "Network.requestWillBeSent" {
                let url = answer["params"]["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.to_owned());
            }
            if answer["id"] == json!(id) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

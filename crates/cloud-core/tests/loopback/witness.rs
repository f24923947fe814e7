//! Sees everything that is logged by anyone and every error, and finds no secret there.

use cloud_core::Error;
use log::{LevelFilter, Log, Metadata, Record};
use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::Mutex;

pub(crate) const TOKEN: &str = "token-hunter2";
pub(crate) const QUERY: &str = "query-hunter3";
pub(crate) const BODY: &str = "body-hunter4";
pub(crate) const PASSWORD: &str = "proxy-hunter5";
/// `user:proxy-hunter5` as it goes to the proxy, in base64.
pub(crate) const BASIC: &str = "dXNlcjpwcm94eS1odW50ZXI1";

struct Witness(Mutex<String>);

static WITNESS: Witness = Witness(Mutex::new(String::new()));

impl Log for Witness {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut text = self.0.lock().expect("not poisoned");
        writeln!(text, "{} {}", record.target(), record.args()).expect("memory");
    }

    fn flush(&self) {}
}

/// Takes every log line of every crate, at every level; events of `tracing` come here too.
pub(crate) fn install() {
    if log::set_logger(&WITNESS).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

/// No secret in the error, its causes, or any log so far.
pub(crate) fn check(error: &Error) {
    let mut text = format!("{error}\n{error:?}\n{error:#?}");
    let mut cause = error.source();
    while let Some(next) = cause {
        write!(text, "\n{next}\n{next:?}").expect("memory");
        cause = next.source();
    }
    assert_clean(&text);
    check_logs();
}

/// No secret in any log so far.
pub(crate) fn check_logs() {
    assert_clean(&logs());
}

/// Everything logged so far.
pub(crate) fn logs() -> String {
    WITNESS.0.lock().expect("not poisoned").clone()
}

fn assert_clean(text: &str) {
    for secret in [TOKEN, QUERY, BODY, PASSWORD, BASIC, "hunter"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

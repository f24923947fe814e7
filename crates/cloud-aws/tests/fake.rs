//! An EC2 of the test's own making.

use cloud_aws::{Aws, Config, ConnectSettings, LaunchOptions, Overrides};
use cloud_core::http::Retry;
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ImageId, InstanceName, InstanceSpec, LaunchToken, ShapeName, Sources, Tags};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request: its first line, its headers with names in lower case, its form.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) form: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn get(&self, key: &str) -> &str {
        self.form.get(key).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn action(&self) -> &str {
        self.get("Action")
    }
}

type Answers = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

/// A server whose answers are the test's.
pub(crate) struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub(crate) async fn new(
        answers: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, seen): (Arc<Answers>, _) = (Arc::new(answers), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                tokio::spawn(async move { serve(socket, &*answers, &seen).await });
            }
        });
        Self { address, asked }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("a lock").clone()
    }

    /// A provider on it, with a fixed key.
    pub(crate) fn connect(&self, launch: LaunchOptions) -> Aws {
        let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "very-secret")];
        self.connect_with(&keys, launch)
    }

    /// A provider on it, with these variables and no files.
    pub(crate) fn connect_with(&self, variables: &[(&str, &str)], launch: LaunchOptions) -> Aws {
        let config = config(variables, &self.endpoint());
        let mut settings = ConnectSettings::new(noon);
        settings.launch = launch;
        settings.http.retry =
            Retry { attempts: 2, first: Duration::from_millis(5), ..Retry::default() };
        Aws::connect(&config, settings, &Pacer::new(Pace::default())).expect("a client")
    }
}

/// The time at which all requests of these tests are signed.
pub(crate) fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(498_612)
}

/// A configuration from these variables alone.
pub(crate) fn config(variables: &[(&str, &str)], endpoint: &str) -> Config {
    let all = variables.iter().chain(&[("AWS_REGION", "eu-west-1")]);
    let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let nothing = |_: &Path| Err(Error::from(ErrorKind::NotFound));
    let overrides = Overrides { endpoint: Some(endpoint.to_owned()), ..Overrides::default() };
    Config::load(&Sources::new(None, all, nothing), &overrides).expect("a configuration")
}

/// A launch with the tags of a node and a token.
pub(crate) fn spec(name: &str) -> InstanceSpec {
    let image = ImageId::new("ami-0a1b2c3d4e5f60718");
    let mut spec = InstanceSpec::new(InstanceName::new(name), ShapeName::new("t3a.small"), image);
    spec.tags = Tags::from([("cluster", "cheerful-macaw"), ("type", "compute"), ("node", name)]);
    spec.token = LaunchToken::new(format!("token-{name}")).ok();
    spec
}

/// An instance in an answer.
pub(crate) fn item(id: &str, state: &str, index: usize, tags: &[(&str, &str)]) -> String {
    let tag = |(key, value): &(&str, &str)| {
        format!("<item><key>{key}</key><value>{value}</value></item>")
    };
    let tags = tags.iter().map(tag).collect::<Vec<_>>().concat();
    format!(
        "<item><instanceId>{id}</instanceId><imageId>ami-0a1b2c3d4e5f60718</imageId>\
         <instanceState><code>0</code><name>{state}</name></instanceState>\
         <amiLaunchIndex>{index}</amiLaunchIndex><privateIpAddress>10.0.0.{index}</privateIpAddress>\
         <tagSet>{tags}</tagSet></item>"
    )
}

/// An answer to an action.
pub(crate) fn answer(action: &str, inner: &str) -> (u16, String) {
    (200, format!("<?xml version=\"1.0\"?>\n<{action}Response>{inner}</{action}Response>"))
}

/// An error.
pub(crate) fn error(status: u16, code: &str, message: &str) -> (u16, String) {
    let inner = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    (status, format!("<Response><Errors>{inner}</Errors><RequestID>r-1</RequestID></Response>"))
}

async fn serve(mut socket: TcpStream, answers: &Answers, seen: &Mutex<Vec<Asked>>) {
    let mut buffer = Vec::new();
    while let Some(asked) = read(&mut socket, &mut buffer).await {
        seen.lock().expect("a lock").push(asked.clone());
        let (status, body) = answers(&asked);
        let head = format!("HTTP/1.1 {status} OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let whole = [head.as_bytes(), body.as_bytes()].concat();
        if socket.write_all(&whole).await.is_err() {
            return;
        }
    }
}

async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    loop {
        let text = String::from_utf8_lossy(buffer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let line = lines.next().unwrap_or_default().to_owned();
            let pair = |line: &str| {
                let (name, value) = line.split_once(':')?;
                Some((name.to_ascii_lowercase(), value.trim().to_owned()))
            };
            let headers: BTreeMap<String, String> = lines.filter_map(pair).collect();
            let length =
                headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                let body = body.chars().take(length).collect::<String>();
                buffer.drain(..head.len() + 4 + length);
                let form = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
                return Some(Asked { line, headers, form, body });
            }
        }
        let mut part = vec![0; 65_536];
        match socket.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffer.extend_from_slice(&part[..count]),
        }
    }
}

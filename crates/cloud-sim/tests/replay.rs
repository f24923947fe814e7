//! What the SDK sent for each recorded operation is accepted, with the status and the fields of
//! the recording.

use crate::support::{Answered, Fixture, launch_body};
use cloud_sim::{CloudSettings, Fault, Rule, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What has to be so before a recording can be replayed.
enum Before {
    /// Nothing.
    Nothing,
    /// The instance that its path names is there, in this state.
    Instance(State),
    /// Five instances, more than two pages of two.
    Five,
    /// The same request was made before.
    Same,
    /// The same request was made before, and its instance terminated.
    SameTerminated,
    /// A launch that fails later, this long ago.
    Doomed { seconds: u64 },
}

fn before(name: &str) -> Before {
    match &name[..2] {
        "04" => Before::Same,
        "07" | "09" | "10" => Before::Five,
        "08" => Before::Instance(State::Running),
        "11" | "12" | "13" | "14" | "15" | "17" | "18" | "20" | "34" | "35" => {
            Before::Instance(State::Running)
        }
        "16" | "21" | "22" => Before::Instance(State::Stopping),
        "19" => Before::Instance(State::Stopped),
        "36" => Before::Instance(State::Terminating),
        "37" => Before::Instance(State::Terminated),
        "38" => Before::SameTerminated,
        "41" => Before::Doomed { seconds: 0 },
        "42" | "43" | "44" => Before::Doomed { seconds: 3 },
        _ => Before::Nothing,
    }
}

fn recordings() -> Vec<PathBuf> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(|first: char| first.is_ascii_digit())
    });
    paths.sort();
    paths
}

/// A request of a recording.
struct Request {
    method: String,
    target: String,
    /// The headers that mean something to the operation.
    extra: Vec<(String, String)>,
    body: String,
}

impl Request {
    fn read(exchange: &Value) -> Self {
        let mut words = exchange["request_line"].as_str().unwrap().split(' ');
        let headers = exchange["headers"].as_array().unwrap().iter();
        let headers = headers.map(|pair| {
            (pair[0].as_str().unwrap().to_lowercase(), pair[1].as_str().unwrap().to_owned())
        });
        let own =
            ["date", "host", "authorization", "content-length", "content-type", "x-content-sha256"];
        Self {
            method: words.next().unwrap().to_owned(),
            target: words.next().unwrap().to_owned(),
            extra: headers.filter(|(name, _)| !own.contains(&name.as_str())).collect(),
            body: exchange["raw_body"].as_str().unwrap().to_owned(),
        }
    }

    /// Puts the ids of this cloud in place of those of the recording.
    fn with(mut self, ids: &BTreeMap<String, String>) -> Self {
        let replace = |text: &mut String| {
            for (old, new) in ids {
                *text = text.replace(old, new);
            }
        };
        replace(&mut self.target);
        replace(&mut self.body);
        for (_, value) in &mut self.extra {
            replace(value);
        }
        self
    }

    async fn send(&self, fixture: &Fixture) -> Answered {
        let extra: Vec<(&str, &str)> =
            self.extra.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fixture.try_send(&self.method, &self.target, &extra, &self.body).await.unwrap()
    }
}

/// The first id of a kind in a text.
fn id_in(text: &str, kind: &str) -> Option<String> {
    let start = text.find(&format!("ocid1.{kind}."))?;
    let rest = &text[start..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

/// Sets the fixture, and gives the ids to put in place of the recording's.
async fn prepare(fixture: &Fixture, name: &str, first: &Value) -> BTreeMap<String, String> {
    let request = Request::read(first);
    let mut ids = BTreeMap::new();
    match before(name) {
        Before::Nothing => {}
        Before::Same => drop(request.send(fixture).await.ok()),
        Before::SameTerminated => {
            let id = request.send(fixture).await.ok().json()["id"].as_str().unwrap().to_owned();
            fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
        }
        Before::Five => {
            for name in ["a", "b", "c", "d", "e"] {
                fixture.launch(name).await;
            }
        }
        Before::Doomed { seconds } => {
            let (id, work) = doomed(fixture, seconds).await;
            let old = |kind| id_in(&request.target, kind);
            ids.extend(old("coreservicesworkrequest").map(|old| (old, work)));
            ids.extend(old("instance").map(|old| (old, id)));
        }
        Before::Instance(state) => {
            let (id, vnic) = in_state(fixture, state).await;
            ids.extend(id_in(&request.target, "instance").map(|old| (old, id)));
            ids.extend(id_in(&request.target, "vnic").map(|old| (old, vnic)));
        }
    }
    ids
}

/// A launch that fails later, this long ago: its instance and its work request.
async fn doomed(fixture: &Fixture, seconds: u64) -> (String, String) {
    let message = "Out of host capacity.".to_owned();
    let fault = Fault::FailLater { code: "InternalError".into(), message };
    fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", fault)).unwrap();
    let doomed = fixture.launch_with(None, &launch_body("nocap-1")).await.ok();
    fixture.advance(seconds);
    let work = doomed.header("opc-work-request-id").unwrap();
    (doomed.json()["id"].as_str().unwrap().to_owned(), work)
}

/// An instance in this state, one of two of a name, and its VNIC.
async fn in_state(fixture: &Fixture, state: State) -> (String, String) {
    let id = fixture.launch("c1-compute-0001").await;
    fixture.launch("c1-compute-0001").await;
    fixture.advance(10);
    let attachments = format!(
        "/20160918/vnicAttachments?compartmentId={}&instanceId={id}",
        crate::support::COMPARTMENT
    );
    let attachments = fixture.get(&attachments).await.ok().json();
    fixture.cloud.admin().set_state(&id, state).unwrap();
    (id, attachments[0]["vnicId"].as_str().unwrap().to_owned())
}

/// What may be null in an answer though the recording has a value: it depends on the request.
const MAY_BE_NULL: &[&str] = &[
    "availableCount",
    "hostnameLabel",
    "baselineOcpuUtilization",
    "preemptibleInstanceConfig",
    "pluginsConfig",
];

/// What the server of the recordings shows and OCI does not, whose model of an instance has no
/// such field.
const NOT_SHOWN: &str = "computeClusterId";

/// Every field of the recording is in the answer; where its value is null, it may be anything.
fn same_fields(path: &str, recorded: &Value, answered: &Value) {
    match (recorded, answered) {
        (Value::Object(recorded), Value::Object(answered)) => {
            for (name, value) in recorded.iter().filter(|(name, _)| *name != NOT_SHOWN) {
                let Some(other) = answered.get(name) else {
                    panic!("{path}.{name} is missing");
                };
                let free = ["freeformTags", "definedTags", "metadata", "sourceDetails"];
                let null = other.is_null() && MAY_BE_NULL.contains(&name.as_str());
                if !null && !free.contains(&name.as_str()) {
                    same_fields(&format!("{path}.{name}"), value, other);
                }
            }
        }
        (Value::Array(recorded), Value::Array(answered)) => {
            assert_eq!(recorded.is_empty(), answered.is_empty(), "{path}: empty or not");
            // Every row of the answer, against the last of the recording where it has no more.
            let rows =
                recorded.iter().chain(std::iter::repeat(recorded.last().unwrap_or(&Value::Null)));
            for (recorded, answered) in rows.zip(answered) {
                same_fields(&format!("{path}[]"), recorded, answered);
            }
        }
        (Value::Null, _) => {}
        (recorded, answered) => {
            let kinds = (kind(recorded), kind(answered));
            assert_eq!(kinds.0, kinds.1, "{path}: {recorded} and {answered}");
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// No field of an instance that the recording does not have.
fn no_more_fields(name: &str, recorded: &Value, answered: &Value) {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    if recorded.get("launchMode").is_some() && recorded.get("lifecycleState").is_some() {
        let mut recorded = keys(recorded);
        recorded.retain(|key| key != NOT_SHOWN);
        assert_eq!(recorded, keys(answered), "{name}");
    }
}

async fn replay(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let recording: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let exchanges = recording["exchanges"].as_array().unwrap();
    let strict_launch = !name.starts_with("40");
    let settings = CloudSettings { speed: 0.0, strict_launch, ..CloudSettings::default() };
    let fixture = Fixture::new(settings).await;
    let mut ids = prepare(&fixture, name, &exchanges[0]).await;
    if name.starts_with("10") {
        let first =
            format!("/20160918/instances?compartmentId={}&limit=2", crate::support::COMPARTMENT);
        let first = fixture.get(&first);
        let next = first.await.ok().header("opc-next-page").unwrap();
        ids.insert("Mg%3D%3D".to_owned(), crate::support::escaped(&next));
    }
    for exchange in exchanges {
        let answer = Request::read(exchange).with(&ids).send(&fixture).await;
        let recorded = &exchange["response"];
        if let (Some(old), Some(new)) =
            (recorded["headers"]["etag"].as_str(), answer.header("etag"))
        {
            ids.insert(old.to_owned(), new);
        }
        compare(name, recorded, &answer);
    }
}

/// The answer is as the recorded one, in all that does not depend on the time.
fn compare(name: &str, recorded: &Value, answer: &Answered) {
    assert_eq!(json!(answer.status), recorded["status"], "{name}: {answer:?}");
    for header in ["etag", "opc-work-request-id", "opc-next-page", "opc-request-id"] {
        let there = !recorded["headers"][header].is_null();
        assert!(!there || answer.header(header).is_some(), "{name}: no {header}");
    }
    let body = &recorded["body"];
    if body.get("code").is_some() {
        assert_eq!(answer.json()["code"], body["code"], "{name}");
    }
    same_fields(name, body, &answer.json());
    no_more_fields(name, body, &answer.json());
    if let Some(state) = body.get("lifecycleState") {
        assert_eq!(&answer.json()["lifecycleState"], state, "{name}");
    }
}

#[tokio::test]
async fn every_recording_is_accepted() {
    let recordings = recordings();
    assert_eq!(recordings.len(), 42);
    for path in recordings {
        replay(&path).await;
    }
}

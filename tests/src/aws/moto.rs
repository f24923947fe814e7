//! moto's server, and boto3 as the administrator of its account.

use crate::network;
use crate::test_cloud::Machine;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// What stands in a tag for the name of an instance that was launched with others.
const BY_INDEX: &str = "@launch-index";

/// A server, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Moto {
    child: Child,
    lines: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    directory: PathBuf,
    facts: Value,
}

impl Moto {
    /// Starts one where machines can reach it; its user may do what a policy says.
    pub(super) fn start(directory: &Path) -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = tests.join("moto/serve");
        let mut child = Command::new(&script)
            .arg(directory)
            .args(["--listen", &format!("{}:0", network::CONTROLLER)])
            .arg("--policy")
            .arg(tests.join("../examples/aws/policy.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "no moto: run tests/moto/fetch to see why");
        let facts = fs::read(directory.join("cloud.json")).expect("it is up");
        let facts = serde_json::from_slice(&facts).expect("JSON");
        let lines = Mutex::new(Some((input, output)));
        Self { child, lines, directory: directory.to_owned(), facts }
    }

    /// The file of its user, such as `credentials`.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join("aws").join(name)
    }

    /// A fact by its path, such as `/images/image-1`.
    pub(super) fn fact(&self, path: &str) -> &str {
        let fact = self.facts.pointer(path).and_then(Value::as_str);
        fact.unwrap_or_else(|| panic!("no {path} in {}", self.facts))
    }

    /// Has boto3 call an operation.
    pub(super) fn call(&self, call: &str, with: &Value) -> io::Result<Value> {
        let mut lines = self.lines.lock().expect("nobody panics meanwhile");
        let (input, output) = lines.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{}", json!({"call": call, "with": with}))?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        match answer.get_mut("answer").map(Value::take) {
            Some(answer) => Ok(answer),
            None => Err(io::Error::other(format!("{call}: {line}"))),
        }
    }

    /// What the aws command line prints as JSON, with the credentials of the programs.
    pub(super) fn cli(&self, endpoint: &str, arguments: &[&str]) -> Value {
        let fetch = Path::new(env!("CARGO_MANIFEST_DIR")).join("moto/fetch");
        let venv = Command::new(fetch).output().expect("tests/moto/fetch").stdout;
        let venv = String::from_utf8(venv).expect("a path");
        let printed = Command::new(Path::new(venv.trim()).join("bin/aws"))
            .args(["--endpoint-url", endpoint, "--output", "json"])
            .args(arguments)
            .env_clear()
            .env("AWS_CONFIG_FILE", self.file("config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", self.file("credentials"))
            .output()
            .expect("the aws command line");
        serde_json::from_slice(&printed.stdout)
            .unwrap_or_else(|error| panic!("{error}: {printed:?}"))
    }

    /// Every instance that is not gone.
    pub(super) fn machines(&self) -> io::Result<Vec<Machine>> {
        let states = ["pending", "running", "shutting-down", "stopping", "stopped"];
        let filter = json!({"Filters": [{"Name": "instance-state-name", "Values": states}]});
        let answer = self.call("describe_instances", &filter)?;
        let replaced = self.call("root_images", &json!({}))?;
        let machines = answer.as_array().into_iter().flatten().map(machine);
        let booted = |machine: Machine| match replaced.get(&machine.id).and_then(Value::as_str) {
            Some(image) => Machine { image: image.to_owned(), ..machine },
            None => machine,
        };
        Ok(machines.map(booted).collect())
    }

    /// Those that are up, and how often they have booted.
    pub(super) fn up(&self) -> io::Result<Vec<(usize, Machine)>> {
        let boots = self.call("boots", &json!({}))?;
        let times = |id: &str| boots.get(id).and_then(Value::as_array).map_or(0, Vec::len);
        let up = self.machines()?.into_iter().filter(|machine| machine.state == "running");
        Ok(up.map(|machine| (times(&machine.id), machine)).collect())
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // Its input ends, and it with it.
        drop(self.lines.lock().map(|mut lines| lines.take()));
        let _ = self.child.wait();
    }
}

/// A tag of an instance.
pub(super) fn tag<'a>(instance: &'a Value, key: &str) -> Option<&'a str> {
    let tags = instance.get("Tags").and_then(Value::as_array)?;
    let found = tags.iter().find(|tag| tag.get("Key").and_then(Value::as_str) == Some(key));
    found?.get("Value").and_then(Value::as_str)
}

/// What an instance is called: the tag `Name`, or with others of its launch the name at its index in `names:0` and so on.
fn name(instance: &Value) -> String {
    if let Some(name) = tag(instance, "Name").filter(|name| *name != BY_INDEX) {
        return name.to_owned();
    }
    let parts = (0..).map_while(|number: u32| tag(instance, &format!("names:{number}")));
    let names = parts.collect::<Vec<_>>().join(" ");
    let index = instance.get("AmiLaunchIndex").and_then(Value::as_u64).unwrap_or_default();
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    names.split(' ').nth(index).unwrap_or_default().to_owned()
}

fn machine(instance: &Value) -> Machine {
    let text =
        |path: &str| instance.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    Machine {
        id: text("/InstanceId"),
        name: name(instance),
        state: text("/State/Name"),
        zone: text("/Placement/AvailabilityZone"),
        address: text("/PrivateIpAddress"),
        image: text("/ImageId"),
    }
}

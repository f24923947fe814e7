//! The program: its files, and machines that are processes.

use crate::support::{Fixture, eventually, launch_body, script};
use cloud_sim::{CloudSettings, Subnet};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    endpoint: String,
}

impl Running {
    pub(crate) fn start(state: &Path, more: &[&str]) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_cloud-sim")), state, more)
    }

    /// By a shell that first does something else, such as to ignore a signal.
    fn start_after(words: &str, state: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{words}; exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_cloud-sim")).stderr(Stdio::piped());
        Self::start_by(command, state, &[])
    }

    fn start_by(mut command: Command, state: &Path, more: &[&str]) -> Self {
        command.arg("--state").arg(state).args(["--speed", "100"]).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, endpoint: line.trim_end().to_owned() }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as an operator would.
    fn end(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn instances(running: &Running) -> serde_json::Value {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = http.get(format!("{}/admin/instances", running.endpoint)).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// Launches through the program, signed with the key that it wrote.
pub(crate) async fn launch(
    running: &Running,
    state: &Path,
    name: &str,
    token: &str,
) -> serde_json::Value {
    let fixture = Fixture::frozen().await;
    let mut credentials = fixture.cloud.credentials().clone();
    credentials.private_key_pem = std::fs::read_to_string(state.join("oci/key.pem")).unwrap();
    let signer = crate::support::Signer::new(&credentials);
    let host = running.endpoint.trim_start_matches("http://");
    let mut body = launch_body(name);
    body["metadata"] = serde_json::json!({"user_data": "aGVsbG8=", "role-name": "compute"});
    let body = body.to_string();
    let target = "/20160918/instances";
    let mut request = fixture.http.post(format!("{}{target}", running.endpoint));
    for (name, value) in signer.headers("POST", target, host, &body) {
        request = request.header(name, value);
    }
    let answer = request.header("opc-retry-token", token).body(body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn the_address_is_announced_and_gone_with_the_program() {
    let state = TempDir::new().unwrap();
    let running = Running::start(state.path(), &[]);
    assert_eq!(text(&state.path().join("endpoint")), running.endpoint);
    let mode = std::fs::metadata(state.path().join("oci/key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = launch(&running, state.path(), "n1", "t1").await;
    let again = launch(&running, state.path(), "n1", "t1").await;
    assert_eq!(again["id"], first["id"], "the token is remembered");
    running.signal(Signal::KILL);
    drop(running);
    let running = Running::start(state.path(), &[]);
    assert_eq!(instances(&running).await, serde_json::json!([]), "a new cloud is empty");
    running.end();
    assert!(!state.path().join("endpoint").exists(), "the address is gone with the program");
}

#[tokio::test]
async fn machines_are_processes() {
    let state = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let up = script(
        work.path(),
        "up",
        &format!(
            "trap 'echo ended $NAME >> {0}; exit 0' TERM\n\
             echo up $1 $NAME $ADDRESS $AVAILABILITY_DOMAIN $SHAPE $IMAGE_ID \
             $METADATA_USER_DATA $METADATA_ROLE_NAME $(grep -c imageId $METADATA_FILE) >> {0}\n\
             sleep 1000 & wait",
            log.display()
        ),
    );
    let down = script(work.path(), "down", &format!("echo down $NAME >> {}", log.display()));
    let up = format!("{up} argument");
    let arguments = ["--machine-up", up.as_str(), "--machine-down", down.as_str()];
    let running = Running::start(state.path(), &arguments);
    launch(&running, state.path(), "n1", "t1").await;
    let first = "up argument n1 10.1.0.2 Uocm:PHX-AD-1 VM.Standard.E5.Flex \
                 ocid1.image.oc1.phx.img001 aGVsbG8= compute 1\n";
    eventually("the machine starts", || text(&log) == first).await;
    running.end();
    assert_eq!(text(&log), format!("{first}down n1\nended n1\n"), "ended with the cloud");
    let running = Running::start(state.path(), &arguments);
    launch(&running, state.path(), "n1", "t1").await;
    eventually("a machine starts again", || text(&log).ends_with(first)).await;
    running.end();
}

#[tokio::test]
async fn a_machine_that_does_not_start_is_logged() {
    let state = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let up = script(work.path(), "up", "exit 7");
    let running =
        Running::start(state.path(), &["--machine-up", &up, "--machine-down", "/no/such/program"]);
    launch(&running, state.path(), "n1", "t1").await;
    let log = state.path().join("machines.log");
    eventually("the failure is logged", || text(&log).contains("up: exit status: 7")).await;
    assert_eq!(instances(&running).await[0]["instance"]["lifecycleState"], "RUNNING");
    running.end();
    assert!(text(&log).contains("down: /no/such/program"), "{}", text(&log));
}

#[tokio::test]
async fn a_reset_switches_off_and_on() {
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let write =
        |what: &str| script(work.path(), what, &format!("echo {what} >> {}", log.display()));
    let settings = CloudSettings {
        state: Some(work.path().join("state")),
        machine_up: vec![write("up")],
        machine_down: vec![write("down")],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    let id = fixture.launch("n1").await;
    eventually("up", || text(&log) == "up\n").await;
    fixture.send("POST", &format!("/20160918/instances/{id}?action=RESET"), "").await.ok();
    eventually("down and up", || text(&log) == "up\ndown\nup\n").await;
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    eventually("down", || text(&log) == "up\ndown\nup\ndown\n").await;
    drop(fixture);
    assert_eq!(text(&log), "up\ndown\nup\ndown\n");
}

#[tokio::test]
async fn a_script_sets_the_scene() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("script.yaml");
    let yaml = "speed: 10\nlatency_millis: 1\nsubnets:\n\
                \x20 - {id: ocid1.subnet.oc1.phx.aaaasub, name: local, cidr: 127.0.0.1/32}\n\
                faults:\n  - operation: LaunchInstance\n    count: 1\n\
                \x20   fault: {kind: drop_after}\n";
    std::fs::write(&path, yaml).unwrap();
    let settings = CloudSettings::from_script(&path).unwrap();
    assert_eq!(settings.faults.len(), 1);
    let fixture = Fixture::new(settings).await;
    let body = launch_body("n1").to_string();
    fixture.try_send("POST", "/20160918/instances", &[], &body).await.unwrap_err();
    fixture.launch("n2").await;
    let admin = fixture.cloud.admin();
    let addresses: Vec<_> =
        admin.instances().iter().map(|one| admin.address(&one.id).unwrap().to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1", "127.0.0.1"]);
    std::fs::write(&path, "sped: 10\n").unwrap();
    let error = CloudSettings::from_script(&path).unwrap_err();
    assert!(error.to_string().ends_with("not a script"), "{error}");
}

#[tokio::test]
async fn what_is_no_range_of_addresses_is_refused() {
    for cidr in ["", "10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0/8"] {
        let mut settings = CloudSettings::default();
        let name = "n".to_owned();
        let vcn = "v".to_owned();
        let tags = std::collections::BTreeMap::new();
        let subnet = Subnet { id: "s".into(), name, cidr: cidr.into(), vcn, freeform_tags: tags };
        settings.subnets = vec![subnet];
        let refused = cloud_sim::Cloud::start(settings).await.unwrap_err();
        assert!(refused.to_string().contains("is not an IPv4 range"), "{refused}");
    }
}

#[tokio::test]
async fn a_second_cloud_on_the_same_state_is_refused() {
    let state = TempDir::new().unwrap();
    let running = Running::start(state.path(), &[]);
    let first = launch(&running, state.path(), "n1", "t1").await;
    let journal = text(&state.path().join("journal.jsonl"));
    for listen in ["127.0.0.1:0", running.endpoint.trim_start_matches("http://")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloud-sim"));
        command.arg("--state").arg(state.path()).args(["--listen", listen]);
        let ended = command.output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(&state.path().display().to_string()), "{said}");
        assert!(said.contains("another cloud-sim runs on this state"), "{said}");
    }
    assert_eq!(text(&state.path().join("endpoint")), running.endpoint);
    // It may have grown, and was not begun anew.
    assert!(text(&state.path().join("journal.jsonl")).starts_with(&journal));
    assert_eq!(instances(&running).await[0]["instance"]["id"], first["id"]);
    running.end();
    Running::start(state.path(), &[]).end();
}

#[tokio::test]
async fn machines_end_with_the_terminal() {
    let (state, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let log = work.path().join("log");
    let up = format!(
        "trap 'echo ended >> {0}; exit 0' TERM; echo up >> {0}; sleep 1000 & wait",
        log.display()
    );
    let up = script(work.path(), "up", &up);
    let mut running = Running::start(state.path(), &["--machine-up", &up]);
    launch(&running, state.path(), "n1", "t1").await;
    eventually("the machine starts", || text(&log) == "up\n").await;
    running.signal(Signal::HUP);
    assert!(running.child.wait().unwrap().success());
    assert_eq!(text(&log), "up\nended\n");
    assert!(!state.path().join("endpoint").exists());
}

#[tokio::test]
async fn a_hangup_that_was_ignored_from_the_start_stays_so() {
    let state = TempDir::new().unwrap();
    let running = Running::start_after("trap '' HUP", state.path());
    running.signal(Signal::HUP);
    launch(&running, state.path(), "n1", "t1").await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "HUP is the first: {status}");
    running.end();
}

#[tokio::test]
async fn a_script_with_users_of_its_own_leaves_the_config_valid() {
    let (state, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = work.path().join("script.yaml");
    std::fs::write(&path, "users: []\n").unwrap();
    let running = Running::start(state.path(), &["--script", path.to_str().unwrap()]);
    launch(&running, state.path(), "n1", "t1").await;
    running.end();
}

/// A program whose one machine does not end by itself, nor does the program for its end.
async fn stubborn(state: &Path, work: &Path) -> Running {
    let log = work.join("log");
    let stay = |what: &str| {
        let text = format!(
            "trap 'echo told >> {0}' TERM; echo {what} >> {0}; while :; do sleep 0.05; done",
            log.display()
        );
        script(work, what, &text)
    };
    let (up, down) = (stay("up"), stay("down"));
    let running = Running::start(state, &["--machine-up", &up, "--machine-down", &down]);
    launch(&running, state, "n1", "t1").await;
    eventually("the machine starts", || text(&log) == "up\n").await;
    running
}

#[tokio::test]
async fn a_second_signal_ends_the_machines_at_once() {
    let (state, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut running = stubborn(state.path(), work.path()).await;
    let log = work.path().join("log");
    running.signal(Signal::TERM);
    eventually("its end begins", || text(&log) == "up\ndown\n").await;
    running.signal(Signal::INT);
    assert!(running.child.wait().unwrap().success());
    assert_eq!(text(&log), "up\ndown\n", "neither was asked any more");
}

#[tokio::test]
async fn a_cloud_that_ends_answers_no_launch() {
    let (state, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut running = stubborn(state.path(), work.path()).await;
    let mut kept = TcpStream::connect(running.endpoint.trim_start_matches("http://")).unwrap();
    let ask = b"GET /admin/counts HTTP/1.1\r\nhost: x\r\n\r\n";
    kept.write_all(ask).unwrap();
    let mut answer = [0; 12];
    kept.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    running.signal(Signal::TERM);
    eventually("its end begins", || text(&work.path().join("log")) == "up\ndown\n").await;
    // What was answered before is still to be read; after it, there is nothing.
    let mut rest = Vec::new();
    let _ = kept.write_all(ask).and_then(|()| kept.read_to_end(&mut rest).map(drop));
    let rest = String::from_utf8(rest).unwrap();
    assert!(!rest.contains("HTTP/1.1"), "{rest}");
    running.signal(Signal::TERM);
    running.child.wait().unwrap();
}

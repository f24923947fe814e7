//! Machines that outlive what started them.

use crate::program::{Running, launch};
use crate::support::{Fixture, eventually, script};
use cloud_sim::CloudSettings;
use std::path::Path;
use std::process::{Child, Command};
use tempfile::TempDir;

/// The processes that machines wrote down, in the order in which they started.
fn processes(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

/// True while a process runs; one that ended and that nobody has reaped does not.
fn runs(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// A cloud in a process of its own, killed at the end; its machines are not.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn machines_of_a_killed_cloud_are_ended_before_others_start() {
    let work = TempDir::new().unwrap();
    let (state, log) = (work.path().join("state"), work.path().join("log"));
    // The second process leaves the group, as a daemon does.
    let up = format!(
        "setsid sleep 1000 &\necho $! >> {0}\necho $$ >> {0}\nexec sleep 1000",
        log.display()
    );
    let settings = CloudSettings {
        state: Some(state.clone()),
        machine_up: vec![script(work.path(), "up", &up)],
        ..CloudSettings::quick()
    };
    let killed = Running::start(&state, &["--machine-up", &settings.machine_up.concat()]);
    launch(&killed, &state, "n1", "t1").await;
    eventually("the machine starts", || processes(&log).len() == 2).await;
    drop(killed);
    let old = processes(&log);
    let still: Vec<bool> = old.iter().map(|process| runs(process)).collect();
    assert_eq!(still, [true, true], "they outlive the program");
    let fixture = Fixture::new(settings).await;
    fixture.launch("n1").await;
    eventually("another starts", || processes(&log).len() == 4).await;
    assert!(!old.iter().any(|process| runs(process)), "the old ones have ended first");
    drop(fixture);
    let new = processes(&log).pop().unwrap();
    assert!(!runs(&new), "ended with the cloud");
    // What left the group is the down program's to end; here there is none.
    let daemon = processes(&log).into_iter().nth(2).unwrap();
    let _ = Command::new("kill").arg(daemon).status().unwrap();
}

#[tokio::test]
async fn what_a_machines_program_leaves_behind_is_ended_with_the_machine() {
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let up = format!("sleep 1000 &\necho $! >> {}\nexit 3", log.display());
    let settings = CloudSettings {
        state: Some(work.path().join("state")),
        machine_up: vec![script(work.path(), "up", &up)],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    let id = fixture.launch("n1").await;
    let said = work.path().join("state/machines.log");
    let text = || std::fs::read_to_string(&said).unwrap_or_default();
    eventually("the program has ended", || text().contains("up: exit status: 3")).await;
    let left = processes(&log).pop().unwrap();
    assert!(runs(&left));
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    eventually("it is ended", || !runs(&left)).await;
}

#[tokio::test]
async fn what_the_down_program_leaves_behind_ends_with_the_cloud() {
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let down = format!("sleep 1000 &\necho $! >> {}", log.display());
    let settings = CloudSettings {
        state: Some(work.path().join("state")),
        machine_down: vec![script(work.path(), "down", &down)],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    eventually("the program has run", || processes(&log).len() == 1).await;
    drop(fixture);
    assert!(!processes(&log).iter().any(|process| runs(process)));
}

#[tokio::test]
async fn the_file_of_a_machine_stays_until_its_end_has_read_it() {
    let work = TempDir::new().unwrap();
    let (log, go) = (work.path().join("log"), work.path().join("go"));
    // Waits until the instance is forgotten, and then looks for its file.
    let down = format!(
        "while ! test -e {}; do sleep 0.02; done\ncat $METADATA_FILE >> {1}\necho >> {1}",
        go.display(),
        log.display()
    );
    let settings = CloudSettings {
        state: Some(work.path().join("state")),
        machine_down: vec![script(work.path(), "down", &down)],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let file = work.path().join(format!("state/machines/{id}.json"));
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    eventually("its end has begun", || file.exists()).await;
    fixture.advance(24 * 3600);
    assert_eq!(fixture.cloud.admin().instances().len(), 0, "forgotten");
    std::fs::write(&go, "").unwrap();
    eventually("its end is over", || processes(&log).len() == 1).await;
    assert!(processes(&log).concat().contains(&id), "{:?}", processes(&log));
    eventually("the file is gone with it", || !file.exists()).await;
}

#[tokio::test]
async fn files_of_machines_without_a_state_are_removed() {
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let up = format!("dirname $METADATA_FILE >> {}", log.display());
    let settings = CloudSettings {
        machine_up: vec![script(work.path(), "up", &up)],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    fixture.launch("n1").await;
    eventually("the machine starts", || processes(&log).len() == 1).await;
    let directory = processes(&log).concat();
    assert!(Path::new(&directory).is_dir(), "{directory}");
    drop(fixture);
    let above = Path::new(&directory).parent().unwrap();
    assert!(!above.exists(), "{}", above.display());
}

#[tokio::test]
async fn machines_of_a_killed_cloud_are_ended_at_a_start_without_programs() {
    let work = TempDir::new().unwrap();
    let (state, log) = (work.path().join("state"), work.path().join("log"));
    let up = script(work.path(), "up", &format!("echo $$ >> {}\nexec sleep 1000", log.display()));
    let settings = CloudSettings { state: Some(state.clone()), ..CloudSettings::quick() };
    let killed = Running::start(&state, &["--machine-up", &up]);
    launch(&killed, &state, "n1", "t1").await;
    eventually("the machine starts", || processes(&log).len() == 1).await;
    drop(killed);
    let left = processes(&log).concat();
    assert!(runs(&left), "it outlives the program");
    let _scene = Fixture::new(settings).await;
    eventually("it is ended", || !runs(&left)).await;
}

#[tokio::test]
async fn a_cloud_without_a_state_leaves_machines_of_another_on_the_same_port_alone() {
    let work = TempDir::new().unwrap();
    let log = work.path().join("log");
    let up = script(work.path(), "up", &format!("echo $$ >> {}\nexec sleep 1000", log.display()));
    let settings = CloudSettings { machine_up: vec![up], ..CloudSettings::quick() };
    let first = Fixture::new(settings.clone()).await;
    first.launch("n1").await;
    eventually("the machine starts", || processes(&log).len() == 1).await;
    let process = processes(&log).concat();
    let endpoint = first.cloud.endpoint();
    let (_, port) = endpoint.rsplit_once(':').unwrap();
    // As in another network, where the same port is free.
    let second =
        Fixture::new(CloudSettings { listen: format!("127.0.0.2:{port}"), ..settings }).await;
    second.launch("n2").await;
    eventually("its machine starts", || processes(&log).len() == 2).await;
    assert!(runs(&process));
    drop(second);
    assert!(runs(&process));
}

/// A process that a cloud without a state has left in this directory.
fn leave_behind(directory: &Path) -> Other {
    let machines = directory.join("machines");
    std::fs::create_dir_all(&machines).unwrap();
    let mut command = Command::new("sleep");
    let machine = command.arg("1000").env("METADATA_FILE", machines.join("x.json")).spawn();
    // Last, because whoever finds it free ends what is there.
    std::fs::write(directory.join("lock"), "").unwrap();
    Other(machine.unwrap())
}

#[tokio::test]
async fn machines_of_a_killed_cloud_without_a_state_are_ended_by_the_next() {
    let above = std::env::temp_dir().canonicalize().unwrap();
    let unique = |what: &str| above.join(format!("cloud-sim-{what}-{}", std::process::id()));
    let (left, held, foreign) = (unique("left"), unique("held"), unique("foreign"));
    let work = TempDir::new().unwrap();
    let hidden = work.path().join("held");
    std::fs::create_dir(&hidden).unwrap();
    let lock = std::fs::File::create(hidden.join("lock")).unwrap();
    lock.lock().unwrap();
    std::fs::rename(&hidden, &held).unwrap();
    let (mut machine, mut living) = (leave_behind(&left), leave_behind(&held));
    std::fs::create_dir(&foreign).unwrap();
    let up = script(work.path(), "up", "exec sleep 1000");
    let fixture =
        Fixture::new(CloudSettings { machine_up: vec![up], ..CloudSettings::quick() }).await;
    eventually("it is ended", || machine.0.try_wait().unwrap().is_some()).await;
    eventually("its directory is gone", || !left.exists()).await;
    drop(fixture);
    assert!(living.0.try_wait().unwrap().is_none(), "another cloud has it");
    assert!(held.exists() && foreign.exists(), "these are not ours to delete");
    drop((living, lock));
    std::fs::remove_dir_all(held).unwrap();
    std::fs::remove_dir_all(foreign).unwrap();
}

#[tokio::test]
async fn machines_of_a_killed_cloud_are_ended_however_the_state_is_spelled() {
    let work = TempDir::new().unwrap();
    let (state, link) = (work.path().join("state"), work.path().join("link"));
    std::fs::create_dir(&state).unwrap();
    std::os::unix::fs::symlink(&state, &link).unwrap();
    let log = work.path().join("log");
    let up = script(work.path(), "up", &format!("echo $$ >> {}\nexec sleep 1000", log.display()));
    let settings = CloudSettings { state: Some(state.join("../state")), ..CloudSettings::quick() };
    let killed = Running::start(&link, &["--machine-up", &up]);
    launch(&killed, &link, "n1", "t1").await;
    eventually("the machine starts", || processes(&log).len() == 1).await;
    drop(killed);
    let left = processes(&log).concat();
    let _scene = Fixture::new(settings).await;
    eventually("it is ended", || !runs(&left)).await;
}

#[tokio::test]
async fn the_file_of_a_machine_is_replaced_and_not_rewritten() {
    let work = TempDir::new().unwrap();
    let (log, seen) = (work.path().join("log"), work.path().join("seen"));
    // The first boot's file, by a name of its own.
    let up = format!(
        "ln $METADATA_FILE {}\ncat $METADATA_FILE >> {1}\necho >> {1}",
        seen.display(),
        log.display()
    );
    let settings = CloudSettings {
        state: Some(work.path().join("state")),
        machine_up: vec![script(work.path(), "up", &up)],
        ..CloudSettings::quick()
    };
    let fixture = Fixture::new(settings).await;
    let target = format!("/20160918/instances/{}", fixture.launch("n1").await);
    eventually("the machine starts", || processes(&log).len() == 1).await;
    let before = std::fs::read_to_string(&seen).unwrap();
    fixture.send("PUT", &target, r#"{"metadata": {"note": "new"}}"#).await.ok();
    fixture.send("POST", &format!("{target}?action=RESET"), "").await.ok();
    eventually("it starts again", || processes(&log).len() == 2).await;
    assert!(processes(&log).concat().contains("note"), "{:?}", processes(&log));
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), before);
}

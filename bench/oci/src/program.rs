//! The program `startnode` as slurmctld calls it, ours beside an earlier one: the wall until every node has its address, CPU,
//! memory and requests.

use crate::cloud::{Child, Cloud};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Nodes of an earlier start, which learns the pace.
const LEARNED: u32 = 400;

/// What one start took.
pub struct Spent {
    pub wall: f64,
    pub cpu: f64,
    pub megabytes: f64,
    pub requests: f64,
    pub rejected: f64,
}

/// A start of so many nodes.
#[derive(Clone, Copy)]
pub struct Start {
    pub count: u32,
    /// An earlier process has learned the pace.
    pub remembers: bool,
    pub throttled: bool,
    /// Bytes of user data.
    pub user_data: usize,
}

/// Runs `startnode` against a new cloud.
pub fn measure(executable: &Path, start: Start) -> Spent {
    let directory = std::env::temp_dir().join(format!("bench-start-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(directory.join("bin")).expect("a directory");
    let kind = if start.throttled { Cloud::ThrottledStart } else { Cloud::Start };
    let program = link(executable, &directory);
    let mut address = "127.0.0.1:0".to_owned();
    if start.remembers {
        // Another cloud at the same address, and other nodes: all that is left of it is what was learned.
        let cloud = Child::start(&directory, kind, &address);
        write(&directory, &cloud.endpoint, ("m", LEARNED, start.user_data));
        run(&program, &directory, "m", LEARNED);
        cloud.endpoint.trim_start_matches("http://").clone_into(&mut address);
        cloud.stop();
    }
    let cloud = Child::start(&directory, kind, &address);
    write(&directory, &cloud.endpoint, ("n", start.count, start.user_data));
    let (wall, cpu, megabytes) = run(&program, &directory, "n", start.count);
    let asked = cloud.stop();
    let (requests, rejected) = (asked.launches() + asked.others(), asked.rejected);
    fs::remove_dir_all(&directory).expect("it was there");
    Spent { wall, cpu, megabytes, requests, rejected }
}

/// One call, from its start to its end: by then Slurm has all addresses.
fn run(program: &Path, directory: &Path, stem: &str, count: u32) -> (f64, f64, f64) {
    let hosts = format!("{stem}[0001-{count:04}]");
    let begin = Instant::now();
    let mut child = Command::new(program)
        .arg("--config")
        .arg(directory.join("startnode.yaml"))
        .arg(&hosts)
        .env_clear()
        .env("SLURM_CONF", directory.join("slurm.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts");
    let (code, cpu, megabytes) = wait(child.id());
    let wall = begin.elapsed().as_secs_f64();
    let _ = child.try_wait();
    assert_eq!(code, 0, "startnode {hosts}: see {}", directory.join("log").display());
    let told = fs::read_to_string(directory.join("told")).unwrap_or_default();
    assert!(told.contains(&format!("{count:04}")), "the last of {hosts} has no address: {told}");
    (wall, cpu, megabytes)
}

/// Waits for a process: its exit code, its own seconds of CPU without those of what it calls, and its peak memory.
fn wait(id: u32) -> (i32, f64, f64) {
    let pid = libc::pid_t::try_from(id).expect("a process id");
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` and `time` are there to be written; the process is ours, and stays until it is reaped below.
    unsafe {
        libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT);
    }
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let found = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    assert!(found, "the CPU of an ended process can be read");
    let cpu = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    (libc::WEXITSTATUS(status), cpu, usage.ru_maxrss as f64 / 1024.0)
}

/// The program by its name, and Slurm's programs, which this one stands for.
fn link(executable: &Path, directory: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    for name in ["scontrol", "squeue", "sinfo", "sbatch"] {
        symlink(&this, directory.join("bin").join(name)).expect("a new link");
    }
    let program = directory.join("startnode");
    symlink(executable, &program).expect("a new link");
    program
}

fn write(directory: &Path, endpoint: &str, (stem, count, user_data): (&str, u32, usize)) {
    let at = directory.display();
    let mut conf =
        format!("ClusterName=bench\nResumeTimeout=600\nNodeName={stem}[0001-{count:04}] ");
    let _ =
        writeln!(conf, "State=CLOUD CPUs=2 RealMemory=10000 Features=shape=VM.Standard2.1,ad=1");
    conf.push_str("PartitionName=main Nodes=ALL Default=YES\n");
    let yaml = format!(
        "csp: oracle\nregion: us-phoenix-1\ncompartment_id: ocid1.compartment.oc1..aaaacomp\n\
         subnet_id: ocid1.subnet.oc1.phx.aaaasub\nimage_id: ocid1.image.oc1.phx.img001\n\
         ad_root: 'Uocm:PHX-AD-'\ncluster_id: bench\nendpoint: {endpoint}\nconfig_file: {at}/config\n\
         slurm_conf: {at}/slurm.conf\nslurm_bin: {at}/bin\nbootstrap_file: {at}/bootstrap.sh\n\
         elastic: {{state_dir: {at}/state, log: {at}/log}}\n"
    );
    // Not the same byte over and over, which would be compressed to nothing.
    let mut seed = 1_u32;
    let byte = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(seed >> 28).expect("four bits"))
    };
    let script: String = "#!/bin/sh\n# ".chars().chain((0..user_data).map(byte)).collect();
    let mut nodes = String::new();
    for number in 1..=count {
        let _ = writeln!(
            nodes,
            "NodeName={stem}{number:04} Arch=x86_64 CPUTot=2 NodeAddr={stem}{number:04} NodeHostName={stem}{number:04} \
             RealMemory=10000 State=ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP Partitions=main BootTime=None CfgTRES=cpu=2"
        );
    }
    for (name, text) in [
        ("nodes", &nodes),
        ("slurm.conf", &conf),
        ("startnode.yaml", &yaml),
        ("bootstrap.sh", &script),
    ] {
        fs::write(directory.join(name), text).expect("a directory of ours");
    }
}

/// Answers as Slurm's programs do: all nodes come up, and whatever is told is noted.
pub fn slurm(directory: &Path, arguments: &[String]) {
    match arguments.first().map(String::as_str) {
        Some("--version") => println!("slurm 24.11.5"),
        Some("--all") => {
            let text = fs::read_to_string(directory.join("nodes")).expect("our own file");
            print!("{text}");
        }
        Some("update") => {
            let line = format!("{}\n", arguments.join(" "));
            let path = directory.join("told");
            let mut file =
                fs::OpenOptions::new().create(true).append(true).open(path).expect("ours");
            std::io::Write::write_all(&mut file, line.as_bytes()).expect("written");
        }
        // Instance ids, one in a line.
        Some("--quiet") => {
            let _ = std::io::read_to_string(std::io::stdin());
        }
        _ => {}
    }
}

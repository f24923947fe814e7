//! The demo, as whoever runs `./demo` sees it.

use e2e::wait;
use slurm_testbed::answer;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn demo() -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo"));
    demo.stdin(Stdio::null());
    demo
}

/// The last word of the line that begins so.
fn figure<'a>(shown: &'a str, what: &str) -> Option<&'a str> {
    let line = shown.lines().find_map(|line| line.trim_start().strip_prefix(what))?;
    line.split_whitespace().last()
}

/// Runs the demo to its end, which has to be a good one. Returns what it shows, with these words and the figures of its jobs.
fn shows(mut demo: Command, words: &[&str]) -> String {
    let output = demo.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}\n{shown}\n{complaints}", output.status);
    assert!(!shown.contains('\x1b'), "plain text where nobody watches:\n{shown}");
    for words in words {
        assert!(shown.contains(words), "{words:?} is not shown:\n{shown}");
    }
    assert_eq!(figure(&shown, "jobs run"), Some("4"), "{shown}");
    assert_eq!(figure(&shown, "machines left"), Some("0"), "{shown}");
    println!("the demo took {} s", figure(&shown, "seconds").unwrap());
    shown
}

#[test]
fn shows_the_main_job_and_leaves_no_machine() {
    let words = [
        "ALLOCATED+POWERING_UP",
        "Zone AD-1 is full",
        "elastic.log: ",
        "job 4 ran on 8 nodes",
        "8 of 8 machines on the new image",
        "idle nodes go",
        "demo/timeline.html",
    ];
    let shown = shows(demo(), &words);
    let page = shown.lines().find(|line| line.ends_with("/timeline.html")).unwrap();
    let page = std::fs::read_to_string(page.trim()).unwrap();
    assert!(page.contains("vm-standard2-1-ad1-0008") && page.contains("</html>"));
}

#[test]
fn shows_the_main_job_on_aws() {
    let mut demo = demo();
    demo.arg("--aws");
    let words = [
        "Zone eu-west-1a is full: InsufficientInstanceCapacity",
        "job 4 ran on 8 nodes",
        "8 of 8 machines on the new image",
        "idle nodes go",
    ];
    let _ = shows(demo, &words);
}

/// With `--keep` it stays, can be used with the commands that it shows, and Ctrl-C ends all of it.
#[test]
fn stays_with_keep_until_it_is_interrupted() {
    let mut demo = demo();
    let mut demo = demo.arg("--keep").stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let shown = BufReader::new(demo.stdout.take().unwrap());
    let mut commands = shown.lines().map_while(Result::ok).filter(|line| line.contains("/enter "));
    let first = commands.next().expect("it shows how to use the cluster");
    let enter = Path::new(first.split_whitespace().next().unwrap()).to_owned();
    let queue = answer(|| Command::new(&enter).args(["squeue", "--noheader"]).output().unwrap());
    assert!(queue.status.success(), "{queue:?}");
    let nodes = Command::new(&enter).arg("listnodes").output().unwrap();
    let table = String::from_utf8_lossy(&nodes.stdout).into_owned();
    assert!(nodes.status.success() && table.contains("vm-standard2-1-ad1-0008"), "{nodes:?}");

    let interrupt = format!("kill -s INT -- -{}", demo.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert!(!demo.wait().unwrap().success());
    let directory = enter.parent().unwrap();
    let gone = wait(|| (!directory.exists() && users(directory) == 0).then_some(()));
    assert!(gone.is_some(), "{} is left", directory.display());
}

/// How many processes have a directory in their command line.
fn users(directory: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let directory = directory.as_os_str().as_encoded_bytes();
    lines.filter(|line| line.windows(directory.len()).any(|part| part == directory)).count()
}

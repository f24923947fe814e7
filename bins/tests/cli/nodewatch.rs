//! `nodewatch` between a metadata service and a real slurmctld.

use crate::fixture::Fixture;
use crate::slurm::{Fake, wait};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

const NODE: &str = "vm-standard2-1-ad1-0001";

/// A node with a machine, the address of its metadata service, and a scontrol that writes down what it is asked.
fn fixture() -> (Fixture, String) {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let endpoint = stage.configuration();
    let endpoint = endpoint.lines().find_map(|line| line.strip_prefix("endpoint: ")).unwrap();
    let metadata = format!("{endpoint}/machines/{}/opc/v2", stage.machine(NODE).id);
    let scontrol = "echo \"$@\" >> \"$DIR/asked\"\nexec \"$REAL/scontrol\" \"$@\"";
    stage.slurm.fake(&Fake { scontrol, sbatch: "exit 1" });
    let (real, ours) = (stage.slurm.bin(), stage.path("bin"));
    let (real, ours) = (real.display().to_string(), ours.display().to_string());
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &ours));
    (stage, metadata)
}

#[test]
fn slurmctld_is_asked_once_while_nothing_is_announced() {
    let (stage, metadata) = fixture();
    stage.cloud().clear_requests();
    let arguments = ["--csp", "oracle", "--node", NODE, "--metadata", &metadata, "--every", "1s"];
    let mut command = stage.command("nodewatch", &arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let all = || stage.cloud().requests();
    let instance = || all().iter().filter(|it| it.target.contains("/opc/v2/instance")).count();
    wait("fifth question", || (instance() >= 5).then_some(()), || format!("{:?}", all()));
    child.kill().unwrap();
    child.wait().unwrap();
    let asked = stage.read("asked");
    let reservations = asked.lines().filter(|line| line.contains("show reservation")).count();
    assert_eq!(reservations, 1, "{asked}");
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_does_nothing() {
    let (stage, metadata) = fixture();
    let name = format!("reservationname=elastic_maintenance_{NODE}");
    let node = format!("nodes={NODE}");
    let times = ["starttime=2036-01-01T02:00:00", "duration=60"];
    let others = [&node, "users=root", "flags=maint,ignore_jobs"];
    let words = [&["create", "reservation", name.as_str()][..], &times, &others].concat();
    stage.slurm.ask("scontrol", &words);
    let reserved = || stage.slurm.ask("scontrol", &["show", "reservation"]);
    let arguments = ["--csp", "oracle", "--node", NODE, "--metadata", &metadata];
    let shown = stage.run("nodewatch", &[&arguments[..], &["--dry-run"]].concat()).with_code(0);
    assert!(shown.stdout.contains("the reservation for maintenance is released"), "{shown:?}");
    assert!(reserved().contains("elastic_maintenance"), "{}", reserved());
    stage.run("nodewatch", &[&arguments[..], &["--once"]].concat()).with_code(0);
    assert!(!reserved().contains("elastic_maintenance"), "{}", reserved());
    let shown = stage.run("nodewatch", &[&arguments[..], &["--dry-run"]].concat()).with_code(0);
    assert_eq!(shown.stdout, "nothing to do\n");
}

/// The metadata service of a spot machine that EC2 reclaims, and the requests that it gets.
fn reclaimed() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let lines = BufReader::new(&socket).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let is_put = head[0].starts_with("PUT ");
            sender.send(head[0].clone()).unwrap();
            let notice = r#"{"action": "terminate", "time": "2036-01-01T02:00:00Z"}"#;
            let body = if is_put { "session-1" } else { notice };
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nconnection: close";
            write!(socket, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        }
    });
    (format!("http://{address}"), requests)
}

#[test]
fn ec2_is_asked_for_a_notice_by_the_second_version_of_its_metadata_service() {
    let (stage, _) = fixture();
    let (metadata, requests) = reclaimed();
    let arguments = ["--csp", "aws", "--node", NODE, "--metadata", &metadata, "--once"];
    stage.run("nodewatch", &arguments).with_code(0);
    let asked: Vec<String> = requests.try_iter().collect();
    let expected = ["PUT /latest/api/token", "GET /latest/meta-data/spot/instance-action"];
    assert_eq!(asked, expected.map(|line| format!("{line} HTTP/1.1")));
}

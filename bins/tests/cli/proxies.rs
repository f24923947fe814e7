//! The way to a cloud that leads through a proxy, for programs that slurmctld gives no variables.

use crate::fixture::{Ended, Fixture};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A proxy that lets nobody through, and writes down what it was asked for.
fn proxy() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut line = String::new();
            let mut head = BufReader::new(&socket);
            let _ = head.read_line(&mut line);
            record.lock().unwrap().push(line);
            // All of the request is read, or closing would cut the answer off.
            let ends =
                |line: &std::io::Result<String>| line.as_ref().is_ok_and(|it| !it.is_empty());
            head.lines().take_while(ends).for_each(drop);
            let _ = socket.write_all(
                b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
        }
    });
    (address, asked)
}

fn look(stage: &Fixture, more: &str) -> Ended {
    stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
    stage.run("listnodes", &[])
}

#[test]
fn the_configuration_names_the_proxy() {
    let stage = Fixture::new().running();
    let (address, asked) = proxy();
    let named = format!("proxy: http://{address}\n");
    let _ = look(&stage, &named);
    let first = asked.lock().unwrap().first().cloned().unwrap_or_default();
    assert!(first.starts_with("GET http://127.0.0.1:"), "{first}");
    assert!(stage.cloud().requests().is_empty(), "not by another way");
    asked.lock().unwrap().clear();
    look(&stage, &format!("{named}no_proxy: [example.org, 127.0.0.1]\n")).with_code(0);
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_check_warns_of_a_proxy_that_startnode_does_not_have() {
    let stage = Fixture::new();
    let check = |stage: &Fixture| {
        let mut command = stage.command("finish", &["--check"]);
        // Not used for the loopback cloud, whose address is plain http.
        command.env("https_proxy", "http://user:hunter2@127.0.0.1:1");
        Ended::of(&command.output().unwrap(), stage.dir.path()).with_code(0).stdout
    };
    let said = check(&stage);
    let odd = said.lines().find(|line| line.contains("https_proxy")).unwrap_or_default();
    assert!(odd.starts_with("warn ") && odd.contains("DIR/startnode.yaml as proxy"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let text = "proxy: http://127.0.0.1:1\nno_proxy: 127.0.0.1\n";
    stage.write("startnode.yaml", &format!("{}{text}", stage.configuration()));
    let said = check(&stage);
    assert!(!said.contains("https_proxy"), "{said}");
}

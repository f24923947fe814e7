//! In the place of StackHPC's rebuild program where it really runs: on an OpenStack, whose answers are a few fixed ones.

use crate::fixture::Fixture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const OLD: &str = "22222222-2222-4222-8222-222222222222";
const NEW: &str = "33333333-3333-4333-8333-333333333333";

/// Servers by id, with their images; and what was done to them.
#[derive(Default)]
struct Nova {
    images: BTreeMap<String, String>,
    actions: Vec<(String, Value)>,
}

/// A Keystone, a Nova, a Neutron and a Glance.
#[derive(Clone)]
struct Fake {
    address: SocketAddr,
    nova: Arc<Mutex<Nova>>,
}

impl Fake {
    /// Serves until the test's process ends.
    fn start(servers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let images = servers.iter().map(|id| ((*id).to_owned(), OLD.to_owned())).collect();
        let nova = Arc::new(Mutex::new(Nova { images, ..Nova::default() }));
        let fake = Self { address: listener.local_addr().unwrap(), nova };
        let serving = fake.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let fake = serving.clone();
                std::thread::spawn(move || fake.serve(socket));
            }
        });
        fake
    }

    fn serve(&self, mut socket: TcpStream) {
        let Some((line, body)) = read(&mut socket) else { return };
        let (status, body) = self.answer(&line, &body);
        let length = body.len();
        let _ = write!(
            socket,
            "HTTP/1.1 {status} X\r\nX-Subject-Token: t1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
    }

    fn answer(&self, line: &str, body: &Value) -> (u16, String) {
        let mut nova = self.nova.lock().unwrap();
        let server = line.strip_prefix("POST /compute/v2.1/servers/");
        if let Some(id) = server.and_then(|rest| rest.strip_suffix("/action")) {
            nova.actions.push((id.to_owned(), body.clone()));
            if let Some(image) = body["rebuild"]["imageRef"].as_str() {
                nova.images.insert(id.to_owned(), image.to_owned());
                return (202, json!({"server": {"id": id}}).to_string());
            }
            return (202, String::new());
        }
        let path = line.split('?').next().unwrap_or_default();
        if let Some(image) = path
            .strip_prefix("GET /compute/v2.1/servers/")
            .and_then(|id| Some((id, nova.images.get(id)?)))
        {
            return (200, json!({"server": server_of(image)}).to_string());
        }
        match path {
            "POST /identity/v3/auth/tokens" => (201, token(self.address)),
            "GET /compute/v2.1/" => (200, json!({"version": {"version": "2.95"}}).to_string()),
            "GET /compute/v2.1/servers/detail" => (200, json!({"servers": []}).to_string()),
            "GET /network/v2.0/networks" => (200, named("networks", line, "cluster")),
            "GET /network/v2.0/security-groups" => (200, named("security_groups", line, "slurm")),
            "GET /image/v2/images" => (200, json!({"images": []}).to_string()),
            _ => (404, json!({"itemNotFound": {"code": 404, "message": line}}).to_string()),
        }
    }

    fn actions(&self) -> Vec<(String, Value)> {
        self.nova.lock().unwrap().actions.clone()
    }
}

/// The one thing that there is, if it is asked for.
fn named(key: &str, line: &str, name: &str) -> String {
    let asked = line.contains(&format!("name={name}&"));
    let found = asked.then(|| json!({"id": OLD, "name": name}));
    json!({key: found.as_slice()}).to_string()
}

fn server_of((id, image): (&str, &String)) -> Value {
    json!({"id": id, "name": id, "status": "ACTIVE", "image": {"id": image}, "tags": [], "metadata": {},
        "addresses": {"slurm": [{"addr": "10.1.0.7"}]}})
}

/// A request: method and path, and its body.
fn read(socket: &mut TcpStream) -> Option<(String, Value)> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let line = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
                return Some((line, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        match socket.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(chunk.iter().take(count)),
        }
    }
}

fn token(address: SocketAddr) -> String {
    let entry = |kind: &str, path: &str| {
        let url = format!("http://{address}/{path}");
        let endpoint =
            json!({"interface": "public", "region": "R1", "region_id": "R1", "url": url});
        json!({"type": kind, "endpoints": [endpoint]})
    };
    let catalog =
        [entry("compute", "compute/v2.1"), entry("image", "image"), entry("network", "network")];
    json!({"token": {"issued_at": "2026-11-16T00:00:00Z", "expires_at": "2026-11-16T08:00:00Z",
        "project": {"id": "p"}, "catalog": catalog}})
    .to_string()
}

/// A cluster in this cloud, with more lines in its configuration.
fn stage(fake: &Fake, more: &str) -> Fixture {
    let stage = Fixture::new().running();
    let auth_url = format!("http://{}/identity", fake.address);
    let auth = json!({"auth_url": auth_url, "token": "t0", "project_id": "p"});
    let clouds = json!({"clouds": {"test": {"auth": auth, "auth_type": "token"}}});
    stage.write("home/.config/openstack/clouds.yaml", &clouds.to_string());
    let (dir, bin) = (stage.dir.path().display(), stage.slurm.bin().display().to_string());
    stage.write(
        "startnode.yaml",
        &format!(
            "csp: openstack\ncloud: test\ncluster_id: c1\nslurm_bin: {bin}\nslurm_conf: {dir}/etc/slurm.conf\n\
             reboot_vars: {dir}/reboot_vars\nelastic: {{state_dir: {dir}/state, log: {dir}/log/elastic.log}}\n{more}"
        ),
    );
    stage
}

#[test]
fn a_check_looks_for_the_networks_groups_and_key_pair_of_new_machines() {
    let fake = Fake::start(&[]);
    let names = "networks: [cluster, nowhere]\nsecurity_groups: [slurm]\nkeypair: nobodys\n";
    let ended = stage(&fake, names).run("finish", &["--check"]).with_code(1);
    for line in [
        "ok   network cluster",
        "fail get network nowhere: invalid request: no network 'nowhere' is visible to this user; change it in DIR/startnode.yaml",
        "ok   security group slurm",
        "fail get key pair nobodys: invalid request: no key pair 'nobodys' is visible to this user; change it in DIR/startnode.yaml",
    ] {
        assert!(ended.stdout.lines().any(|it| it == line), "{line}: {ended:#?}");
    }
}

/// slurmctld's programs, which are called elsewhere, would not have found it.
#[test]
fn a_check_ignores_a_file_that_slurmctld_s_programs_do_not_read() {
    let fake = Fake::start(&[]);
    let stage = stage(&fake, "");
    stage.write("clouds.yaml", "clouds: {test: {auth: {auth_url: 'http://127.0.0.1:1'}}}\n");
    let said = stage.run("finish", &["--check"]).stdout;
    assert!(said.lines().any(|line| line.starts_with("ok   the cloud answers")), "{said}");
    std::fs::rename(stage.path("home/.config/openstack/clouds.yaml"), stage.path("clouds.yaml"))
        .unwrap();
    let said = stage.run("finish", &["--check"]).with_code(1).stdout;
    let looked = "no clouds.yaml for cloud 'test' in DIR/home/.config/openstack/";
    assert!(said.contains(looked), "{said}");
}

#[test]
fn the_same_image_is_a_soft_reboot_another_a_rebuild_and_a_missing_file_fails_its_node() {
    let ids = ["aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"];
    let fake = Fake::start(&ids);
    let stage = stage(&fake, "");
    let name = |number: usize| format!("vm-standard2-1-ad1-000{number}");
    for (number, image) in [(1, OLD), (2, NEW)] {
        let text = format!("image_id: {image}\ninstance_id: {}\n", ids[number - 1]);
        stage.write(&format!("reboot_vars/{}.yml", name(number)), &text);
    }
    // As slurmctld up to 25.11 gives it: with commas.
    let list = [1, 2, 3].map(name).join(",");
    let ended = stage.run("rebuild", &[&list]).with_code(1);
    let ended = ended.saying(&[&format!("{}: failed: ", name(3)), "reboot_vars"]);
    assert!(!ended.stderr.contains(&name(1)) && !ended.stderr.contains(&name(2)), "{ended:?}");
    let mut actions = fake.actions();
    actions.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        (ids[0].to_owned(), json!({"reboot": {"type": "SOFT"}})),
        (ids[1].to_owned(), json!({"rebuild": {"imageRef": NEW}})),
    ];
    assert_eq!(actions, expected);
}

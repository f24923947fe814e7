//! A client of OpenStack that has nothing in common with ours.

use crate::http;
use crate::test_cloud::Machine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// What our listings of servers ask for, and no other does.
pub(super) const MARK: &str = "all_tenants=1";

/// One user's requests.
#[derive(Clone, Debug)]
pub(super) struct Client {
    host: String,
    ports: BTreeMap<String, u16>,
    token: String,
}

impl Client {
    /// A user of the project of the same name.
    pub(super) fn new(facts: &Value, user: &str) -> Self {
        let ports = facts.pointer("/ports").cloned().unwrap_or_default();
        let ports = serde_json::from_value(ports).expect("each service has a port");
        let host = facts.pointer("/host").and_then(Value::as_str).expect("it listens somewhere");
        let mut client = Self { host: host.to_owned(), ports, token: String::new() };
        let domain = json!({"name": "Default"});
        let identity = json!({"methods": ["password"], "password": {
            "user": {"name": user, "domain": domain, "password": "secret"}}});
        let scope = json!({"project": {"name": user, "domain": domain}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        let answer = client.ask("POST", "keystone", "/v3/auth/tokens", &body);
        let (head, text) = answer.expect("Keystone answers");
        let token = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("x-subject-token").then(|| value.to_owned())
        });
        client.token = token.unwrap_or_else(|| panic!("no token for {user}: {head}\n{text}"));
        client
    }

    /// Asks for something and gives the answer, if it is a good one.
    pub(super) fn call(
        &self,
        method: &str,
        service: &str,
        path: &str,
        body: &Value,
    ) -> io::Result<Value> {
        let answer = self.ask(method, service, path, body)?;
        http::good(answer, &format!("{method} {path}"))
    }

    /// All servers.
    pub(super) fn servers(&self) -> io::Result<Vec<Machine>> {
        let path = format!("/v2.1/servers/detail?{MARK}");
        let answer = self.call("GET", "nova", &path, &Value::Null)?;
        let servers = answer.get("servers").and_then(Value::as_array);
        let servers = servers.ok_or_else(|| io::Error::other(format!("no servers: {answer}")))?;
        Ok(servers.iter().map(machine).collect())
    }

    fn ask(
        &self,
        method: &str,
        service: &str,
        path: &str,
        body: &Value,
    ) -> io::Result<(String, String)> {
        let port = self.ports.get(service).copied().expect("a service");
        let token = match &self.token[..] {
            "" => String::new(),
            token => format!("X-Auth-Token: {token}\r\n"),
        };
        let lines = format!("OpenStack-API-Version: compute 2.90\r\n{token}");
        http::ask(&format!("{}:{port}", self.host), (method, path), &lines, body)
    }
}

fn machine(server: &Value) -> Machine {
    let text =
        |path: &str| server.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let networks = server.get("addresses").and_then(Value::as_object);
    let address = networks.into_iter().flat_map(serde_json::Map::values).find_map(|addresses| {
        addresses.pointer("/0/addr").and_then(Value::as_str).map(str::to_owned)
    });
    Machine {
        id: text("/id"),
        name: text("/name"),
        state: text("/status"),
        zone: text("/OS-EXT-AZ:availability_zone"),
        address: address.unwrap_or_default(),
        image: text("/image/id"),
    }
}

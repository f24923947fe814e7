//! What launches mention, looked for before there is one.

use crate::real::cloud::{connect, settings, through};
use crate::real::scenarios::Harness;
use cloud_openstack::{InstanceResource, LaunchOptions, LaunchResource, Nic};

async fn looked_for(
    harness: &Harness<'_>,
    launch: LaunchOptions,
    own: &[InstanceResource],
) -> Vec<Result<String, String>> {
    let mut settings = settings();
    settings.launch = launch;
    settings.address_network = Some("net-1".to_owned());
    let entry = through(harness.proxy, harness.cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let told = |it: LaunchResource| match &it.found {
        Ok(()) => Ok(it.to_string()),
        Err(error) => Err(error.message().unwrap_or_default().to_owned()),
    };
    provider.check_launch_resources(own).await.into_iter().map(told).collect()
}

pub(crate) async fn resources_of_launches_are_looked_up(harness: &Harness<'_>) {
    let group = harness.cloud.fact("/security_group");
    let mut there = LaunchOptions::default();
    there.nics = vec![Nic::network("net-1"), Nic::network(harness.cloud.fact("/networks/net-1"))];
    there.security_groups = vec!["slurm".to_owned(), group.to_uppercase()];
    there.keypair = Some("key-1".to_owned());
    let own = [
        InstanceResource::Network("net-2".to_owned()),
        InstanceResource::KeyPair("nobody's".to_owned()),
    ];
    let told = looked_for(harness, there, &own).await;
    assert_eq!(told.iter().filter(|found| found.is_ok()).count(), 7, "{told:#?}");
    assert_eq!(told[5].as_deref(), Ok("network net-1"), "where addresses are");
    assert_eq!(told[6].as_deref(), Ok("network net-2"));
    assert!(told[7].is_err(), "{told:#?}");
    assert_eq!(told[0].as_deref(), Ok("network net-1"));
    let nobodys = "11111111-1111-4111-8111-111111111111";
    let mut missing = LaunchOptions::default();
    missing.nics = ["net", "twin", nobodys].map(Nic::network).to_vec();
    missing.security_groups = vec![nobodys.to_owned()];
    missing.server_group = Some("far".to_owned());
    missing.keypair = Some("key".to_owned());
    let told = looked_for(harness, missing, &[]).await;
    let none = |word: &str, name: &str| Err(format!("no {word} '{name}' is visible to this user"));
    let twin = told[1].as_ref().expect_err("two of one name");
    assert!(twin.starts_with("2 networks are called 'twin'"), "{twin}");
    assert_eq!(told[0], none("network", "net"));
    assert_eq!(told[2], none("network", nobodys));
    assert_eq!(told[3], none("security group", nobodys));
    assert_eq!(told[4], none("server group", "far"));
    assert_eq!(told[5], none("key pair", "key"));
}

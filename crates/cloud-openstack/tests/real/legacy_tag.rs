//! Servers from before us, which have the mark and not all of our tags.

use crate::real::cloud::{connect, settings, through};
use crate::real::scenarios::Harness;
use cloud_core::{InstanceFilter, Provider as _, Tags};
use cloud_openstack::LegacyTag;

pub(crate) async fn servers_with_the_legacy_tag_alone_are_listed(harness: &Harness<'_>) {
    let mut options = settings().launch;
    options.extra_tags = vec!["compute".to_owned()];
    let mut spec = harness.spec("older", "vm-1");
    spec.tags = Tags::from([("cluster", "older")]);
    let id = harness.provider.launch_with(&spec, &options).await.expect("a launch").id;
    let ours = Tags::from([("cluster", "older"), ("type", "compute")]);
    let ours = InstanceFilter::tagged(ours);
    let unmarked = harness.provider.list(&ours).await.expect("a listing");
    assert!(unmarked.is_empty(), "{unmarked:?}");
    let mut settings = settings();
    settings.legacy_tag = Some(LegacyTag::new("compute", ("type", "compute")));
    let entry = through(harness.proxy, harness.cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let shown = provider.list(&ours).await.expect("a listing");
    assert_eq!(shown.iter().map(|it| &it.id).collect::<Vec<_>>(), [&id], "{shown:?}");
    let got = provider.get(&id).await.expect("it is there");
    assert_eq!(got.tags.get("type"), Some("compute"));
    let others = InstanceFilter::tagged(Tags::from([("cluster", "other"), ("type", "compute")]));
    assert!(provider.list(&others).await.expect("a listing").is_empty(), "another cluster's");
    harness.clean(&provider, "older").await;
}

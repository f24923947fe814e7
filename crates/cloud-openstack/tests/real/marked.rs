//! Servers from before us, which have the mark and not all of our tags.

use crate::real::cloud::{connect, settings, through};
use crate::real::scenarios::Scene;
use cloud_core::{InstanceFilter, Provider as _, Tags};
use cloud_openstack::Mark;

pub(crate) async fn servers_with_the_mark_alone_are_listed(scene: &Scene<'_>) {
    let mut options = settings().launch;
    options.extra_tags = vec!["compute".to_owned()];
    let mut spec = scene.spec("older", "vm-1");
    spec.tags = Tags::from([("cluster", "older")]);
    let id = scene.provider.launch_with(&spec, &options).await.expect("a launch").id;
    let ours = Tags::from([("cluster", "older"), ("type", "compute")]);
    let ours = InstanceFilter::tagged(ours);
    let unmarked = scene.provider.list(&ours).await.expect("a listing");
    assert!(unmarked.is_empty(), "{unmarked:?}");
    let mut settings = settings();
    settings.mark = Some(Mark::new("compute", ("type", "compute")));
    let entry = through(scene.proxy, scene.cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let shown = provider.list(&ours).await.expect("a listing");
    assert_eq!(shown.iter().map(|it| &it.id).collect::<Vec<_>>(), [&id], "{shown:?}");
    let got = provider.get(&id).await.expect("it is there");
    assert_eq!(got.tags.get("type"), Some("compute"));
    let others = InstanceFilter::tagged(Tags::from([("cluster", "other"), ("type", "compute")]));
    assert!(provider.list(&others).await.expect("a listing").is_empty(), "another cluster's");
    scene.clean(&provider, "older").await;
}

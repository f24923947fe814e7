//! What EC2 may answer, and what becomes of it.

use crate::fake::{Asked, Fake, answer, error, item, spec};
use cloud_aws::LaunchOptions;
use cloud_core::{
    ErrorKind, ImageId, InstanceFilter, InstanceId, InstanceSpec, InstanceState, Provider as _,
    Tags,
};

fn launched(count: usize, state: &str) -> (u16, String) {
    let items: String = (0..count).map(|n| item(&format!("i-{n}"), state, n, &[])).collect();
    answer("RunInstances", &format!("<instancesSet>{items}</instancesSet>"))
}

fn listing(items: &str) -> (u16, String) {
    let set = format!("<item><instancesSet>{items}</instancesSet></item>");
    answer("DescribeInstances", &format!("<reservationSet>{set}</reservationSet>"))
}

fn ours() -> InstanceFilter {
    InstanceFilter::tagged(Tags::from([("cluster", "cheerful-macaw")]))
}

#[tokio::test]
async fn launches_that_ec2_has_no_room_for_can_be_tried_elsewhere_and_the_others_stay() {
    let fake = Fake::new(|_| launched(2, "pending")).await;
    let specs = ["n1", "n2", "n3"].map(spec);
    let results = fake.connect(LaunchOptions::default()).launch_many(&specs).await;
    let ids: Vec<_> =
        results.iter().flatten().map(|it| (it.id.as_str(), it.name.as_str())).collect();
    assert_eq!(ids, [("i-0", "n1"), ("i-1", "n2")]);
    let error = results[2].as_ref().expect_err("no room");
    assert_eq!((error.kind(), error.subject()), (ErrorKind::Capacity, Some("n3")));
    let asked = fake.asked();
    assert_eq!((asked[0].get("MinCount"), asked[0].get("MaxCount")), ("1", "3"));
}

#[tokio::test]
async fn launches_for_different_jobs_are_requests_of_their_own() {
    let fake =
        Fake::new(|asked| launched(asked.get("MaxCount").parse().expect("a number"), "pending"))
            .await;
    let label = |name: &str, job: &str| {
        let mut spec = spec(name);
        spec.tags = spec.tags.with("job", job);
        spec
    };
    let specs = [label("n1", "7"), label("n2", "8"), label("n3", "7")];
    let results = fake.connect(LaunchOptions::default()).launch_many(&specs).await;
    let names: Vec<_> = results.iter().flatten().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["n1", "n2", "n3"], "in their order");
    let mut counts: Vec<String> =
        fake.asked().iter().map(|it| it.get("MaxCount").to_owned()).collect();
    counts.sort();
    assert_eq!(counts, ["1", "2"]);
}

#[tokio::test]
async fn a_thousand_machines_are_ten_requests_of_a_hundred() {
    let fake =
        Fake::new(|asked| launched(asked.get("MaxCount").parse().expect("a number"), "pending"))
            .await;
    let specs: Vec<InstanceSpec> =
        (0..1000).map(|n| spec(&format!("cheerful-macaw-c7i-8xlarge-{n:04}"))).collect();
    let results = fake.connect(LaunchOptions::default()).launch_many(&specs).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(fake.asked().len(), 10);
    let tags = |asked: &Asked| {
        asked.form.keys().filter(|key| key.starts_with("TagSpecification.1.Tag")).count() / 2
    };
    assert!(fake.asked().iter().all(|asked| tags(asked) <= 50));
}

#[tokio::test]
async fn a_token_whose_instance_is_gone_is_used_up() {
    let fake = Fake::new(|_| launched(1, "terminated")).await;
    let error = fake.connect(LaunchOptions::default()).launch(&spec("n1")).await.expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::TokenUsedUp);
}

#[tokio::test]
async fn an_instance_that_ec2_does_not_know_yet_is_not_taken_for_gone() {
    let fake = Fake::new(|asked| match asked.action() {
        "RunInstances" => launched(1, "pending"),
        _ => error(400, "InvalidInstanceID.NotFound", "The instance ID 'i-0' does not exist"),
    })
    .await;
    let cloud = fake.connect(LaunchOptions::default());
    let id = cloud.launch(&spec("n1")).await.expect("a launch").id;
    assert_eq!(cloud.get(&id).await.expect_err("hidden").kind(), ErrorKind::Unavailable);
    assert_eq!(cloud.terminate(&id).await.expect_err("hidden").kind(), ErrorKind::Unavailable);
    let other = InstanceId::new("i-7");
    assert_eq!(cloud.get(&other).await.expect_err("gone").kind(), ErrorKind::NotFound);
    cloud.terminate(&other).await.expect("nothing is left to terminate");
}

#[tokio::test]
async fn one_that_is_gone_does_not_keep_the_others_from_being_terminated() {
    let fake = Fake::new(|asked| {
        if asked.form.values().any(|value| value == "i-gone") {
            return error(
                400,
                "InvalidInstanceID.NotFound",
                "The instance ID 'i-gone' does not exist",
            );
        }
        answer("TerminateInstances", "<instancesSet/>")
    })
    .await;
    let cloud = fake.connect(LaunchOptions::default());
    let (gone, there) = (InstanceId::new("i-gone"), InstanceId::new("i-there"));
    let (one, other) = tokio::join!(cloud.terminate(&gone), cloud.terminate(&there));
    one.and(other).expect("both");
    assert_eq!(fake.asked().len(), 3, "together, then each by itself");
}

#[tokio::test]
async fn a_wrong_key_is_not_tried_again_for_each_of_many() {
    let fake = Fake::new(|_| error(401, "AuthFailure", "not able to validate")).await;
    let cloud = fake.connect(LaunchOptions::default());
    let ids: Vec<InstanceId> = (0..9).map(|n| InstanceId::new(format!("i-{n}"))).collect();
    let ended = futures_util::future::join_all(ids.iter().map(|id| cloud.terminate(id))).await;
    assert!(
        ended.iter().all(|it| {
            it.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unauthenticated)
        })
    );
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn instances_launched_together_are_listed_by_their_own_names_and_others_are_not() {
    let fake = Fake::new(|_| {
        let tags = [("cluster", "cheerful-macaw"), ("node", "@launch-index"), ("names:0", "n1 n2")];
        let foreign = item("i-9", "running", 0, &[("cluster", "other"), ("Name", "n1")]);
        listing(&(item("i-1", "running", 1, &tags) + &item("i-0", "running", 0, &tags) + &foreign))
    })
    .await;
    let cloud = fake.connect(LaunchOptions::default());
    let listed = cloud.list(&ours()).await.expect("a list");
    let found: Vec<_> =
        listed.iter().map(|it| (it.id.as_str(), it.name.as_str(), it.tags.get("node"))).collect();
    assert_eq!(found, [("i-1", "n2", Some("n2")), ("i-0", "n1", Some("n1"))]);
    let named = InstanceFilter::tagged(Tags::from([("cluster", "cheerful-macaw"), ("node", "n2")]));
    assert_eq!(cloud.list(&named).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn a_page_of_a_proxy_is_no_empty_listing() {
    let fake = Fake::new(|_| (200, "<html><reservationSet/></html>".to_owned())).await;
    let error = fake.connect(LaunchOptions::default()).list(&ours()).await.expect_err("nonsense");
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn a_listing_that_does_not_advance_is_an_error() {
    let fake =
        Fake::new(|_| answer("DescribeInstances", "<reservationSet/><nextToken>x</nextToken>"))
            .await;
    let error = fake.connect(LaunchOptions::default()).list(&ours()).await.expect_err("no end");
    assert_eq!((error.kind(), fake.asked().len()), (ErrorKind::Protocol, 2));
}

#[tokio::test]
async fn nonsense_after_a_launch_is_ambiguous() {
    let fake = Fake::new(|_| (200, "<RunInstancesResponse>".to_owned())).await;
    let error =
        fake.connect(LaunchOptions::default()).launch(&spec("n1")).await.expect_err("nonsense");
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
}

/// An instance with its last replacement in this state.
async fn replaced(state: &'static str) -> cloud_core::Instance {
    let fake = Fake::new(move |asked| match asked.action() {
        "DescribeInstances" => listing(&item("i-0", "running", 0, &[("boot-image", "ami-new")])),
        action => {
            let task = |state: &str, start: &str, image: &str| {
                format!(
                    "<item><instanceId>i-0</instanceId><imageId>{image}</imageId><taskState>{state}</taskState>\
                     <startTime>{start}</startTime></item>"
                )
            };
            let tasks = task(state, "2026-11-18T12:00:00Z", "ami-new") + &task("succeeded", "2026-11-17T12:00:00Z", "ami-old");
            answer(action, &format!("<replaceRootVolumeTaskSet>{tasks}</replaceRootVolumeTaskSet>"))
        }
    })
    .await;
    let cloud = fake.connect(LaunchOptions::default());
    cloud.get(&InstanceId::new("i-0")).await.expect("an instance")
}

#[tokio::test]
async fn an_instance_whose_root_volume_is_replaced_is_on_its_way_until_that_is_done() {
    assert_eq!(replaced("in-progress").await.state, InstanceState::Pending);
    let done = replaced("succeeded").await;
    assert_eq!((done.state, done.image), (InstanceState::Running, Some(ImageId::new("ami-new"))));
    let failed = replaced("failed").await;
    assert!(failed.fault.is_some() && failed.image.is_none(), "{failed:?}");
}

#[tokio::test]
async fn no_zone_without_a_subnet_is_launched_in() {
    let mut options = LaunchOptions::default();
    options.subnets = [(cloud_core::Zone::new("a"), cloud_core::SubnetId::new("s"))].into();
    let fake = Fake::new(|_| launched(1, "pending")).await;
    let mut spec = spec("n1");
    spec.zone = Some(cloud_core::Zone::new("b"));
    let error = fake.connect(options).launch(&spec).await.expect_err("no subnet");
    assert_eq!((error.kind(), fake.asked().len()), (ErrorKind::Invalid, 0));
}

/// A refusal to launch, and what STS says about it.
async fn refused(decoded: (u16, String)) -> (Fake, cloud_core::Error) {
    let fake = Fake::new(move |asked| {
        if asked.action() == "DecodeAuthorizationMessage" {
            return decoded.clone();
        }
        let message = "You are not authorized. Encoded authorization failure message: YWJj";
        error(403, "UnauthorizedOperation", message)
    })
    .await;
    let cloud = fake.connect(LaunchOptions::default());
    let refused = cloud.launch(&spec("n1")).await.expect_err("forbidden");
    for _ in 0..9 {
        cloud.launch(&spec("n1")).await.expect_err("forbidden");
    }
    (fake, refused)
}

#[tokio::test]
async fn a_refusal_says_what_is_refused_on_what_and_why() {
    let text = "{\"allowed\":false,\"explicitDeny\":true,\"matchedStatements\":{\"items\":[]},\"context\":{\
                \"principal\":{\"id\":\"AIDA\",\"arn\":\"arn:aws:iam::1:user/slurm\"},\"action\":\"ec2:RunInstances\",\
                \"resource\":\"arn:aws:ec2:eu-west-1:1:instance/*\",\"conditions\":{\"items\":[]}}}";
    let result = format!("<DecodedMessage>{text}</DecodedMessage>");
    let inner =
        format!("<DecodeAuthorizationMessageResult>{result}</DecodeAuthorizationMessageResult>");
    let (fake, refused) = refused(answer("DecodeAuthorizationMessage", &inner)).await;
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert_eq!(
        refused.message(),
        Some(
            "arn:aws:iam::1:user/slurm lacks ec2:RunInstances on arn:aws:ec2:eu-west-1:1:instance/*: a statement denies it; \
             You are not authorized."
        )
    );
    let decoded = |asked: &&Asked| asked.action() == "DecodeAuthorizationMessage";
    assert_eq!(fake.asked().iter().filter(decoded).count(), 3, "not for each of a thousand");
}

#[tokio::test]
async fn a_refusal_that_nobody_decodes_stays_as_it_is() {
    for nonsense in [error(403, "AccessDenied", "no"), answer("DecodeAuthorizationMessage", "<x/>")]
    {
        let (_, refused) = refused(nonsense).await;
        assert_eq!(refused.message(), Some("You are not authorized."));
    }
}

#[tokio::test]
async fn a_refusal_without_a_machine_to_ask_about_says_nothing_about_machines() {
    let fake = Fake::new(|_| error(403, "UnauthorizedOperation", "no")).await;
    let cloud = fake.connect(LaunchOptions::default());
    assert!(!cloud.may_change(None).await.expect("no answer"));
    let machine = InstanceId::new("i-1");
    let refused = cloud.may_change(Some(&machine)).await.expect_err("an answer");
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    let asked = fake.asked();
    assert!(asked.iter().all(|it| it.get("DryRun") == "true"), "{asked:?}");
    assert_eq!(asked[1].get("InstanceId.1"), "i-1");
}

#[tokio::test]
async fn a_dry_run_has_the_tags_of_all_launches_which_a_policy_may_demand() {
    let mut options = LaunchOptions::default();
    options.tags = [("project".to_owned(), "climate".to_owned())].into();
    let fake = Fake::new(|_| error(412, "DryRunOperation", "would have succeeded")).await;
    fake.connect(options).dry_run(&spec("n1")).await.expect("permission");
    let asked = fake.asked().remove(0);
    assert_eq!(asked.get("TagSpecification.1.Tag.1.Key"), "project");
    assert_eq!(asked.get("TagSpecification.2.Tag.1.Value"), "climate");
}

#[tokio::test]
async fn errors_show_neither_the_encoded_part_nor_a_key() {
    let message = "You are not authorized to perform this operation. User: arn:x is not authorized to perform: \
                   ec2:RunInstances. Encoded authorization failure message: YWJj very-secret";
    let fake = Fake::new(move |_| error(403, "UnauthorizedOperation", message)).await;
    let refused =
        fake.connect(LaunchOptions::default()).launch(&spec("n1")).await.expect_err("forbidden");
    let text = format!("{refused} {refused:?}");
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert!(text.contains("ec2:RunInstances") && !text.contains("YWJj"), "{text}");
    let repeats = Fake::new(|_| error(400, "InvalidParameterValue", "no very-secret here")).await;
    let refused =
        repeats.connect(LaunchOptions::default()).list(&ours()).await.expect_err("refused");
    assert!(!format!("{refused:?}").contains("very-secret"), "{refused:?}");
}

//! A provider on a loopback cloud, and how its scenes are set.

use async_trait::async_trait;
use cloud_core::conformance::{Condition, Fixture};
use cloud_core::http::{self, Retry};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ApiOperation, ImageId, InstanceId, InstanceName, InstanceSpec, Poll, Secret, ShapeName,
    SubnetId, Zone,
};
use cloud_oci::{Clock, Config, Credentials, LaunchOptions, Oci, PrivateKey, Region};
use cloud_sim::{Capacity, Cloud, CloudSettings, Fault, Limit, Rule, Throttle};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A page of the listings of these tests.
const PAGE: u16 = 3;

pub(crate) struct SimFixture {
    pub(crate) cloud: Cloud,
}

impl SimFixture {
    pub(crate) async fn start(settings: CloudSettings) -> Self {
        Self { cloud: Cloud::start(settings).await.expect("a cloud") }
    }

    /// Who the ready-made user is.
    pub(crate) fn config(&self) -> Config {
        let user = self.cloud.credentials();
        let key = PrivateKey::from_pem(&user.private_key_pem, None).expect("a key");
        let key_id = format!("{}/{}/{}", user.tenancy, user.user, user.fingerprint);
        Config {
            credentials: Credentials::Key { key_id: Secret::new(key_id), key: Arc::new(key) },
            region: Region::find(&user.region),
            tenancy: Some(user.tenancy.clone()),
            endpoint: Some(self.cloud.endpoint().parse().expect("a URL")),
            roots: None,
        }
    }

    /// The site that the cloud is made with.
    pub(crate) fn site(&self) -> LaunchOptions {
        let settings = self.cloud.settings();
        let mut site = LaunchOptions::new(settings.compartments.first().expect("one").clone());
        site.subnet = settings.subnets.first().map(|subnet| SubnetId::new(subnet.id.clone()));
        // The cases launch one name more than once.
        site.hostname = false;
        site.page_size = PAGE;
        // However busy the machine is.
        site.longest_explanation = Duration::from_mins(5);
        site
    }

    pub(crate) async fn provider(&self) -> Oci {
        self.provider_of(self.config(), self.site()).await
    }

    pub(crate) async fn provider_of(&self, config: Config, site: LaunchOptions) -> Oci {
        let clock = Clock::new(SystemTime::now);
        Oci::connect(config, site, http(), pacer(), clock).await.expect("a provider")
    }

    /// How many instances there are with this name that take up room.
    pub(crate) fn live_named(&self, name: &str) -> usize {
        let instances = self.cloud.admin().instances();
        let named = instances.iter().filter(|instance| instance.display_name == name);
        named.filter(|instance| instance.lifecycle_state.is_live()).count()
    }
}

impl Drop for SimFixture {
    /// A body that drifts under one token would be launched a second time and not be noticed.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.cloud.admin().token_mismatches(), 0, "a token had two bodies");
        }
    }
}

/// Repeats soon, so that tests do not wait.
pub(crate) fn http() -> http::ClientConfig {
    let mut http = http::ClientConfig::default();
    http.roots = http::Roots::Only(Vec::new());
    http.retry = Retry { first: Duration::from_millis(20), ..Retry::default() };
    http
}

pub(crate) fn pacer() -> Pacer {
    Pacer::new(Pace { burst: 100, ..Pace::default() })
}

pub(crate) fn spec(name: &str) -> InstanceSpec {
    let mut spec = InstanceSpec::new(
        InstanceName::new(name),
        ShapeName::new("VM.Standard.E5.Flex.1.8"),
        ImageId::new("ocid1.image.oc1.phx.img001"),
    );
    spec.zone = Some(Zone::new("Uocm:PHX-AD-1"));
    spec
}

/// What the cloud calls an operation of ours.
fn word(operation: ApiOperation) -> &'static str {
    match operation {
        ApiOperation::Launch => "LaunchInstance",
        ApiOperation::Terminate => "TerminateInstance",
        ApiOperation::List => "ListInstances",
        other => panic!("no scene loses the answer of {other}"),
    }
}

#[async_trait]
impl Fixture for SimFixture {
    fn spec(&self, name: &str) -> InstanceSpec {
        spec(name)
    }

    fn other_image(&self) -> ImageId {
        ImageId::new("ocid1.image.oc1.phx.new")
    }

    fn run(&self) -> String {
        "run7".to_owned()
    }

    fn absent(&self) -> InstanceId {
        InstanceId::new("ocid1.instance.oc1.phx.nobodyknowsthis")
    }

    fn poll(&self) -> Poll {
        Poll {
            first: Duration::from_millis(50),
            longest: Duration::from_millis(250),
            deadline: Duration::from_mins(2),
        }
    }

    fn more_than_a_page(&self) -> Option<usize> {
        Some(2 * usize::from(PAGE) + 1)
    }

    fn boots(&self, id: &InstanceId) -> Option<usize> {
        self.cloud.admin().boots(id.as_str()).and_then(|boots| usize::try_from(boots).ok())
    }

    async fn set(&self, condition: Condition) -> bool {
        let admin = self.cloud.admin();
        let full = |fails_later| {
            let shape = Some("VM.Standard.E5.Flex".to_owned());
            let all = Capacity { availability_domain: None, shape, instances: 0, fails_later };
            admin.set_capacity(vec![all]).expect("it can happen");
        };
        let limit = |value| {
            let name = "standard-e5-core-count".to_owned();
            admin
                .set_limit(Limit { name, availability_domain: None, value })
                .expect("it can happen");
        };
        match condition {
            Condition::Normal => {
                admin.clear_faults();
                admin.set_capacity(Vec::new()).expect("it can happen");
                admin.set_throttle(Vec::new()).expect("it can happen");
                limit(100_000);
            }
            Condition::NoCapacity => full(false),
            Condition::NoCapacityLater => full(true),
            Condition::NoQuota => limit(0),
            Condition::Throttled => {
                let operation = "LaunchInstance".to_owned();
                admin
                    .set_throttle(vec![Throttle { operation, per_second: 5.0, burst: 0.5 }])
                    .expect("it can happen");
            }
            Condition::ResponseLost(operation) => {
                admin
                    .add_fault(Rule::once(word(operation), Fault::DropAfter))
                    .expect("it can happen");
            }
        }
        true
    }
}

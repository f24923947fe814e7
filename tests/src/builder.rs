//! What a cluster is to be.

use crate::cluster::{Cluster, TOLD};
use crate::conf::{Addresses, Choices, slurm_conf};
use crate::loopback::Loopback;
use crate::model::{Home, Model};
use crate::network;
use crate::programs;
use crate::release::{self, Release};
use crate::test_cloud::TestCloud;
use cloud_sim::{CloudSettings, Timing};
use slurm_testbed::{Guard, cgroup, hostname, munged};
use std::fs;
use std::path::Path;

/// What a cluster is to be.
#[derive(Debug)]
pub struct Builder {
    release: Release,
    model: Model,
    /// How many nodes there are, if that is all that the limits say.
    nodes: usize,
    limits: String,
    choices: Choices,
    settings: CloudSettings,
    extra: String,
    elastic: String,
    printed_programs: bool,
    persistent: Vec<String>,
}

impl Cluster {
    /// A cluster on a release such as `24.11`, whose nodes come and go within seconds.
    #[must_use]
    pub fn builder(series: &str) -> Builder {
        let mut settings = CloudSettings::default();
        Model::Netns.arrange(&mut settings);
        settings.timing = Timing {
            vnic: 0.1,
            provision: 0.3,
            start: 0.3,
            stop: 0.3,
            terminate: 0.3,
            fail: 0.3,
            ..Timing::default()
        };
        Builder {
            release: release::find(series),
            model: Model::Netns,
            nodes: 0,
            limits: String::new(),
            choices: Choices::default(),
            settings,
            extra: String::new(),
            elastic: "cooldown: 3s".to_owned(),
            printed_programs: false,
            persistent: Vec::new(),
        }
    }
}

impl Builder {
    /// So many nodes in the first availability domain.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self.limits(&format!("VM.Standard2.1: {{1: {count}}}\n"))
    }

    /// What its machines are; those that are all on this machine are of one kind, as `nodes` makes them.
    #[must_use]
    pub fn model(mut self, model: Model) -> Self {
        model.arrange(&mut self.settings);
        self.model = model;
        self
    }

    /// What limits.yaml says.
    #[must_use]
    pub fn limits(mut self, text: &str) -> Self {
        text.clone_into(&mut self.limits);
        self
    }

    /// How many seconds a node is idle before it goes.
    #[must_use]
    pub fn suspend_time(mut self, seconds: u32) -> Self {
        self.choices.suspend = seconds;
        self
    }

    /// How many seconds a node may take to come. Our programs have half of them: with 20, ten on a busy machine.
    #[must_use]
    pub fn resume_timeout(mut self, seconds: u32) -> Self {
        self.choices.resume_timeout = seconds;
        self
    }

    /// How many seconds a node may be silent.
    #[must_use]
    pub fn slurmd_timeout(mut self, seconds: u32) -> Self {
        self.choices.slurmd_timeout = seconds;
        self
    }

    /// For how many seconds clients try to reach slurmctld.
    #[must_use]
    pub fn slurmctld_timeout(mut self, seconds: u32) -> Self {
        self.choices.slurmctld_timeout = seconds;
        self
    }

    /// For how many seconds the credential of a job is good.
    #[must_use]
    pub fn credential(mut self, seconds: u32) -> Self {
        self.choices.credential = seconds;
        self
    }

    /// How Slurm learns where nodes are.
    #[must_use]
    pub fn addresses(mut self, addresses: Addresses) -> Self {
        self.choices.addresses = addresses;
        self
    }

    /// Has Slurm run our reboot program on the node itself instead of the controller.
    #[must_use]
    pub fn reboot_on_the_node(mut self) -> Self {
        self.choices.reboot_on_the_node = true;
        self
    }

    /// The lines of slurm.conf behind the nodes.
    #[must_use]
    pub fn partitions(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.choices.partitions);
        self
    }

    /// How the cloud is made.
    #[must_use]
    pub fn cloud(mut self, change: impl FnOnce(&mut CloudSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// More lines for startnode.yaml.
    #[must_use]
    pub fn config(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self
    }

    /// More of what startnode.yaml says under `elastic`.
    #[must_use]
    pub fn elastic(mut self, words: &str) -> Self {
        words.clone_into(&mut self.elastic);
        self
    }

    /// Has slurm.conf name our programs as `finish --print-power` does, from 26.05 on with arguments.
    #[must_use]
    pub fn printed_programs(mut self) -> Self {
        self.printed_programs = true;
        self
    }

    /// The names, without numbers, of nodes that are always there.
    #[must_use]
    pub fn persistent(mut self, stems: &[&str]) -> Self {
        self.persistent = stems.iter().map(|&stem| stem.to_owned()).collect();
        self
    }

    /// Starts it all and waits until slurmctld answers.
    #[must_use]
    pub fn start(mut self) -> Cluster {
        let (home, munged) = self.prepare("");
        let dir = &home.dir;
        let machine = dir.join("bin/machine").display().to_string();
        self.settings.machine_up = vec![machine, self.model.boot().to_owned()];
        let cloud = Loopback::start(&self.settings, &dir.join("cloud"));
        let yaml = self.oracle_yaml(&cloud);
        self.begin(cloud, munged, home, &yaml)
    }

    /// All that the cloud does not matter to; the programs run with this text, lines of a shell, before them.
    pub(crate) fn prepare(&self, before: &str) -> (Home, Guard) {
        let home = self.model.home(self.nodes);
        let dir = &home.dir;
        let munged = munged(&self.release, dir);
        for name in ["state", "etc", "bin", "log", "spool", "cloud", "fate"] {
            fs::create_dir(dir.join(name)).expect("a directory of ours");
        }
        if self.model == Model::Netns {
            network::name(dir, &self.persistent);
        }
        std::os::unix::fs::symlink(self.release.dir(), dir.join("slurm")).expect("our directory");
        programs::write(&self.release, dir, before);
        (home, munged)
    }

    /// Starts slurmctld with a cloud, of which startnode.yaml says this.
    pub(crate) fn begin<C: TestCloud>(
        self,
        cloud: C,
        munged: Guard,
        home: Home,
        yaml: &str,
    ) -> Cluster<C> {
        self.write(&home, yaml);
        let node_words = home.node_words();
        let cluster = Cluster::new(self.release, cloud, munged, home);
        if self.choices.addresses == Addresses::FromStartnode {
            cluster.fate(TOLD, "");
        }
        // Not by its own hand: it asks slurmctld, which is not there yet, and asks for half a minute.
        fill_in(cluster.dir(), &cluster.well("finish", &["--print"]), &node_words);
        if self.printed_programs {
            name_programs(cluster.dir(), &cluster.well("finish", &["--print-power"]));
        }
        cluster.start_slurmctld();
        cluster
    }

    fn write(&self, home: &Home, cloud: &str) {
        let dir = &home.dir;
        let write = |name: &str, text: String| {
            fs::write(dir.join(name), text).expect("a directory of ours");
        };
        let at = format!("{}({})", hostname(), self.model.controller());
        let controller = format!("SlurmctldHost={at}\n{}", home.controller_port());
        write("etc/slurm.conf", controller + &slurm_conf(&self.release, dir, &self.choices));
        write("etc/cgroup.conf", cgroup(&self.release));
        write("limits.yaml", self.limits.clone());
        write("etc/startnode.yaml", self.startnode_yaml(dir, cloud));
    }

    fn startnode_yaml(&self, dir: &Path, cloud: &str) -> String {
        let (slurm, at) = (self.release.dir().join("bin"), dir.display());
        let (slurm, Self { extra, elastic, .. }) = (slurm.display(), self);
        format!(
            "{cloud}cluster_id: c1
slurm_conf: {at}/etc/slurm.conf
slurm_bin: {slurm}
restart_command: [{at}/bin/restart]
{extra}elastic: {{state_dir: {at}/elastic, log: {at}/log/elastic.log, metrics: {at}/metrics.prom, requests_per_second: 200, {elastic}}}
"
        )
    }

    fn oracle_yaml(&self, cloud: &Loopback) -> String {
        let (endpoint, config) = (cloud.endpoint(), cloud.client_config());
        let subnet = self.settings.subnets.first().map(|subnet| subnet.id.clone());
        format!(
            "csp: oracle
region: us-phoenix-1
compartment_id: ocid1.compartment.oc1..aaaacomp
subnet_id: {}
ad_root: 'Uocm:PHX-AD-'
endpoint: {endpoint}
config_file: {}
",
            subnet.expect("the cloud has a subnet"),
            config.display()
        )
    }
}

/// Puts the lines of nodes between the markers, each with these words at its end.
fn fill_in(dir: &Path, section: &str, words: &str) {
    let conf = dir.join("etc/slurm.conf");
    let text = fs::read_to_string(&conf).expect("our own file");
    let lines = section.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let words = if line.starts_with("NodeName=") { words } else { "" };
        format!("{line}{words}\n")
    });
    let lines = format!("# STARTNODES\n{}# ENDNODES", lines.collect::<String>());
    fs::write(&conf, text.replace("# STARTNODES\n# ENDNODES", &lines)).expect("our own file");
}

/// Puts the lines that name programs in the place of those that do.
fn name_programs(dir: &Path, printed: &str) {
    let names = |line: &&str| {
        let key = line.split('=').next().unwrap_or_default();
        key.ends_with("Program") || key == "PowerAction"
    };
    let conf = dir.join("etc/slurm.conf");
    let text = fs::read_to_string(&conf).expect("our own file");
    let kept = text.lines().filter(|line| !names(line));
    let lines: Vec<&str> = printed.lines().filter(names).chain(kept).collect();
    fs::write(&conf, lines.join("\n") + "\n").expect("our own file");
}

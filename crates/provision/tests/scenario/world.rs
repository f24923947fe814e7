//! The world above the line.

use super::words::{Words, duration, name, names};
use super::{Scenario, now};
use cloud_core::{
    ImageId, Instance, InstanceId, InstanceName, InstanceState, ShapeName, SubnetId, Tags, Zone,
};
use provision::plan::{FindingKind, ImageWish, Sightings, Target, Vars};
use provision::{
    Cause, Cooldowns, Fallback, Identity, OnPartial, Pool, RebuildHow, Roster, Site, Stopped,
};
use slurmconf::Config;
use slurmctl::{Job, JobId, JobState, Node, NodeReason, NodeState};
use std::collections::BTreeMap;
use std::time::Duration;

impl Scenario {
    pub(crate) fn read(file: &str, text: &str) -> Self {
        let mut site = Site::new(Identity::cluster("blue"));
        site.image = Some(ImageId::new("img-1"));
        let mut scenario = Self {
            name: file.to_owned(),
            conf: String::new(),
            limits: String::new(),
            hosts: String::new(),
            site,
            instances: Vec::new(),
            named: BTreeMap::new(),
            fixed: Vec::new(),
            complete: true,
            slurm: None,
            jobs: Vec::new(),
            cooldowns: Cooldowns::new(),
            sightings: Sightings::default(),
            targets: BTreeMap::new(),
            request: String::new(),
        };
        let mut block = String::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            match line.strip_prefix("  ") {
                Some(inside) => scenario.inside(&block, inside),
                None => scenario.line(line, &mut block),
            }
        }
        assert!(!scenario.request.is_empty(), "{file}: no request");
        scenario
    }

    fn inside(&mut self, block: &str, line: &str) {
        let text = match block {
            "conf" => &mut self.conf,
            "limits" => &mut self.limits,
            "hosts" => &mut self.hosts,
            _ => panic!("{}: no such block: {block}", self.name),
        };
        text.push_str(line);
        text.push('\n');
    }

    fn line(&mut self, line: &str, block: &mut String) {
        let mut words = Words::new(line);
        let kind = words.next().unwrap();
        match kind.as_str() {
            "conf" | "limits" | "hosts" => block.clone_from(&kind),
            "site" => self.site(&mut words),
            "instance" => self.instance(&mut words),
            "incomplete" => self.complete = false,
            "slurm" => self.slurm(&mut words),
            "job" => self.job(&mut words),
            "cooling" | "resting" => self.cooling(&kind, &mut words),
            "bad" => self.bad(&mut words),
            "seen" => self.seen(&mut words),
            "reboot_vars" | "hostvars" | "wish" => self.target(&kind, &mut words),
            "request" => {
                line.trim_start_matches("request ").clone_into(&mut self.request);
                return;
            }
            _ => panic!("{}: not understood: {line}", self.name),
        }
        words.end();
    }

    fn site(&mut self, words: &mut Words) {
        let site = &mut self.site;
        if words.flag("by-name") {
            site.identity = Identity::by_name();
        }
        if words.flag("no-image") {
            site.image = None;
        }
        if let Some(image) = words.value("image") {
            site.image = Some(ImageId::new(image));
        }
        if let Some(root) = words.value("zone_root") {
            site.zone_root = Some(root);
        }
        if let Some(zones) = words.value("zones") {
            site.zones = zones.split(',').map(Zone::new).collect();
        }
        if let Some(subnet) = words.value("subnet") {
            site.subnet = Some(SubnetId::new(subnet));
        }
        while let Some(place) = words.value("fallback") {
            let (shape, zone) = place.split_once('@').unwrap_or((&place, ""));
            let shape = (!shape.is_empty()).then(|| shape.to_owned());
            let zone = (!zone.is_empty()).then(|| Zone::new(zone));
            site.fallback.push(Fallback { shape, zone, ..Fallback::default() });
        }
        if words.flag("preemptible") {
            site.fallback.push(Fallback { preemptible: true, ..Fallback::default() });
        }
        if let Some(keypair) = words.value("keypair") {
            site.keypairs.insert(keypair, vec!["ssh-ed25519 AAAA".to_owned()]);
        }
        let policies = &mut site.policies;
        if words.value("stopped").is_some_and(|value| value == "start") {
            policies.stopped = Stopped::Start;
        }
        if words.value("partial").is_some_and(|value| value == "keep") {
            policies.on_partial = OnPartial::Keep;
        }
        if words.value("rebuild").is_some_and(|value| value == "recreate") {
            policies.rebuild = RebuildHow::Recreate;
        }
        policies.files |= words.flag("files");
        policies.oldest = words.time("oldest");
        if let Some(cooldown) = words.time("cooldown") {
            policies.cooldown = cooldown;
        }
    }

    /// `instance ID NAME STATE`, tagged as ours unless it says otherwise.
    fn instance(&mut self, words: &mut Words) {
        let id = words.next().unwrap();
        let node = words.next().unwrap();
        let state = match words.next().unwrap().as_str() {
            "pending" => InstanceState::Pending,
            "running" => InstanceState::Running,
            "stopping" => InstanceState::Stopping,
            "stopped" => InstanceState::Stopped,
            "terminating" => InstanceState::Terminating,
            "terminated" => InstanceState::Terminated,
            "failed" => InstanceState::Failed,
            other => InstanceState::Other(other.to_owned()),
        };
        let shown = InstanceName::new(node.clone());
        let mut instance = Instance::new(InstanceId::new(id), shown, state);
        let cluster = words.value("cluster").unwrap_or_else(|| "blue".to_owned());
        let tagged = words.value("node").unwrap_or(node);
        if !words.flag("untagged") {
            instance.tags = Tags::from([("cluster", cluster), ("type", "compute".to_owned())]);
            if !words.flag("no-node") {
                instance.tags = instance.tags.with("node", tagged);
            }
        }
        if words.flag("current") {
            self.launched_now(&mut instance);
        }
        instance.image = words.value("image").map(ImageId::new).or(instance.image);
        instance.shape = words.value("shape").map(ShapeName::new);
        instance.zone = words.value("zone").map(Zone::new);
        instance.preemptible = words.flag("preemptible");
        instance.address = words.value("address").map(|text| text.parse().unwrap());
        let age = words.time("age").unwrap_or(Duration::from_hours(1));
        let ahead = words.time("ahead").map(|ahead| now() + ahead);
        instance.created = (!words.flag("ageless")).then(|| ahead.unwrap_or(now() - age));
        if let Some(by) = words.value("named_by") {
            self.named.insert(name(&by), instance.clone());
        }
        if words.flag("fixed") {
            self.fixed.push(instance.id.clone());
        }
        self.instances.push(instance);
    }

    /// As a launch of the node in its first place would make it now.
    fn launched_now(&self, instance: &mut Instance) {
        let config = Config::parse(&self.conf).unwrap();
        let node = name(instance.name.as_str());
        let wanted = self.site.wanted(&node, Roster::new(&config).get(&node).unwrap()).unwrap();
        let place = wanted.places.first().unwrap();
        instance.tags = self.site.spec(&wanted, place, 1).tags;
        instance.image = Some(wanted.image);
    }

    fn slurm(&mut self, words: &mut Words) {
        let known = self.slurm.get_or_insert_default();
        let list = words.next().unwrap();
        let state = words.next().unwrap();
        let (address, reason) = (words.value("address"), words.value("reason"));
        let since = words.time("since").map(|ago| now() - ago);
        let registered = words.time("registered").map(|ago| now() - ago);
        for name in names(&list) {
            let mut node = Node::new(name.clone(), NodeState::from(state.as_str()));
            node.reason = reason.as_ref().map(NodeReason::new);
            if let Some(reason) = &mut node.reason {
                reason.at = since;
            }
            if let Some(address) = &address {
                node.address.clone_from(address);
            }
            node.slurmd_start = registered;
            known.insert(name, node);
        }
    }

    fn job(&mut self, words: &mut Words) {
        let id: JobId = words.next().unwrap().parse().unwrap();
        let state = words.next().unwrap();
        let mut job = Job::new(id, JobState::from(state.as_str()));
        job.reboot = words.flag("reboot");
        if let Some(nodes) = words.value("nodes") {
            job.nodes = nodes.parse().unwrap();
        }
        if let Some(nodes) = words.value("wants") {
            job.wanted = nodes.parse().unwrap();
        }
        job.partition = words.value("partition").unwrap_or_default();
        self.jobs.push(job);
    }

    /// `cooling SHAPE [zone=Z] cause=C left=T`: over already if `over=T` stands in place of `left`.
    fn cooling(&mut self, kind: &str, words: &mut Words) {
        let what = words.next().unwrap();
        let cause = Cause::from_word(&words.value("cause").unwrap()).unwrap();
        let pause = Duration::from_mins(10);
        let since = match (words.time("left"), words.time("over")) {
            (Some(left), None) => now() + left - pause,
            (None, Some(over)) => now() - over - pause,
            _ => panic!("{}: left or over", self.name),
        };
        if kind == "resting" {
            self.cooldowns.rest(name(&what), cause, since, pause);
            return;
        }
        let zone = words.value("zone").map(Zone::new);
        let pool = Pool { shape: ShapeName::new(what), zone };
        self.cooldowns.close(pool.clone(), cause, since, pause);
        if let Some(ago) = words.time("probed") {
            self.cooldowns.probe(&pool, now() - ago, Duration::MAX);
        }
    }

    /// `bad SHAPE AGO`, with the zone: the last machine of a pool that failed its health check.
    fn bad(&mut self, words: &mut Words) {
        let what = words.next().unwrap();
        let zone = words.value("zone").map(Zone::new);
        let ago = words.time("ago").unwrap();
        let pool = Pool { shape: ShapeName::new(what), zone };
        self.cooldowns.note_bad(pool, now() - ago);
    }

    /// `seen KIND SUBJECT AGO`, or `+TIME` for a clock that was ahead.
    fn seen(&mut self, words: &mut Words) {
        let kind = FindingKind::from_word(&words.next().unwrap()).unwrap();
        let (subject, ago) = (words.next().unwrap(), words.next().unwrap());
        let first = match ago.strip_prefix('+') {
            Some(ahead) => now() + duration(ahead),
            None => now() - duration(&ago),
        };
        self.sightings.see(kind, subject, first);
    }

    fn target(&mut self, kind: &str, words: &mut Words) {
        let node = name(&words.next().unwrap());
        let target = self.targets.entry(node.clone()).or_insert_with(|| Target::new(node));
        let vars = |words: &mut Words| Vars {
            image: ImageId::new(words.value("image").unwrap()),
            instance: words.value("instance").map(InstanceId::new),
        };
        match kind {
            "reboot_vars" => target.reboot_vars = Some(vars(words)),
            "hostvars" => target.hostvars = Some(vars(words)),
            _ => {
                let unknown = words.value("unknown").map(ImageWish::Unknown);
                let known = words.value("image").map(|image| ImageWish::Known(ImageId::new(image)));
                target.reason = known.or(unknown);
            }
        }
    }
}

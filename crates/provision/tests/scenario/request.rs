//! The request above the line.

use super::words::{Words, names};
use super::{Scenario, now};
use cloud_core::ImageId;
use provision::World;
use provision::plan::{
    self, Finish, Gaps, GroupSize, JobForm, JobGroup, Plan, RebuildOptions, Resize, Rollout,
    RolloutHow, Target,
};
use slurmconf::{Document, Limits, SlurmVersion, generate};
use std::time::Duration;

/// The plan, if there is one, and what else came out.
type Outcome = (Option<Plan>, String);

fn only(plan: Plan) -> Outcome {
    (Some(plan), String::new())
}

impl Scenario {
    pub(crate) fn plan(&self, world: World<'_>) -> Outcome {
        let mut words = Words::new(&self.request);
        let outcome = match words.next().unwrap().as_str() {
            "start" => only(start(&mut words, world)),
            "stop" => only(stop(&mut words, world)),
            "failed" => only(plan::failed(&names(&words.next().unwrap()), world)),
            "rebuild" => only(self.rebuild(&mut words, world)),
            "rollout" => rollout(&mut words, world),
            "resize" => only(self.resize(&mut words, world)),
            "deploy" => {
                let nodes = words.next().map(|list| names(&list));
                only(plan::deploy(nodes.as_deref(), world))
            }
            "finish" => self.finish(&mut words, world),
            "reconcile" => {
                let (plan, seen) = plan::reconcile(&self.sightings, world);
                let lines = seen.iter().map(|(kind, subject, first)| {
                    let age = now().duration_since(first).unwrap().as_secs();
                    format!("remember: {kind} \"{subject}\" since {age} s\n")
                });
                (Some(plan), lines.collect())
            }
            "hosts" => self.hosts(&mut words, world),
            "inventory" => {
                let machines = plan::machines(world);
                let text = if words.flag("ini") {
                    plan::inventory_ini(&machines, world.conf)
                } else {
                    assert!(words.flag("json"));
                    let value = plan::inventory_json(&machines, world.conf);
                    format!("{}\n", serde_json::to_string_pretty(&value).unwrap())
                };
                (None, text)
            }
            other => panic!("{}: no such request: {other}", self.name),
        };
        words.end();
        outcome
    }

    fn rebuild(&self, words: &mut Words, world: World<'_>) -> Plan {
        let options = RebuildOptions {
            leave_same: words.flag("leave-same"),
            launch_absent: words.flag("launch-absent"),
            force: words.flag("force"),
            slurm_asks: words.flag("slurm-asks"),
        };
        let target = |node: &_| self.targets.get(node).cloned();
        let nodes = names(&words.next().unwrap());
        let targets: Vec<Target> = nodes
            .into_iter()
            .map(|node| target(&node).unwrap_or_else(|| Target::new(node)))
            .collect();
        plan::rebuild(&targets, options, world)
    }

    /// `resize [partition=NAME] STEM:FIRST:WIDTH:SIZE…`
    fn resize(&self, words: &mut Words, world: World<'_>) -> Plan {
        let version = version(words);
        let gaps = if words.flag("fill") { Gaps::Fill } else { Gaps::Keep };
        let partition = words.value("partition");
        let mut groups = Vec::new();
        while let Some(group) = words.next() {
            let parts: Vec<&str> = group.split(':').collect();
            let [stem, first, width, size] = parts[..] else {
                panic!("{}: STEM:FIRST:WIDTH:SIZE", self.name);
            };
            groups.push(GroupSize {
                partition: partition.clone(),
                stem: stem.to_owned(),
                first: first.parse().unwrap(),
                width: width.parse().unwrap(),
                size: size.parse().unwrap(),
            });
        }
        let document = Document::parse(self.conf.as_str());
        let patience = Duration::from_hours(24);
        let request = Resize { groups: &groups, gaps, document: &document, version, patience };
        plan::resize(&request, world)
    }

    fn finish(&self, words: &mut Words, world: World<'_>) -> Outcome {
        let limits = Limits::read("limits.yaml", &self.limits).unwrap();
        let cluster =
            generate(&limits, &slurm_testbed::shapes(), &slurmconf::GenerateOptions::default())
                .unwrap();
        let document = Document::parse(self.conf.as_str());
        let request = Finish {
            document: &document,
            cluster: &cluster,
            version: version(words),
            force: words.flag("force"),
            reload: !words.flag("silent"),
            unapplied: words.flag("unapplied"),
            patience: Duration::from_mins(1),
        };
        let planner = if words.flag("resize") { plan::resize_to } else { plan::finish };
        match planner(&request, world) {
            Ok(plan) => only(plan),
            Err(error) => (None, format!("error: {error}\n")),
        }
    }

    /// The hosts file, which is the same when made a second time.
    fn hosts(&self, words: &mut Words, world: World<'_>) -> Outcome {
        let machines = plan::machines(world);
        let domain = words.value("domain");
        match plan::hosts(self.hosts.as_bytes(), &machines, domain.as_deref()) {
            Ok(new) => {
                assert_eq!(plan::hosts(&new, &machines, domain.as_deref()), Ok(new.clone()));
                (None, String::from_utf8(new).unwrap())
            }
            Err(error) => (None, format!("error: {error}\n")),
        }
    }
}

fn version(words: &mut Words) -> SlurmVersion {
    words.value("version").map_or(SlurmVersion::new(24, 11), |text| text.parse().unwrap())
}

/// `start LIST [JOB:LIST …]`
fn start(words: &mut Words, world: World<'_>) -> Plan {
    let nodes = names(&words.next().unwrap());
    let mut jobs = Vec::new();
    while let Some(group) = words.next() {
        let (job, list) = group.split_once(':').unwrap();
        jobs.push(JobGroup::new(job.parse().unwrap(), names(list)));
    }
    plan::start(&nodes, &jobs, world)
}

fn stop(words: &mut Words, world: World<'_>) -> Plan {
    if words.flag("all") {
        return plan::stop_all(world);
    }
    let now = words.flag("now");
    let nodes = names(&words.next().unwrap());
    if now { plan::stop_now(&nodes, world) } else { plan::stop(&nodes, world) }
}

fn rollout(words: &mut Words, world: World<'_>) -> Outcome {
    let mut request = Rollout::new(ImageId::new(words.value("image").unwrap()));
    request.nodes = words.value("nodes").map(|list| names(&list)).unwrap_or_default();
    let partitions = words.value("partitions");
    request.partitions =
        partitions.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect();
    request.batch = words.number("batch").unwrap_or(1);
    request.delay = words.time("delay").unwrap_or_default();
    request.max_unavailable = words.number("max_unavailable");
    request.canary = words.number("canary").unwrap_or_default();
    request.stop_after = words.number("stop_after");
    let images = words.value("images");
    for (node, image) in
        images.iter().flat_map(|list| list.split(',')).filter_map(|it| it.split_once('='))
    {
        let image = ImageId::new(image);
        request.images.extend(names(node).into_iter().map(|node| (node, image.clone())));
    }
    let elastic = words.flag("elastic");
    let jobs =
        |list: String| JobForm { elastic, ..JobForm::new(list.split(',').map(str::to_owned)) };
    request.how = words.value("jobs").map(|list| RolloutHow::Jobs(jobs(list))).unwrap_or_default();
    request.tried = words.value("tried").map(|list| names(&list)).into_iter().flatten().collect();
    request.anew = words.flag("anew");
    request.last = words.time("last").map(|ago| now() - ago);
    match plan::rollout(&request, world) {
        Ok(plan) => {
            let progress = plan::rollout_progress(&request, world).unwrap();
            let over = if progress.is_over() { ", over" } else { "" };
            let halted = if progress.halted { ", halted" } else { "" };
            let plan::RolloutProgress { done, under_way, failed, left, apart, room, .. } = progress;
            let counts = format!(
                "progress: {done} done, {under_way} under way, {failed} failed, {left} left, {apart} apart, room for {room}{halted}{over}\n"
            );
            (Some(plan), counts)
        }
        Err(refusal) => (None, format!("refused: {refusal}\n")),
    }
}

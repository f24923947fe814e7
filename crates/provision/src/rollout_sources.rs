//! The image of each node of a rollout, and whether it is the one that was asked for.

use crate::images::ImageRules;
use crate::plan::{Refusal, Rollout, RolloutHow, Target};
use crate::run::Run;
use crate::state::RolloutMemory;
use crate::targets::{TargetFiles, Targets};
use crate::world::World;
use cloud_core::ImageId;
use hostlist::{Hostlist, NodeName};
use slurmconf::NodeDef;
use std::collections::BTreeMap;
use std::path::Path;

/// A rollout whose nodes have their images.
#[derive(Debug)]
pub struct ResolvedRollout {
    /// What is to be rolled out.
    pub request: Rollout,
    /// What remembers it.
    pub memory: RolloutMemory,
    /// The nodes whose image cannot be known, and why.
    pub failed: BTreeMap<NodeName, String>,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

/// What says which image a node is to get.
#[derive(Clone, Copy, Debug)]
pub struct RolloutSources<'a> {
    /// The nodes' own files.
    pub files: &'a TargetFiles,
    /// What is particular about the cloud's images.
    pub rules: ImageRules,
    /// The state directory.
    pub state: &'a Path,
}

impl RolloutSources<'_> {
    /// Sets the image of each node: that of its own file, else the one that is wanted or that the configuration names.
    ///
    /// An error says why the rollout is refused.
    pub async fn resolve(
        &self,
        run: &Run<'_>,
        mut request: Rollout,
        wanted: Option<ImageId>,
    ) -> Result<ResolvedRollout, String> {
        let names = request.scope(run.conf).map_err(|why| why.to_string())?;
        let jobs = matches!(request.how, RolloutHow::Jobs(_));
        if jobs {
            elastic(&names, run)?;
        }
        let Targets { known, failed } = match &wanted {
            // Slurm gives it to our reboot program as the reason; a job has none.
            Some(image) if !jobs => self.files.targets_of(&names, image),
            _ => self.files.targets(run, self.rules, &names, &BTreeMap::new()).await,
        };
        let observation = run.observe().await;
        let world = observation.world(run);
        let mut images = Images { failed, ..Images::default() };
        for target in known {
            images.add(target, world);
        }
        let mut warnings = Vec::new();
        if let Some(wanted) = &wanted {
            images.none_but(wanted, jobs, self.files)?;
            warnings = started_otherwise(wanted, &names, world);
        }
        let Images { chosen, failed, lacking } = images;
        if chosen.is_empty() && lacking > 0 && lacking == failed.len() {
            return Err(
                "no image: name one with --image, or in the configuration as image_id".to_owned()
            );
        }
        let memory = RolloutMemory::new(self.state, wanted.as_ref(), &request);
        let first = || chosen.values().next().map(|(image, _)| image.clone());
        request.image = wanted.or_else(first).unwrap_or(request.image);
        for (node, (image, target)) in chosen {
            request.named.extend(target.named().map(|id| (node.clone(), id.clone())));
            request.images.insert(node, image);
        }
        if !failed.is_empty() {
            request.nodes = request.images.keys().cloned().collect();
            request.partitions.clear();
        }
        Ok(ResolvedRollout { request, memory, failed, warnings })
    }
}

/// The images of nodes, as far as they are known.
#[derive(Default)]
struct Images {
    chosen: BTreeMap<NodeName, (ImageId, Target)>,
    /// The others, and why.
    failed: BTreeMap<NodeName, String>,
    /// How many of them only lack somebody who names an image.
    lacking: usize,
}

impl Images {
    fn add(&mut self, target: Target, world: World<'_>) {
        match target.image(world) {
            Ok(image) => {
                self.chosen.insert(target.node.clone(), (image, target));
            }
            Err(why) => {
                self.lacking += usize::from(why == Refusal::NoImage);
                self.failed.insert(target.node, why.to_string());
            }
        }
    }

    /// Refuses an image that some of the nodes would not get.
    fn none_but(&self, wanted: &ImageId, jobs: bool, files: &TargetFiles) -> Result<(), String> {
        let others = self.chosen.iter().filter(|(_, (image, _))| image != wanted);
        let others: Vec<String> = others
            .map(|(node, (image, target))| match files.of(target) {
                Some(file) => format!("{node} ({image}, by {})", file.display()),
                None => format!("{node} ({image})"),
            })
            .collect();
        if others.is_empty() { Ok(()) } else { Err(told_otherwise(&others, wanted, jobs)) }
    }
}

/// Why an image is refused that nodes would not get.
fn told_otherwise(others: &[String], wanted: &ImageId, jobs: bool) -> String {
    let others = others.join(", ");
    if jobs {
        format!(
            "with --jobs a node gets the image that its own file or the configuration names, and for these that is not \
             {wanted}: {others}; write it there (reboot_vars, hostvars or image_id), or leave --jobs out"
        )
    } else {
        format!(
            "a node's own file goes before --image, and for these it does not name {wanted}: {others}; write it there, or \
             leave --image out, so that each node gets its own"
        )
    }
}

/// What to say of elastic nodes that have another image when they are next started.
fn started_otherwise(wanted: &ImageId, names: &[NodeName], world: World<'_>) -> Vec<String> {
    let mut others: BTreeMap<String, Hostlist> = BTreeMap::new();
    for node in names.iter().filter(|node| world.conf.get(node).is_some_and(NodeDef::is_cloud)) {
        // Neither files nor reasons have a say in a start.
        let image = Target::new(node.clone()).image(world).ok();
        if let Some(image) = image.filter(|image| image != wanted) {
            others.entry(image.to_string()).or_default().push(node.as_str());
        }
    }
    let say = |(image, nodes)| {
        format!(
            "{nodes}: new machines still boot {image}; set `image_id: {wanted}` to change that, or the feature image= in \
             slurm.conf where nodes have one"
        )
    };
    others.into_iter().map(say).collect()
}

/// Refuses jobs for nodes on which they do nothing.
fn elastic(names: &[NodeName], run: &Run<'_>) -> Result<(), String> {
    let version = run.tools.slurm.version();
    let cloud = |node: &NodeName| run.conf.get(node).is_some_and(NodeDef::is_cloud);
    let elastic: Hostlist = names.iter().filter(|node| cloud(node)).collect();
    if elastic.is_empty() || version.reboots_elastic_nodes() {
        return Ok(());
    }
    Err(format!(
        "--jobs is for nodes that are not elastic, and these are State=CLOUD: {elastic}; Slurm {version} calls no \
         RebootProgram for a job with --reboot there: leave --jobs out, or name other nodes"
    ))
}

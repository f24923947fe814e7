//! The image that each node is to get, by files, reasons, rollouts and the configuration.

use crate::failure::chain;
use crate::images::ImageRules;
use crate::plan::{ImageWish, Target, Vars, image_in};
use crate::run::Run;
use cloud_core::{ImageId, InstanceId};
use hostlist::{Hostlist, NodeName};
use slurmconf::yaml::{self, Source};
use slurmctl::Node;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The targets of nodes, and the nodes that have none.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// What each node is to get.
    pub known: Vec<Target>,
    /// Nodes whose files cannot be read or are missing, and why.
    pub failed: BTreeMap<NodeName, String>,
}

/// The files in which StackHPC's appliance writes the image of each node.
#[derive(Clone, Debug)]
pub struct TargetFiles {
    /// The directory with `<node>.yml`.
    pub reboot_vars: PathBuf,
    /// The directory with `<node>/hostvars.yml`.
    pub hostvars: PathBuf,
    /// True if each node has to have a file.
    pub required: bool,
}

impl TargetFiles {
    /// The targets of nodes by their files and the reasons that Slurm has for them, and else by a rollout. A bad file is the
    /// failure of its own node alone.
    pub async fn targets(
        &self,
        run: &Run<'_>,
        rules: ImageRules,
        names: &[NodeName],
        rollout: &BTreeMap<NodeName, ImageId>,
    ) -> Targets {
        let list: Hostlist = names.iter().collect();
        // Without slurmctld there are no reasons, and the rest will do.
        let nodes = run.tools.slurm.nodes(Some(&list)).await.unwrap_or_default();
        let mut wishes: BTreeMap<&str, Result<ImageWish, String>> = BTreeMap::new();
        for node in &nodes {
            if let Some(name) = asked_for(node).filter(|name| !wishes.contains_key(name)) {
                let found = rules.find(run.tools.cloud, name).await;
                wishes.insert(name, found.map_err(|error| chain(&error)));
            }
        }
        let reason = |node| wishes.get(asked_for(node)?);
        let reasons: BTreeMap<&NodeName, &Result<ImageWish, String>> =
            nodes.iter().filter_map(|node| Some((&node.name, reason(node)?))).collect();
        self.read_all(names, |name| match reasons.get(name) {
            Some(reason) => (*reason).clone().map(Some),
            None => Ok(rollout.get(name).cloned().map(ImageWish::Known)),
        })
    }

    /// The targets of nodes that are to get one image, as far as their own files do not name another.
    #[must_use]
    pub fn targets_of(&self, names: &[NodeName], image: &ImageId) -> Targets {
        self.read_all(names, |_| Ok(Some(ImageWish::Known(image.clone()))))
    }

    /// The file that names the image of a target, if one does.
    #[must_use]
    pub(crate) fn of(&self, target: &Target) -> Option<PathBuf> {
        match (&target.reboot_vars, &target.hostvars) {
            (Some(_), _) => Some(self.own(&target.node)),
            (None, Some(_)) => Some(self.shared(&target.node)),
            (None, None) => None,
        }
    }

    fn own(&self, name: &NodeName) -> PathBuf {
        self.reboot_vars.join(format!("{name}.yml"))
    }

    fn shared(&self, name: &NodeName) -> PathBuf {
        self.hostvars.join(name.as_str()).join("hostvars.yml")
    }

    fn read_all(
        &self,
        names: &[NodeName],
        reason: impl Fn(&NodeName) -> Result<Option<ImageWish>, String>,
    ) -> Targets {
        let mut targets = Targets::default();
        for name in names {
            match self.read(name, reason(name)) {
                Ok(target) => targets.known.push(target),
                Err(why) => {
                    targets.failed.insert(name.clone(), why);
                }
            }
        }
        targets
    }

    /// The target by files and reason; a reason that could not be looked up matters only where the files are silent.
    fn read(
        &self,
        name: &NodeName,
        reason: Result<Option<ImageWish>, String>,
    ) -> Result<Target, String> {
        let own = self.own(name);
        let mut target = Target::new(name.clone());
        target.reboot_vars = read(&own)?;
        if target.reboot_vars.is_none() {
            target.hostvars = read(&self.shared(name))?;
        }
        let by_file = target.reboot_vars.is_some() || target.hostvars.is_some();
        target.reason = if by_file { reason.unwrap_or_default() } else { reason? };
        if !by_file && target.reason.is_none() && self.required {
            return Err(format!(
                "its image is not known: write {} with image_id and instance_id, or use the reason 'rebuild image:NAME'",
                own.display()
            ));
        }
        Ok(target)
    }
}

/// The image that a node's reason asks for. 24.11 keeps the reason of a rebuild that is over.
fn asked_for(node: &Node) -> Option<&str> {
    let over = node.state.is_up() && node.reason_text().contains(": reboot issued");
    image_in(node.reason_text()).filter(|_| !over)
}

/// The two keys of a node's file that matter; a file that is not there says nothing.
fn read(path: &Path) -> Result<Option<Vars>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    vars(&path.display().to_string(), &text).map_err(|error| without_excerpt(&error))
}

/// Where and what is wrong, and not the line: hostvars hold passwords, too.
fn without_excerpt(error: &slurmconf::Error) -> String {
    let whole = error.to_string();
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let text = format!("{}{}", whole.lines().next().unwrap_or_default(), cause.unwrap_or_default());
    text.lines().next().unwrap_or_default().to_owned()
}

/// All but the two keys is ignored: hostvars hold everything that Ansible knows, templates included.
fn vars(file: &str, text: &str) -> slurmconf::Result<Option<Vars>> {
    let source = Source::new(file, text);
    let root = source.read()?;
    let entries = source.map(file, &root)?;
    let Some(image) = yaml::YamlNode::get(entries, "image_id") else { return Ok(None) };
    let image = ImageId::new(source.text("image_id", image)?);
    let instance = yaml::YamlNode::get(entries, "instance_id");
    let instance = instance.map(|node| source.text("instance_id", node)).transpose()?;
    Ok(Some(Vars { image, instance: instance.map(InstanceId::new) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_a_rebuild_that_is_over_asks_for_nothing() {
        let asked = |state: &str, reason: &str| {
            let mut node = Node::new(NodeName::new("n1").unwrap(), state.into());
            node.reason =
                Some(slurmctl::NodeReason { text: reason.to_owned(), by: None, at: None });
            asked_for(&node).map(str::to_owned)
        };
        let issued = "rebuild image:x : reboot issued";
        assert_eq!(asked("IDLE+CLOUD", issued), None);
        assert_eq!(asked("DOWN+CLOUD+DRAIN+REBOOT_ISSUED", issued).as_deref(), Some("x"));
        assert_eq!(asked("DOWN+CLOUD", issued).as_deref(), Some("x"));
        let requested = "IDLE+CLOUD+DRAIN+REBOOT_REQUESTED";
        assert_eq!(asked(requested, "rebuild image:x").as_deref(), Some("x"));
    }

    #[test]
    fn only_two_keys_of_hostvars_matter() {
        let text =
            "{\"image_id\": \"i-2\", \"instance_id\": \"s-1\", \"x\": \"{{ y }}\", \"z\": [1]}";
        let expected = Vars { image: ImageId::new("i-2"), instance: Some(InstanceId::new("s-1")) };
        assert_eq!(vars("h.yml", text).unwrap(), Some(expected));
        assert_eq!(vars("h.yml", "instance_id: s-1\n").unwrap(), None);
        assert!(vars("h.yml", "image_id: [1]\n").is_err());
    }

    #[test]
    fn a_line_of_hostvars_is_never_shown() {
        let texts =
            ["image_id: [hunter2]\n", "password: \"hunter2\n", "x: [hunter2\ny: }hunter2\n"];
        for text in texts {
            let said = without_excerpt(&vars("h.yml", text).unwrap_err());
            assert!(said.contains("h.yml") && !said.contains("hunter2"), "{said}");
        }
    }
}

//! What is said about the images of nodes, by files, reasons and the configuration.

use crate::context::Context;
use crate::trouble::Trouble;
use cloud_core::{ImageFilter, ImageId, ImageName, InstanceId, Provider};
use hostlist::{Hostlist, NodeName};
use provision::plan::{ImageWish, Target, Vars, image_in};
use provision::run::Run;
use slurmconf::yaml::{Node, Source};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where StackHPC's appliance writes the target of each node.
const REBOOT_VARS: &str = "/etc/slurm/reboot_vars";
const HOSTVARS: &str = "/exports/cluster/hostvars";

/// What is said about each of these nodes.
pub(super) async fn targets(
    context: &Context,
    run: &Run<'_>,
    names: &[NodeName],
) -> Result<Vec<Target>, Trouble> {
    let mut list = Hostlist::new();
    list.extend(names.iter().map(NodeName::as_str));
    // Without slurmctld there are no reasons, and the rest will do.
    let nodes = run.tools.slurm.nodes(Some(&list)).await.unwrap_or_default();
    let mut wishes: BTreeMap<&str, ImageWish> = BTreeMap::new();
    for node in &nodes {
        if let Some(name) = image_in(node.reason_text()).filter(|name| !wishes.contains_key(name)) {
            wishes.insert(name, find(run.tools.cloud, name).await?);
        }
    }
    let reason = |name: &NodeName| {
        let node = nodes.iter().find(|node| node.name == *name)?;
        wishes.get(image_in(node.reason_text())?).cloned()
    };
    let paths = &context.settings.paths;
    let folder = |path: &Option<String>, usual: &str| {
        path.as_deref()
            .map_or_else(|| PathBuf::from(usual), |path| context.environment.expand(path))
    };
    let reboot_vars = folder(&paths.reboot_vars, REBOOT_VARS);
    let hostvars = folder(&paths.hostvars, HOSTVARS);
    let target = |name: &NodeName| {
        let own = read(&reboot_vars.join(format!("{name}.yml")))?;
        let host = read(&hostvars.join(name.as_str()).join("hostvars.yml"))?;
        let mut target = Target::new(name.clone());
        target.reboot_vars = own;
        target.hostvars = host;
        target.reason = reason(name);
        Ok(target)
    };
    names.iter().map(target).collect()
}

/// The image of a name or an id.
pub(super) async fn find(cloud: &dyn Provider, name: &str) -> Result<ImageWish, Trouble> {
    let named = ImageFilter { name: Some(ImageName::new(name)), ..ImageFilter::default() };
    let images = cloud.images(&named).await.map_err(|error| Trouble::from_error(&error))?;
    if let [image] = &images[..] {
        return Ok(ImageWish::Known(image.id.clone()));
    }
    if images.len() > 1 {
        return Ok(ImageWish::Unknown(name.to_owned()));
    }
    let all = cloud.images(&ImageFilter::default()).await;
    let all = all.map_err(|error| Trouble::from_error(&error))?;
    let known = all.into_iter().find(|image| image.id.as_str() == name);
    Ok(known
        .map_or_else(|| ImageWish::Unknown(name.to_owned()), |image| ImageWish::Known(image.id)))
}

/// The two keys of a node's file that matter; a file that is not there says nothing.
fn read(path: &Path) -> Result<Option<Vars>, Trouble> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Trouble::new(format!("cannot read {}: {error}", path.display())));
        }
    };
    vars(&path.display().to_string(), &text).map_err(|error| Trouble::from_error(&error))
}

/// All but the two keys is ignored: hostvars hold everything that Ansible knows, templates included.
fn vars(file: &str, text: &str) -> slurmconf::Result<Option<Vars>> {
    let source = Source::new(file, text);
    let root = source.read()?;
    let entries = source.map(file, &root)?;
    let Some(image) = Node::get(entries, "image_id") else { return Ok(None) };
    let image = ImageId::new(source.text("image_id", image)?);
    let instance = Node::get(entries, "instance_id");
    let instance = instance.map(|node| source.text("instance_id", node)).transpose()?;
    Ok(Some(Vars { image, instance: instance.map(InstanceId::new) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_keys_of_hostvars_matter() {
        let text =
            "{\"image_id\": \"i-2\", \"instance_id\": \"s-1\", \"x\": \"{{ y }}\", \"z\": [1]}";
        let expected = Vars { image: ImageId::new("i-2"), instance: Some(InstanceId::new("s-1")) };
        assert_eq!(vars("h.yml", text).unwrap(), Some(expected));
        assert_eq!(vars("h.yml", "instance_id: s-1\n").unwrap(), None);
        assert!(vars("h.yml", "image_id: [1]\n").is_err());
    }
}

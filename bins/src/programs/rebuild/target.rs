//! What is said about the images of nodes, by files, reasons and the configuration.

use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::wiring;
use cloud_core::{Image, ImageFilter, ImageId, ImageName, InstanceId, Provider};
use hostlist::{Hostlist, NodeName};
use provision::plan::{ImageWish, Target, Vars, image_in};
use provision::run::Run;
use slurmconf::yaml::{self, Source};
use slurmctl::Node;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where StackHPC's appliance writes the target of each node.
const REBOOT_VARS: &str = "/etc/slurm/reboot_vars";
const HOSTVARS: &str = "/exports/cluster/hostvars";

/// What is said about nodes, and about which of them nothing can be known.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// What is said about each node.
    pub(super) known: Vec<Target>,
    /// Nodes whose files cannot be read or are missing, and why.
    pub(super) failed: BTreeMap<NodeName, String>,
}

/// What is said about each of these nodes; a bad file is the diagnostic of its own node alone.
pub(super) async fn targets(context: &Context, run: &Run<'_>, names: &[NodeName]) -> Targets {
    targets_with(context, run, names, &BTreeMap::new()).await
}

/// The same where a rollout says something of nodes whose files and reasons are silent.
pub(super) async fn targets_with(
    context: &Context,
    run: &Run<'_>,
    names: &[NodeName],
    rollout: &BTreeMap<NodeName, ImageId>,
) -> Targets {
    let mut list = Hostlist::new();
    list.extend(names.iter().map(NodeName::as_str));
    // Without slurmctld there are no reasons, and the rest will do.
    let nodes = run.tools.slurm.nodes(Some(&list)).await.unwrap_or_default();
    let mut wishes: BTreeMap<&str, Result<ImageWish, String>> = BTreeMap::new();
    for node in &nodes {
        if let Some(name) = asked_for(node).filter(|name| !wishes.contains_key(name)) {
            let found = find(run.tools.cloud, name).await;
            wishes.insert(name, found.map_err(|diagnostic| diagnostic.to_string()));
        }
    }
    let reasons: BTreeMap<&NodeName, &Result<ImageWish, String>> =
        nodes.iter().filter_map(|node| Some((&node.name, wishes.get(asked_for(node)?)?))).collect();
    read_all(context, names, |name| match reasons.get(name) {
        Some(reason) => (*reason).clone().map(Some),
        None => Ok(rollout.get(name).cloned().map(ImageWish::Known)),
    })
}

/// The same for nodes that are to get one image, as far as their own files do not name another.
pub(super) fn targets_of(context: &Context, names: &[NodeName], image: &ImageId) -> Targets {
    read_all(context, names, |_| Ok(Some(ImageWish::Known(image.clone()))))
}

/// The image that a node's reason asks for. 24.11 keeps the reason of a rebuild that is over.
fn asked_for(node: &Node) -> Option<&str> {
    let over = node.state.is_up() && node.reason_text().contains(": reboot issued");
    image_in(node.reason_text()).filter(|_| !over)
}

fn read_all(
    context: &Context,
    names: &[NodeName],
    reason: impl Fn(&NodeName) -> Result<Option<ImageWish>, String>,
) -> Targets {
    let files = Files::of(context);
    let mut targets = Targets::default();
    for name in names {
        match files.target(name, reason(name)) {
            Ok(target) => targets.known.push(target),
            Err(why) => {
                targets.failed.insert(name.clone(), why);
            }
        }
    }
    targets
}

/// The file that names the node's image, if one does.
pub(super) fn file(context: &Context, target: &Target) -> Option<PathBuf> {
    let files = Files::of(context);
    match (&target.reboot_vars, &target.hostvars) {
        (Some(_), _) => Some(files.own(&target.node)),
        (None, Some(_)) => Some(files.shared(&target.node)),
        (None, None) => None,
    }
}

/// The files that name the image of each node.
struct Files {
    reboot_vars: PathBuf,
    hostvars: PathBuf,
    /// True if each node has to have one.
    needed: bool,
}

impl Files {
    fn of(context: &Context) -> Self {
        let paths = &context.settings.paths;
        let folder = |path: Option<&str>, usual| context.environment.expand(path.unwrap_or(usual));
        let reboot_vars = folder(paths.reboot_vars.as_deref(), REBOOT_VARS);
        let needed = paths.reboot_vars.is_some() || reboot_vars.is_dir();
        Self { reboot_vars, hostvars: folder(paths.hostvars.as_deref(), HOSTVARS), needed }
    }

    fn own(&self, name: &NodeName) -> PathBuf {
        self.reboot_vars.join(format!("{name}.yml"))
    }

    fn shared(&self, name: &NodeName) -> PathBuf {
        self.hostvars.join(name.as_str()).join("hostvars.yml")
    }

    /// What the files and the reason say; a reason that could not be looked up matters only where the files are silent.
    fn target(
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
        let said = target.reboot_vars.is_some() || target.hostvars.is_some();
        target.reason = if said { reason.unwrap_or_default() } else { reason? };
        let silent =
            target.reboot_vars.is_none() && target.hostvars.is_none() && target.reason.is_none();
        if silent && self.needed {
            return Err(format!(
                "no {}, so that its image is not known: write it with image_id and instance_id, or give the reason \
                 'rebuild image:NAME'",
                own.display()
            ));
        }
        Ok(target)
    }
}

/// The image of a name or an id. What can only be an id is taken as it is, as by a launch: not all images that may be used are
/// listed, such as those of other compartments or projects.
pub(super) async fn find(cloud: &dyn Provider, name: &str) -> Result<ImageWish, Diagnostic> {
    if wiring::is_image_id(name) {
        let listed = cloud.images(&ImageFilter::default()).await.unwrap_or_default();
        let same = listed.into_iter().find(|image| is_same_id(image.id.as_str(), name));
        return Ok(ImageWish::Known(same.map_or_else(|| ImageId::new(name), |image| image.id)));
    }
    let named = ImageFilter { name: Some(ImageName::new(name)), ..ImageFilter::default() };
    let images = cloud.images(&named).await.map_err(|error| Diagnostic::from_cloud(&error))?;
    if let [image] = &images[..] {
        return Ok(ImageWish::Known(image.id.clone()));
    }
    if images.len() > 1 {
        return Ok(ImageWish::Unknown(name.to_owned()));
    }
    let all = cloud.images(&ImageFilter::default()).await;
    let all = all.map_err(|error| Diagnostic::from_cloud(&error))?;
    let known = all.into_iter().find(|image| image.id.as_str() == name);
    Ok(known
        .map_or_else(|| ImageWish::Unknown(name.to_owned()), |image| ImageWish::Known(image.id)))
}

/// True if two ids are one: UUIDs are written with hyphens or without, in either case.
fn is_same_id(one: &str, other: &str) -> bool {
    let is_uuid = !one.starts_with("ocid1.");
    let plain = |id: &str| id.replace('-', "").to_ascii_lowercase();
    one == other || (is_uuid && plain(one) == plain(other))
}

/// What to say of an image that is not listed; it may be mistyped. One that nobody can list is not known to be.
pub(super) async fn unlisted(cloud: &dyn Provider, image: &ImageId) -> Option<String> {
    let listed = cloud.images(&ImageFilter::default()).await.ok()?;
    let known = listed.iter().any(|it| it.id == *image);
    (!known).then(|| {
        format!("the cloud does not list image {image}: make sure that it is the one that is meant")
    })
}

/// Why a name is not that of one image.
pub(super) async fn unfound(cloud: &dyn Provider, name: &str) -> Diagnostic {
    match cloud.images(&ImageFilter::default()).await {
        Ok(images) => not_one(name, &images),
        Err(error) => Diagnostic::from_cloud(&error),
    }
}

/// Most names that are given to choose from.
const MOST_NAMES: usize = 5;

fn not_one(name: &str, images: &[Image]) -> Diagnostic {
    let called = images.iter().filter(|image| image.name.as_str() == name);
    let ids: Vec<&str> = called.map(|image| image.id.as_str()).collect();
    if !ids.is_empty() {
        let (count, ids) = (ids.len(), ids.join(", "));
        return Diagnostic::new(format!(
            "{count} images are called {name}: name one by its id: {ids}"
        ));
    }
    let mut names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
    if let Some(near) = slurmconf::nearest(name, names.iter().copied()) {
        return Diagnostic::new(format!(
            "the cloud has no image {name}; the nearest name is {near}"
        ));
    }
    names.dedup();
    names.truncate(MOST_NAMES);
    let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Diagnostic::new(format!("the cloud has no image {name}; of those it has, the newest: {has}"))
}

/// Refuses a name that an image has: of two, neither could be called by it.
pub(super) async fn unused(cloud: &dyn Provider, name: &str) -> Result<(), Diagnostic> {
    let named = ImageFilter { name: Some(ImageName::new(name)), ..ImageFilter::default() };
    let images = cloud.images(&named).await.map_err(|error| Diagnostic::from_cloud(&error))?;
    let ids: Vec<&str> = images.iter().map(|image| image.id.as_str()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let ids = ids.join(", ");
    Err(Diagnostic::new(format!(
        "there is an image {name} already ({ids}), and by its name neither could be meant; choose another"
    )))
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
    let text = crate::output::chain(error);
    text.lines().next().unwrap_or_default().to_owned()
}

/// All but the two keys is ignored: hostvars hold everything that Ansible knows, templates included.
fn vars(file: &str, text: &str) -> slurmconf::Result<Option<Vars>> {
    let source = Source::new(file, text);
    let root = source.read()?;
    let entries = source.map(file, &root)?;
    let Some(image) = yaml::Node::get(entries, "image_id") else { return Ok(None) };
    let image = ImageId::new(source.text("image_id", image)?);
    let instance = yaml::Node::get(entries, "instance_id");
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
    fn none_and_several_images_of_a_name_were_one_and_the_same() {
        let image = |id: &str, name: &str| Image::new(ImageId::new(id), ImageName::new(name));
        let images = [image("i-1", "golden"), image("i-2", "golden"), image("i-3", "base")];
        let several = not_one("golden", &images).to_string();
        assert_eq!(several, "2 images are called golden: name one by its id: i-1, i-2");
        let near = not_one("bass", &images).to_string();
        assert_eq!(near, "the cloud has no image bass; the nearest name is base");
        let none = not_one("unheard-of", &images).to_string();
        assert!(none.ends_with("the newest: golden, base"), "{none}");
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

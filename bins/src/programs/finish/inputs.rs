//! What `finish` reads: limits, shapes, and the file with the markers.

use super::sources::{Sources, StyleName};
use crate::config::Cloud;
use crate::context::Context;
use crate::trouble::Trouble;
use crate::wiring::Slurm;
use slurmconf::{
    Cluster, Config, Document, Flavor, GenerateOptions, Limits, ManagementNode, Markers,
    MemoryPolicy, Problem, Shapes, generate_all,
};
use slurmctl::Controller as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SHAPES: &str = "/etc/citc/shapes.yaml";
const MANAGEMENT: &str = "/etc/citc/mgmt_shape.yaml";
const READY: &str = "/mnt/shared/finalised";

/// Why the management node is not ready, by the flag that Cluster in the Cloud sets; without its folder, all is ready.
pub(super) fn unready(context: &Context) -> Option<String> {
    let folder = context.settings.paths.ready.as_deref().unwrap_or(READY);
    let folder = context.environment.expand(folder);
    let flag = folder.join(&context.environment.hostname);
    let waiting = folder.is_dir() && !flag.exists();
    waiting.then(|| {
        format!(
            "the management node is not ready: {} is not there yet; see /root/ansible-pull.log, or use --force",
            flag.display()
        )
    })
}

/// What was read.
pub(in crate::programs) struct Inputs {
    /// What is to stand between the markers.
    pub(in crate::programs) cluster: Cluster,
    /// Where that is.
    pub(in crate::programs) marked: Marked,
    /// Where the limits are.
    pub(super) limits: PathBuf,
    /// All shapes, and how much of their memory slurmd finds.
    pub(super) sizes: (Shapes, MemoryPolicy),
}

/// The file that has the markers: slurm.conf, or one that it includes.
pub(in crate::programs) struct Marked {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What it says.
    pub(in crate::programs) document: Document,
}

impl Inputs {
    pub(in crate::programs) async fn read(
        sources: &Sources,
        context: &Context,
    ) -> Result<Self, Trouble> {
        let limits = limits(&sources.limits, context)?;
        let shapes = shapes(sources, context).await?;
        let citc = sources.style == StyleName::Citc;
        let marked = Marked::find(&context.slurm);
        let default = || marked.as_ref().ok().and_then(Marked::default_partition);
        let site = GenerateOptions {
            cluster_id: context.settings.cluster_id.clone(),
            style: sources.style.into(),
            memory: memory(context, citc),
            default_partition: sources.default_partition.clone().or_else(default),
        };
        let cluster =
            generate_all(&limits, &shapes, &site).map_err(|errors| not_generated(&errors))?;
        super::fit::default_partition(sources.default_partition.as_deref(), &cluster)?;
        let sizes = (shapes, site.memory);
        let inputs = Self { cluster, marked: marked?, limits: sources.limits.clone(), sizes };
        super::fit::partitions(&inputs, context)?;
        Ok(inputs)
    }

    /// The same, if the cloud could launch all of the nodes.
    pub(in crate::programs) fn launchable(self, context: &Context) -> Result<Self, Trouble> {
        match super::fit::unstartable(&self.cluster.nodes, context) {
            Some(unstartable) => Err(Trouble::new(unstartable)),
            None => Ok(self),
        }
    }
}

fn not_generated(errors: &[slurmconf::Error]) -> Trouble {
    let trouble = Trouble::from_errors(errors);
    let unknown = errors.iter().filter_map(|error| match error.problem() {
        Problem::UnknownShape { name, .. } => Some(name),
        _ => None,
    });
    let mut unknown = unknown.peekable();
    if unknown.peek().is_none() {
        return trouble;
    }
    if unknown.all(|name| name.contains(".Flex")) {
        return trouble.advising(
            "a flexible shape has its OCPUs and GB of memory behind it: VM.Standard.E4.Flex.16.256",
        );
    }
    trouble.advising(
        "a shape that is not built in goes into a file that --shapes or shapes_file names: `VM.My.8: {memory: 60000, \
         cores_per_socket: 8}`",
    )
}

fn memory(context: &Context, citc: bool) -> MemoryPolicy {
    match (&context.settings.cloud, citc) {
        (Cloud::Oracle(_), true) => MemoryPolicy::CitcOracle,
        (Cloud::OpenStack(_), true) => MemoryPolicy::CitcOpenstack,
        (_, false) => MemoryPolicy::default(),
    }
}

fn limits(path: &Path, context: &Context) -> Result<Limits, Trouble> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                "let this user read it and its directory, or name another with --limits"
            }
            _ => "write one with a line such as `VM.Standard2.1: {1: 10}`, or name another with --limits",
        };
        Trouble::new(format!("cannot read {}: {error}; {remedy}", path.display()))
    })?;
    let (limits, errors) = Limits::read_all(&path.display().to_string(), &text);
    if !errors.is_empty() {
        return Err(Trouble::from_errors(&errors).advising(
            "an entry is `VM.Standard2.1: {1: 10}`, `m1.large: 10` or `name: {shape: m1.large, min: 2, max: 10}`",
        ));
    }
    let (management, text) =
        named(context, context.settings.paths.management.as_deref(), MANAGEMENT)?;
    match text {
        Some(text) => {
            let management = ManagementNode::read(&management.display().to_string(), &text);
            Ok(limits.without(&management.map_err(|error| Trouble::from_error(&error))?))
        }
        None => Ok(limits),
    }
}

/// The built-in shapes or the cloud's flavors, and over them the operator's own.
async fn shapes(sources: &Sources, context: &Context) -> Result<Shapes, Trouble> {
    let mut shapes = match &context.settings.cloud {
        Cloud::Oracle(_) => Shapes::oci(),
        Cloud::OpenStack(_) => flavors(context).await?,
    };
    let (path, text) = match &sources.shapes {
        Some(path) => (path.clone(), Some(read(path)?)),
        None => named(context, context.settings.paths.shapes.as_deref(), SHAPES)?,
    };
    if let Some(text) = text {
        let file = path.display().to_string();
        let read = match sources.style {
            StyleName::Citc => shapes.read_as_citc(&file, &text),
            StyleName::Folded | StyleName::NodeGroups => shapes.read(&file, &text),
        };
        read.map_err(|error| Trouble::from_error(&error))?;
    }
    Ok(shapes)
}

async fn flavors(context: &Context) -> Result<Shapes, Trouble> {
    let offered = context.cloud.shapes().await.map_err(|error| Trouble::from_cloud(&error))?;
    let mut shapes = Shapes::new();
    for shape in offered {
        let gres = if shape.gpus > 0 { format!("gpu:{}", shape.gpus) } else { String::new() };
        let flavor = Flavor {
            vcpus: shape.vcpus,
            memory: shape.memory_mib,
            gres,
            arch: "x86_64".to_owned(),
        };
        shapes.insert(shape.name.as_str(), flavor);
    }
    Ok(shapes)
}

impl Marked {
    /// Looks for it in slurm.conf and in all that it includes, in the order in which slurmctld reads them.
    pub(in crate::programs) fn find(slurm: &Slurm) -> Result<Self, Trouble> {
        let mut files = Vec::new();
        let read = Config::load(&slurm.path, slurm.controller.version(), |path| {
            let bytes = std::fs::read(path)?;
            let document = Document::parse(bytes.clone()).named(&path.display().to_string());
            files.push(Self { path: path.to_owned(), document });
            Ok(bytes)
        });
        read.map_err(|error| Trouble::from_error(&error))?;
        let mut half = None;
        for file in files {
            let Err(error) = file.document.section(Markers::NODES) else { return Ok(file) };
            if !matches!(error.problem(), Problem::NoMarker { .. }) {
                return Err(Trouble::from_error(&error));
            }
            half = half.or_else(|| lone(&file.document));
        }
        Err(half.unwrap_or_else(|| {
            Trouble::new(format!(
                "{} has no line {:?}, nor has a file it includes; put these two lines where the nodes are to stand:\n{}\n{}",
                slurm.path.display(),
                Markers::NODES.start,
                Markers::NODES.start,
                Markers::NODES.end
            ))
        }))
    }

    /// The partition between the markers that is the default now; of several the last, as slurmctld takes it.
    fn default_partition(&self) -> Option<String> {
        let section = Config::parse(&self.document.section(Markers::NODES).ok()?).ok()?;
        let found = section.partitions.into_iter().rfind(|it| it.default == Some(true));
        found.map(|partition| partition.name)
    }
}

/// What to do about a file that has one of the two markers.
fn lone(document: &Document) -> Option<Trouble> {
    let has = |marker: &str| {
        let mut lines = document.as_bytes().split(|&byte| byte == b'\n');
        lines.any(|line| line.trim_ascii_end() == marker.as_bytes())
    };
    let Markers { start, end } = Markers::NODES;
    let (there, missing, place) = match (has(start), has(end)) {
        (true, false) => (start, end, "after the last of the nodes"),
        (false, true) => (end, start, "before the first of the nodes"),
        (true, true) | (false, false) => return None,
    };
    let file = document.name();
    Some(Trouble::new(format!(
        "{file} has a line {there:?} and no line {missing:?}; put this line {place}:\n{missing}"
    )))
}

/// A file that has to be there if the configuration names it, and may be there in its usual place.
fn named(
    context: &Context,
    name: Option<&str>,
    usual: &str,
) -> Result<(PathBuf, Option<String>), Trouble> {
    let path = context.environment.expand(name.unwrap_or(usual));
    let text = if name.is_some() { Some(read(&path)?) } else { if_there(&path)? };
    Ok((path, text))
}

fn read(path: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(path)
        .map_err(|error| Trouble::new(format!("cannot read {}: {error}", path.display())))
}

fn if_there(path: &Path) -> Result<Option<String>, Trouble> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Trouble::new(format!("cannot read {}: {error}", path.display()))),
    }
}

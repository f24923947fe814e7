//! Reads the input of `finish`: limits, shapes, and the file with the markers.

use super::sources::{Sources, StyleName};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::wiring;
use provision::conf::{
    MarkedFile, built_in_shapes, default_partition, duplicate_partitions, known_shapes,
    unlaunchable,
};
use slurmconf::{
    Cluster, GenerateOptions, Limits, ManagementNode, MemoryPolicy, Shapes, generate_all,
};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SHAPES: &str = "/etc/citc/shapes.yaml";
const MANAGEMENT: &str = "/etc/citc/mgmt_shape.yaml";
const READY: &str = "/mnt/shared/finalised";

/// Why the management node is not ready: Cluster in the Cloud has not created its flag file. Without the folder, there is
/// no flag.
pub(super) fn unready(context: &Context<'_>) -> Option<String> {
    let folder = context.settings.paths.ready.as_deref().unwrap_or(READY);
    let folder = context.bootstrap.environment.expand(folder);
    let flag = folder.join(&context.bootstrap.environment.hostname);
    let is_unready = folder.is_dir() && !flag.exists();
    is_unready.then(|| {
        format!(
            "the management node is not ready: {} does not exist yet; see /root/ansible-pull.log, or use --force",
            flag.display()
        )
    })
}

/// The input of `finish` and `resize`.
pub(in crate::programs) struct Inputs {
    /// The nodes and partitions for the node section.
    pub(in crate::programs) cluster: Cluster,
    /// The file with the node section.
    pub(in crate::programs) marked: MarkedFile,
    /// Path of the limits.
    pub(super) limits: PathBuf,
    /// All shapes, and how to compute `RealMemory` from their memory.
    pub(super) sizes: (Shapes, MemoryPolicy),
}

impl Inputs {
    pub(in crate::programs) async fn read(
        sources: &Sources,
        context: &Context<'_>,
    ) -> Result<Self, Diagnostic> {
        let limits = limits(&sources.limits, context)?;
        let shapes = shapes(sources, context).await?;
        let citc = sources.style == StyleName::Citc;
        let marked = context.slurm.marked_file();
        let default = || marked.as_ref().ok().and_then(MarkedFile::default_partition);
        let site = GenerateOptions {
            cluster_id: context.settings.cluster_id.clone(),
            style: sources.style.into(),
            memory: memory(context, citc),
            default_partition: sources.default_partition.clone().or_else(default),
            zone_feature: Some(context.cloud.describe().zone_feature.to_owned()),
        };
        let cluster = generate_all(&limits, &shapes, &site)
            .map_err(|errors| not_generated(&errors, context))?;
        if let Some(unknown) = default_partition(sources.default_partition.as_deref(), &cluster) {
            return Err(Diagnostic::new(unknown));
        }
        let sizes = (shapes, site.memory);
        let inputs = Self { cluster, marked: marked?, limits: sources.limits.clone(), sizes };
        let twice = duplicate_partitions(&inputs.cluster, &inputs.marked, &context.slurm.config);
        if twice.is_empty() {
            return Ok(inputs);
        }
        let names = twice.into_iter().collect::<Vec<_>>().join(", ");
        let (limits, conf) = (inputs.limits.display(), context.slurm.path.display());
        Err(Diagnostic::new(format!(
            "{limits} and {conf} both define the partition {names}: remove its line from {conf}, or from the file that \
             {conf} includes, or rename one of the two"
        )))
    }

    /// Returns an error for nodes that the cloud can never launch.
    pub(in crate::programs) fn launchable(self, context: &Context<'_>) -> Result<Self, Diagnostic> {
        let cloud = context.cloud.describe();
        match unlaunchable(&self.cluster.nodes, &context.site, &cloud) {
            Some(unlaunchable) => Err(Diagnostic::new(unlaunchable)),
            None => Ok(self),
        }
    }
}

fn not_generated(errors: &[slurmconf::Error], context: &Context<'_>) -> Diagnostic {
    let diagnostic = Diagnostic::from_errors(errors);
    let unknown = errors.iter().filter_map(slurmconf::Error::unknown_shape);
    let mut unknown = unknown.peekable();
    if unknown.peek().is_none() {
        return diagnostic;
    }
    let help: BTreeSet<_> = unknown.map(|name| context.settings.cloud.shape_help(name)).collect();
    if let [Some(help)] = help.into_iter().collect::<Vec<_>>()[..] {
        return diagnostic.with_help(help);
    }
    diagnostic.with_help(
        "a shape that is not built in goes into a file that --shapes or shapes_file names: `VM.My.8: {memory: 60000, \
         cores_per_socket: 8}`",
    )
}

fn memory(context: &Context<'_>, citc: bool) -> MemoryPolicy {
    if citc { context.settings.cloud.citc_memory() } else { MemoryPolicy::default() }
}

fn limits(path: &Path, context: &Context<'_>) -> Result<Limits, Diagnostic> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                "make it and its directory readable for this user, or name another with --limits"
            }
            _ => "write one with a line such as `VM.Standard2.1: {1: 10}`, or name another with --limits",
        };
        Diagnostic::new(format!("cannot read {}: {error}; {remedy}", path.display()))
    })?;
    let (limits, errors) = Limits::read_all(&path.display().to_string(), &text);
    if !errors.is_empty() {
        return Err(Diagnostic::from_errors(&errors).with_help(
            "an entry is `VM.Standard2.1: {1: 10}`, `m1.large: 10` or `name: {shape: m1.large, min: 2, max: 10}`",
        ));
    }
    let (management, text) =
        named(context, context.settings.paths.management.as_deref(), MANAGEMENT)?;
    match text {
        Some(text) => {
            let management = ManagementNode::read(&management.display().to_string(), &text);
            Ok(limits.without(&management?))
        }
        None => Ok(limits),
    }
}

/// The built-in shapes or those that the cloud lists, overridden by the operator's.
async fn shapes(sources: &Sources, context: &Context<'_>) -> Result<Shapes, Diagnostic> {
    let cloud = context.cloud.describe();
    let mut shapes = match built_in_shapes(&cloud) {
        Some(shapes) => shapes,
        None => known_shapes(&context.cloud.shapes().await?, &cloud),
    };
    let (path, text) = match &sources.shapes {
        Some(path) => (path.clone(), Some(wiring::read(path)?)),
        None => named(context, context.settings.paths.shapes.as_deref(), SHAPES)?,
    };
    if let Some(text) = text {
        let file = path.display().to_string();
        let read = match sources.style {
            StyleName::Citc => shapes.read_as_citc(&file, &text),
            StyleName::Folded | StyleName::NodeGroups => shapes.read(&file, &text),
        };
        read?;
    }
    Ok(shapes)
}

/// Reads a file. A configured one must exist, one in its default place need not.
fn named(
    context: &Context<'_>,
    name: Option<&str>,
    usual: &str,
) -> Result<(PathBuf, Option<String>), Diagnostic> {
    let path = context.bootstrap.environment.expand(name.unwrap_or(usual));
    let is_missing =
        || matches!(std::fs::metadata(&path), Err(error) if error.kind() == ErrorKind::NotFound);
    let text = if name.is_none() && is_missing() { None } else { Some(wiring::read(&path)?) };
    Ok((path, text))
}

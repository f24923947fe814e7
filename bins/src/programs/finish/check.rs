//! Is everything in place? Each point is said with what to do about it; nothing is written.

use super::inputs::Inputs;
use crate::args::Common;
use crate::context::Context;
use crate::output::{Colour, chain};
use crate::process::{SOME_FAILED, WELL};
use cloud_core::{ImageFilter, InstanceFilter};
use serde_json::json;
use slurmconf::{Config, Markers};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Nodes of most clouds take longer than this to come.
const SHORT: Duration = Duration::from_mins(2);

/// What was found about one point.
enum Point {
    Well(String),
    /// It works, and could be better.
    Odd(String),
    Wrong(String),
}

use Point::{Odd, Well, Wrong};

/// Checks everything and says what it found.
pub(super) async fn all(context: &Context, common: &Common, inputs: &Inputs, new: &str) -> u8 {
    let mut points = vec![Well("configuration and limits are readable".to_owned())];
    points.extend(cloud(context).await);
    points.push(quota(context, inputs).await);
    points.extend(power(&context.slurm.config));
    points.push(section(inputs, new));
    let wrong = points.iter().any(|point| matches!(point, Wrong(_)));
    print(context, common, &points);
    if wrong { SOME_FAILED } else { WELL }
}

fn print(context: &Context, common: &Common, points: &[Point]) {
    let parts = points.iter().map(|point| match point {
        Well(text) => (Colour::Green, "ok", text),
        Odd(text) => (Colour::Yellow, "odd", text),
        Wrong(text) => (Colour::Red, "wrong", text),
    });
    if common.json {
        let all = parts.map(|(_, state, text)| json!({"state": state, "what": text}));
        context.output.print(json!(all.collect::<Vec<_>>()));
        return;
    }
    for (colour, state, text) in parts {
        let state = context.output.paint(colour, format_args!("{state:<5}"));
        context.output.print(format_args!("{state} {text}"));
    }
}

async fn cloud(context: &Context) -> Vec<Point> {
    let ours = InstanceFilter::tagged(context.site.identity.tags());
    let listed = match context.cloud.list(&ours).await {
        Ok(machines) => {
            Well(format!("the cloud answers: {} machines of this cluster", machines.len()))
        }
        Err(error) => return vec![Wrong(format!("the cloud does not answer: {}", chain(&error)))],
    };
    let mut points = vec![listed];
    if context.site.identity.is_by_name() {
        points.push(Odd("no cluster_id: machines are told by name alone, and two clusters in one compartment would \
            take each other's; set cluster_id".to_owned()));
    }
    points.push(image(context).await);
    points.extend(subnet(context));
    points
}

/// Where new machines are to be; an OpenStack has networks, which it looks up by itself.
fn subnet(context: &Context) -> Option<Point> {
    let subnet = context.site.subnet.as_ref()?;
    Some(match &context.no_subnet {
        None => Well(format!("subnet {subnet}")),
        Some(why) => Wrong(why.clone()),
    })
}

async fn image(context: &Context) -> Point {
    let tags = context.site.identity.id().map(|id| [("cluster", id)].into());
    let filter = match (&context.site.image, tags) {
        (None, Some(tags)) => ImageFilter { tags, name: None },
        _ => ImageFilter::default(),
    };
    let images = match context.cloud.images(&filter).await {
        Ok(images) => images,
        Err(error) => return Wrong(format!("images cannot be listed: {}", chain(&error))),
    };
    match &context.site.image {
        Some(id) if images.iter().any(|image| image.id == *id && image.available) => {
            Well(format!("image {id}"))
        }
        Some(id) => Wrong(format!("there is no image {id}, or it is not ready; change image_id")),
        None => match images.iter().find(|image| image.available) {
            Some(image) => {
                Well(format!("image {} ({}), the newest of this cluster", image.name, image.id))
            }
            None => Wrong("no image has this cluster's tag; set image_id, or tag one".to_owned()),
        },
    }
}

/// Whether the cloud would allow all nodes at once.
async fn quota(context: &Context, inputs: &Inputs) -> Point {
    let nodes: usize = inputs.cluster.nodes.iter().map(|node| node.names.len()).sum();
    let limits = match context.cloud.limits().await {
        Ok(limits) => limits,
        Err(error) => return Odd(format!("limits of the cloud cannot be read: {}", chain(&error))),
    };
    let instances = limits.iter().find(|limit| limit.name == "instances" && limit.zone.is_none());
    match instances.and_then(|limit| limit.most) {
        Some(most) if most < u64::try_from(nodes).unwrap_or(u64::MAX) => Odd(format!(
            "limits.yaml asks for {nodes} nodes, and the cloud allows {most} machines; the rest will wait"
        )),
        Some(most) => Well(format!("{nodes} nodes, and the cloud allows {most} machines")),
        None => Well(format!("{nodes} nodes; the cloud has {} limits", limits.len())),
    }
}

/// Slurm's own parameters.
fn power(config: &Config) -> Vec<Point> {
    let power = &config.power;
    let mut points = Vec::new();
    let programs = [
        ("ResumeProgram", &power.resume_program, true),
        ("SuspendProgram", &power.suspend_program, true),
        ("ResumeFailProgram", &power.resume_fail_program, false),
    ];
    for (key, path, needed) in programs {
        points.push(match path {
            Some(setting) => program(key, config.program(setting)),
            None if needed => Wrong(format!("slurm.conf has no {key}; see examples/slurm.conf")),
            None => Wrong(format!(
                "slurm.conf has no {key}: the machine of a node that never comes up would run for ever; \
                 {key}=/usr/local/bin/startnode-failed"
            )),
        });
    }
    points.push(reboot(config));
    if power.resume_timeout < SHORT {
        points.push(Odd(format!(
            "ResumeTimeout is {} s; machines of most clouds take longer to boot: ResumeTimeout=600",
            power.resume_timeout.as_secs()
        )));
    }
    if !power.slurmctld_parameters.iter().any(|word| word == "idle_on_node_suspend") {
        points.push(Odd(
            "SlurmctldParameters lacks idle_on_node_suspend: nodes that failed stay down"
                .to_owned(),
        ));
    }
    if !power.is_on() {
        points.push(Wrong(
            "power saving is off: set SuspendTime, SuspendProgram and ResumeProgram".to_owned(),
        ));
    }
    points
}

fn reboot(config: &Config) -> Point {
    match &config.power.reboot_program {
        Some(setting) => program("RebootProgram", config.program(setting)),
        None => Odd(
            "slurm.conf has no RebootProgram, so that nodes get a new image only when they start: \
             RebootProgram=/usr/local/bin/rebuild"
                .to_owned(),
        ),
    }
}

/// slurmctld switches power saving off without a word if others may write to its programs.
fn program(key: &str, command: &str) -> Point {
    let path = command.split_whitespace().next().unwrap_or(command);
    match std::fs::metadata(Path::new(path)) {
        Err(error) => Wrong(format!("{key}={path}: {error}")),
        Ok(found) if found.permissions().mode() & 0o022 != 0 => Wrong(format!(
            "{key}={path} can be written by others, and slurmctld will not run it: chmod go-w {path}"
        )),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            Wrong(format!("{key}={path} cannot be executed: chmod +x {path}"))
        }
        Ok(_) => Well(format!("{key}={path}")),
    }
}

fn section(inputs: &Inputs, new: &str) -> Point {
    let path = inputs.path.display();
    let old = inputs.document.section(Markers::NODES).unwrap_or_default();
    let writable = std::fs::OpenOptions::new().append(true).open(&inputs.path);
    match writable {
        Err(error) => Wrong(format!("{path} cannot be written: {error}")),
        Ok(_) if old == new => Well(format!("{path} is up to date")),
        Ok(_) => Well(format!("{path} will change; finish --dry-run shows how")),
    }
}

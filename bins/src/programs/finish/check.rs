//! Is everything in place? Each point is said with what to do about it; nothing is written.

mod calls;
mod fallback;
mod files;
mod images;
mod names;
mod places;
mod quota;
mod rate;
mod told;
mod variables;

use super::inputs::{self, Inputs};
use crate::args::Common;
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::output::{Colour, chain};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring;
use cloud_core::InstanceFilter;
use nix::unistd::getuid;
use provision::conf::{MarkedFile, missing_gres, unlaunchable};
use serde_json::json;
use slurmconf::{Config, SlurmVersion, SuspendTime};
use slurmctl::Controller as _;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Nodes of most clouds take longer than this to come.
const SHORT: Duration = Duration::from_mins(2);

/// The oldest Slurm that knows all that it is told.
const OLDEST: SlurmVersion = SlurmVersion::new(22, 5);

/// What was found about one point.
pub(super) enum Point {
    Well(String),
    /// It works, and could be better.
    Odd(String),
    Wrong(String),
}

use Point::{Odd, Well, Wrong};

/// What would stand between the markers.
pub(super) struct New {
    pub(super) section: String,
    /// True if slurmctld would be told.
    pub(super) tells: bool,
}

/// True where Slurm starts and stops no nodes, and nobody wants it to: it has nodes rebuilt, as StackHPC's appliance does.
pub(super) fn only_rebuilds(context: &Context, limits: &Path) -> bool {
    let power = &context.slurm.config.power;
    power.reboot_program.is_some()
        && power.resume_program.is_none()
        && power.suspend_program.is_none()
        && context.slurm.config.cloud_nodes().is_empty()
        && !limits.exists()
}

/// Checks everything and says what it found; `new` is what would stand between the markers, if there is to be anything.
pub(super) async fn all(
    context: &Context,
    common: &Common,
    (inputs, new): (Option<&Inputs>, Option<&Result<New, Diagnostic>>),
    slurmctld: Option<Point>,
) -> u8 {
    let mut points = configuration(context, new);
    points.extend(slurmctld);
    points.extend(cloud(context, inputs).await);
    let nodes = inputs.map(|inputs| &inputs.cluster.nodes[..]).unwrap_or_default();
    let rules = wiring::launch_rules(&context.settings);
    points.extend(unlaunchable(nodes, &context.site, rules).map(Wrong));
    points.extend(names::point(&context.settings, nodes));
    if let Some(Inputs { sizes: (shapes, policy), .. }) = inputs {
        points.extend(fallback::points(nodes, &context.settings.fallback, (shapes, *policy)));
    }
    if let (Some(inputs), None) = (inputs, &context.unreachable) {
        points.extend(limits(context, inputs).await);
        points.extend(places(context, inputs).await);
    }
    let gres = inputs.and_then(|inputs| missing_gres(&inputs.cluster, &context.slurm.config));
    points.extend(gres.map(Wrong));
    match new {
        Some(_) => points.extend(power(&context.slurm.config)),
        None => points.push(reboot(&context.slurm.config)),
    }
    points.extend(told::point(&context.slurm).await);
    points.extend(context.hidden().map(Wrong));
    points.extend(calls::configuration(&context.slurm.config, common));
    points.extend(variables::points(&context.settings, &context.environment));
    points.extend(files::points(context, common));
    if let (Some(inputs), Some(Ok(new))) = (inputs, new) {
        points.push(section(&inputs.marked, new));
    }
    let wrong = points.iter().any(|point| matches!(point, Wrong(_)));
    print(context, common, &points);
    if wrong { SOME_FAILED } else { SUCCESS }
}

/// Whether slurmctld is there. One that is not is asked nothing more: each answer would be waited for.
pub(super) async fn slurmctld(context: &mut Context) -> Option<Point> {
    // Why there is no scontrol is said elsewhere.
    let version = context.slurm.controller.version();
    if context.slurm.controller.ping().await.ok()? {
        return Some(if version < OLDEST {
            Wrong(format!(
                "Slurm {version} is too old to be given nodes back: 22.05 or newer is needed"
            ))
        } else {
            Well(format!("slurmctld is up: {version}"))
        });
    }
    context.slurm.controller = wiring::nobody(version);
    Some(Odd(
        "slurmctld does not answer, so that nodes with jobs cannot be told from others: systemctl status slurmctld"
            .to_owned(),
    ))
}

/// What can be read, and what is wrong with what cannot.
fn configuration(context: &Context, new: Option<&Result<New, Diagnostic>>) -> Vec<Point> {
    let unready = inputs::unready(context);
    let mut points: Vec<Point> = context.unread.iter().cloned().chain(unready).map(Wrong).collect();
    match new {
        None => points.push(Well(
            "configuration is readable; slurm.conf has no elastic nodes, and only what rebuild needs is looked at".to_owned(),
        )),
        Some(Ok(_)) => points.push(Well("configuration and limits are readable".to_owned())),
        Some(Err(diagnostic)) => {
            let mut diagnostics = diagnostic.messages().to_vec();
            // It may be another that was found first.
            let unmarked = context.slurm.marked_file().err();
            diagnostics.extend(unmarked.iter().flat_map(Diagnostic::messages).cloned());
            diagnostics.dedup();
            // Why there is no cloud is a point of its own.
            let away = context.unreachable.as_ref().map(Diagnostic::to_string);
            diagnostics.retain(|text| away.as_ref().is_none_or(|away| !text.contains(away)));
            points.extend(diagnostics.into_iter().map(Wrong));
        }
    }
    points
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

async fn cloud(context: &Context, inputs: Option<&Inputs>) -> Vec<Point> {
    if let Some(away) = &context.unreachable {
        return vec![Wrong(unanswered(away))];
    }
    let named = context.named.iter().map(|found| match found {
        Ok(text) => Well(text.clone()),
        Err(diagnostic) => Wrong(diagnostic.to_string()),
    });
    let ours = InstanceFilter::tagged(context.site.identity.tags());
    let mut points = Vec::new();
    match context.cloud.list(&ours).await {
        Ok(machines) => {
            // A cloud lists those that are gone for some hours.
            let count = machines.iter().filter(|machine| machine.state.is_live()).count();
            points.push(Well(format!("the cloud answers: {count} machines of this cluster")));
            if context.site.identity.is_by_name() {
                points.push(Odd("no cluster_id: machines are told by name alone, and two clusters in one compartment \
                    would take each other's; set cluster_id".to_owned()));
            }
            points.extend(images::default(context, inputs).await);
            points.extend(images::of_nodes(context, inputs).await);
        }
        Err(error) => {
            points.push(Wrong(unanswered(&Diagnostic::from_cloud(&error))));
        }
    }
    points.extend(named);
    points
}

/// A cloud that says no, or that we do not even ask, is not one that does not answer.
fn unanswered(diagnostic: &Diagnostic) -> String {
    if diagnostic.is_transient() {
        format!("the cloud does not answer: {diagnostic}")
    } else {
        diagnostic.to_string()
    }
}

/// Whether the cloud would allow all nodes at once.
async fn limits(context: &Context, inputs: &Inputs) -> Vec<Point> {
    let limits = match context.cloud.limits().await {
        Ok(limits) => limits,
        Err(error) => {
            return vec![Odd(format!("limits of the cloud cannot be read: {}", chain(&error)))];
        }
    };
    let asked = limits.iter().any(|limit| limit.name == quota::MEMORY);
    let shapes = if asked { context.cloud.shapes().await } else { Ok(Vec::new()) };
    let (shapes, nodes) = (shapes.unwrap_or_default(), &inputs.cluster.nodes);
    quota::points(&limits, &shapes, nodes, &context.site)
}

/// Whether the cloud has what the nodes want where they want it.
async fn places(context: &Context, inputs: &Inputs) -> Vec<Point> {
    let nodes = &inputs.cluster.nodes;
    if nodes.iter().all(|node| node.zone().is_none()) && context.site.fallback.is_empty() {
        return Vec::new();
    }
    match context.cloud.shapes().await {
        Ok(shapes) => places::points(&shapes, nodes, &context.site),
        Err(error) => vec![Odd(format!("shapes cannot be listed: {}", chain(&error)))],
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
            None if needed => {
                Wrong(format!("slurm.conf has no {key}; finish --print-power prints what it needs"))
            }
            None => Wrong(format!(
                "slurm.conf has no {key}: the machine of a node that never comes up would run for ever; \
                 {key}=/usr/local/bin/startnode-failed"
            )),
        });
    }
    points.push(reboot(config));
    let times = config.resume_timeouts(&config.cloud_nodes());
    if *times.start() < SHORT {
        points.push(Odd(format!(
            "ResumeTimeout is {} s; machines of most clouds take longer to boot: ResumeTimeout=600",
            times.start().as_secs()
        )));
    }
    points.extend(rate::point(config));
    if !power.slurmctld_parameters.iter().any(|word| word == "idle_on_node_suspend") {
        points.push(Odd(
            "SlurmctldParameters lacks idle_on_node_suspend, and nodes that failed stay down: add the word to that line"
                .to_owned(),
        ));
    }
    points.extend(odd_time(config));
    if !config.has_power_saving() {
        points.push(Wrong(
            "power saving is off: set SuspendTime, SuspendProgram and ResumeProgram".to_owned(),
        ));
    }
    points
}

/// A time with a unit or a fraction, of which slurmctld reads the digits alone.
fn odd_time(config: &Config) -> Option<Point> {
    let said = config.get("SuspendTime")?;
    let SuspendTime::Seconds(seconds) = config.power.suspend_time else {
        return None;
    };
    let is_plain = said.bytes().all(|byte| byte.is_ascii_digit());
    (!is_plain).then(|| {
        Odd(format!(
            "SuspendTime={said} is {seconds} s to slurmctld, which reads no further than the digits: SuspendTime={seconds}, or \
             what was meant, in seconds"
        ))
    })
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

/// What is wrong with the programs that slurm.conf names, a sentence for each.
pub(super) fn programs(config: &Config) -> Vec<String> {
    let power = &config.power;
    let all = [
        ("ResumeProgram", &power.resume_program),
        ("SuspendProgram", &power.suspend_program),
        ("ResumeFailProgram", &power.resume_fail_program),
        ("RebootProgram", &power.reboot_program),
    ];
    let points = all.into_iter().filter_map(|(key, setting)| {
        setting.as_ref().map(|setting| program(key, config.program(setting)))
    });
    let wrong = |point| match point {
        Wrong(text) => Some(text),
        Well(_) | Odd(_) => None,
    };
    points.filter_map(wrong).collect()
}

/// slurmctld switches power saving off without a word if others may write to its programs.
fn program(key: &str, command: &str) -> Point {
    let path = command.split_whitespace().next().unwrap_or(command);
    match std::fs::metadata(Path::new(path)) {
        Err(error) => Wrong(format!(
            "{key}={path}: {error}; install it there, or name where it is: finish --print-power"
        )),
        Ok(found) if found.permissions().mode() & 0o022 != 0 => Wrong(format!(
            "{key}={path} can be written by others, and slurmctld will not run it: chmod go-w {path}"
        )),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            Wrong(format!("{key}={path} cannot be executed: chmod +x {path}"))
        }
        Ok(_) => match calls::misplaced(key, command) {
            Some(misplaced) => Wrong(misplaced),
            None => Well(format!("{key}={path}")),
        },
    }
}

fn section(marked: &MarkedFile, new: &New) -> Point {
    let path = marked.path.display();
    let old = marked.section().unwrap_or_default();
    let is_same = old == new.section;
    let will = if is_same && new.tells {
        format!("{path} is up to date, but slurmctld was not told of what it says: finish tells it")
    } else if is_same {
        format!("{path} is up to date")
    } else {
        format!("{path} will change; finish --dry-run shows how")
    };
    match files::writable(&marked.path) {
        Ok(()) if is_same && new.tells => Odd(will),
        Ok(()) => Well(will),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !getuid().is_root() => {
            Odd(format!("{will}; it is not ours to write, so finish is for root: sudo finish"))
        }
        Err(error) => Wrong(format!(
            "{path} cannot be written: {error}; see mount and lsattr, and let it be written"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_that_are_ten_seconds_went_unsaid() {
        let cases = [("10m", true), ("600.5", true), ("0600", false), ("infinite", false)];
        for (time, odd) in cases {
            let point = odd_time(&Config::parse(&format!("SuspendTime={time}\n")).unwrap());
            assert_eq!(matches!(point, Some(Odd(_))), odd, "{time}");
        }
    }

    #[test]
    fn power_saving_of_one_partition_was_said_to_be_off() {
        let programs = "SuspendProgram=/bin/true\nResumeProgram=/bin/true\n";
        for (time, off) in [("600", false), ("INFINITE", true)] {
            let text = format!("{programs}PartitionName=burst Nodes=ALL SuspendTime={time}\n");
            let points = power(&Config::parse(&text).unwrap());
            let said = |point: &Point| matches!(point, Wrong(text) if text.contains("is off"));
            assert_eq!(points.iter().any(said), off, "{time}");
        }
    }
}

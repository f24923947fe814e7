//! Whether slurmctld runs with the parameters that slurm.conf has by now.

use super::Point::{self, Odd};
use crate::wiring::Slurm;
use slurmconf::{Config, SlurmVersion, SuspendTime};
use slurmctl::{Controller as _, ControllerConfig};
use std::collections::BTreeSet;
use std::time::Duration;

/// What was written since slurmctld last read its file: each line is well, and none of them counts yet.
pub(super) async fn point(slurm: &Slurm) -> Option<Point> {
    let running = slurm.controller.config().await.ok()?;
    let version = slurm.controller.version();
    let differing = differing(&slurm.config, &running, version);
    // Before 23.11 a reconfigure is the end of a slurmctld whose nodes have changed, too.
    let remedy = if version.reconfigures_nodes() {
        "scontrol reconfigure"
    } else {
        "systemctl restart slurmctld, or scontrol reconfigure if the nodes are as they were"
    };
    (!differing.is_empty()).then(|| {
        Odd(format!(
            "slurmctld does not run with what {} says of {}: {remedy}",
            slurm.path.display(),
            differing.join(", ")
        ))
    })
}

/// The parameters of ours that slurmctld has otherwise than the file.
fn differing(
    file: &Config,
    running: &ControllerConfig,
    version: SlurmVersion,
) -> Vec<&'static str> {
    let power = &file.power;
    let program = |name, said: &Option<String>| (name, running.get(name) == said.as_deref());
    let idle = match power.suspend_time {
        SuspendTime::Never => None,
        SuspendTime::Seconds(seconds) => Some(Duration::from_secs(u64::from(seconds))),
    };
    let rate = running.get("ResumeRate").and_then(|rate| rate.split_whitespace().next());
    let words = |name| (words(file.get(name)), words(running.get(name)));
    let parameters = words("SlurmctldParameters");
    let (said, has) = words("PrivateData");
    // The one word of it that is ours.
    let hides = said.contains("cloud") && !has.contains("cloud");
    let all = [
        program("ResumeProgram", &power.resume_program),
        program("SuspendProgram", &power.suspend_program),
        program("ResumeFailProgram", &power.resume_fail_program),
        program("RebootProgram", &power.reboot_program),
        ("SuspendTime", running.suspend_time() == idle),
        ("ResumeTimeout", running.resume_timeout() == Some(power.resume_timeout)),
        ("ResumeRate", rate.is_none_or(|rate| rate == power.resume_rate.to_string())),
        ("SlurmctldParameters", parameters.0 == parameters.1),
        ("PrivateData", !(hides && version.needs_cloud_parameters())),
    ];
    all.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// The words of a list, in any order.
fn words(list: Option<&str>) -> BTreeSet<String> {
    let words = list.unwrap_or_default().split(',').map(|word| word.trim().to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What slurmctld of CitC 6 says.
    const RUNNING: &str = "\
ResumeProgram           = /usr/local/bin/startnode
SuspendProgram          = /usr/local/bin/stopnode
ResumeFailProgram       = (null)
RebootProgram           = (null)
SuspendTime             = 900 sec
ResumeTimeout           = 600 sec
ResumeRate              = 20 nodes/min
SlurmctldParameters     = idle_on_node_suspend,cloud_dns
PrivateData             = none
";

    #[test]
    fn lines_that_slurmctld_had_not_read_were_all_well() {
        let same = "ResumeProgram=/usr/local/bin/startnode\nSuspendProgram=/usr/local/bin/stopnode\nSuspendTime=900\n\
            ResumeTimeout=600\nResumeRate=20\nSlurmctldParameters=cloud_dns,Idle_on_node_suspend\n";
        let (old, new) = (SlurmVersion::new(22, 5), SlurmVersion::new(24, 11));
        for (line, version, expected) in [
            ("", old, &[][..]),
            ("ResumeFailProgram=/usr/local/bin/startnode-failed", old, &["ResumeFailProgram"]),
            (
                "RebootProgram=/usr/local/bin/rebuild\nResumeRate=0",
                old,
                &["RebootProgram", "ResumeRate"],
            ),
            ("SuspendTime=NONE\nResumeTimeout=601", old, &["SuspendTime", "ResumeTimeout"]),
            ("SlurmctldParameters=cloud_dns", old, &["SlurmctldParameters"]),
            ("PrivateData=cloud", old, &["PrivateData"]),
            // It shows elastic nodes anyway, and may not repeat the word.
            ("PrivateData=cloud", new, &[]),
            ("PrivateData=all", old, &[]),
        ] {
            let file = Config::parse(&format!("{same}{line}\n")).unwrap();
            let running = ControllerConfig::parse(RUNNING);
            assert_eq!(differing(&file, &running, version), expected, "{line}");
        }
    }
}

//! Reasons for which Slurm itself keeps a job waiting, whatever the cloud has.

use super::words::Words;
use crate::world::Roster;
use slurmconf::PartitionDef;
use slurmctl::Job;

/// Why Slurm keeps the job waiting, if its nodes have nothing to do with it.
pub(super) fn of(job: &Job, conf: &Roster<'_>) -> Option<Words> {
    let reason = job.reason.as_deref()?;
    // Slurm adds details behind a comma, and some releases write blanks as underscores.
    let word = reason.split([',', '(']).next().unwrap_or(reason).trim();
    by_partition(word, job, conf)
        .or_else(|| by_owner(word, job))
        .or_else(|| by_request(word, job))
        .or_else(|| by_power(word, conf))
        .or_else(|| by_account(word))
}

/// Limits of the job's partition.
fn by_partition(word: &str, job: &Job, conf: &Roster<'_>) -> Option<Words> {
    let name = job.partition.as_str();
    let def = conf.config().partitions.iter().find(|partition| partition.name == name);
    let limit = |key: &str| def.and_then(|def| attribute(def, key));
    let words = match word {
        "PartitionDown" => Words::new(
            "partition_down",
            format!("partition {name} is down"),
            format!(
                "Run `scontrol update partitionname={name} state=up`, or submit to another partition."
            ),
        ),
        "PartitionInactive" => Words::new(
            "partition_inactive",
            format!("partition {name} is inactive and takes no jobs"),
            format!(
                "Run `scontrol update partitionname={name} state=up`, or submit to another partition."
            ),
        ),
        "PartitionTimeLimit" => {
            let wants = job.time_limit.as_deref().unwrap_or("no limit");
            let most = limit("MaxTime").unwrap_or_else(|| "less".to_owned());
            Words::new(
                "partition_time_limit",
                format!("its time limit of {wants} is above MaxTime={most} of partition {name}"),
                format!(
                    "Run `scontrol update jobid={} timelimit={most}`, or raise MaxTime in slurm.conf.",
                    job.id
                ),
            )
        }
        "PartitionNodeLimit" => node_limit(job, limit("MaxNodes"), limit("MinNodes"), conf),
        "PartitionConfig" => larger_than_partition(job, conf).unwrap_or_else(|| {
            Words::new(
                "partition_config",
                format!("partition {name} does not allow what it asks for"),
                format!(
                    "Compare `scontrol show job {}` with `scontrol show partition {name}`.",
                    job.id
                ),
            )
        }),
        _ => return None,
    };
    Some(words)
}

/// The job asks for more or fewer nodes than its partition allows.
fn node_limit(job: &Job, most: Option<String>, least: Option<String>, conf: &Roster<'_>) -> Words {
    let (asks, name) = (nodes(job.node_count), &job.partition);
    let above = |most: &String| most.parse().is_ok_and(|most: u32| job.node_count > most);
    if let Some(most) = most.filter(above) {
        let clause = format!("it asks for {asks}, and partition {name} allows MaxNodes={most}");
        let remedy = format!(
            "Ask for at most {most} nodes, or raise MaxNodes of partition {name} in slurm.conf."
        );
        return Words::new("partition_node_limit", clause, remedy);
    }
    if let Some(larger) = larger_than_partition(job, conf) {
        return larger;
    }
    let least = least.map(|least| format!(" (MinNodes={least})")).unwrap_or_default();
    Words::new(
        "partition_node_limit",
        format!("partition {name} does not allow {asks}{least}"),
        format!("Ask for as many nodes as `scontrol show partition {name}` allows."),
    )
}

/// The job asks for more nodes than its partition has.
pub(super) fn larger_than_partition(job: &Job, conf: &Roster<'_>) -> Option<Words> {
    let name = &job.partition;
    let has = conf.partition(name)?.len();
    let wants = usize::try_from(job.node_count).unwrap_or(usize::MAX);
    (wants > has).then(|| {
        Words::new(
            "larger_than_partition",
            format!("it asks for {}, and partition {name} has {has}", nodes(job.node_count)),
            format!("Ask for at most {has}, or raise the count in limits.yaml and run `resize`."),
        )
    })
}

/// What the owner or an administrator has asked for.
fn by_owner(word: &str, job: &Job) -> Option<Words> {
    let id = job.id;
    let words = match word {
        "JobHeldUser" => {
            Words::new("held", "its owner holds it", format!("Run `scontrol release {id}`."))
        }
        "JobHeldAdmin" => Words::new(
            "held",
            "an administrator holds it",
            format!("Ask the administrator, who runs `scontrol release {id}`."),
        ),
        "JobHoldMaxRequeue" | "launch failed requeued held" | "launch_failed_requeued_held" => {
            Words::new(
                "held",
                "Slurm holds it because it failed to start too often",
                format!("Find the failure in slurmctld's log, then run `scontrol release {id}`."),
            )
        }
        "Dependency" => {
            let on = job.dependency.as_deref().unwrap_or("other jobs");
            Words::new(
                "dependency",
                format!("it depends on {on}"),
                format!("Wait for that job, or run `scontrol update jobid={id} dependency=`."),
            )
        }
        "DependencyNeverSatisfied" => Words::new(
            "dependency",
            "the job that it depends on has failed, so it never starts",
            format!("Run `scancel {id}` or `scontrol update jobid={id} dependency=`."),
        ),
        _ => return None,
    };
    Some(words)
}

/// What the job asks for besides nodes.
fn by_request(word: &str, job: &Job) -> Option<Words> {
    let id = job.id;
    let words = match word {
        "BadConstraints" => {
            let asked = job.features.as_ref().map(|features| format!(" {features}"));
            Words::new(
                "constraints",
                format!("no node has its constraint{}", asked.unwrap_or_default()),
                "Correct --constraint, or add the feature to nodes in slurm.conf.",
            )
        }
        "Licenses" => {
            Words::new("licenses", "its licences are in use", "Wait, or see `scontrol show lic`.")
        }
        "Reservation" | "ReservationDeleted" => Words::new(
            "reservation",
            "its reservation has not begun or is gone",
            "See `scontrol show reservation`.",
        ),
        "JobArrayTaskLimit" => Words::new(
            "array_limit",
            "as many tasks of its array run as it allows",
            format!("Wait, or run `scontrol update jobid={id} arraytaskthrottle=0`."),
        ),
        _ => return None,
    };
    Some(words)
}

/// The limit of Slurm's own on nodes that are powered up.
fn by_power(word: &str, conf: &Roster<'_>) -> Option<Words> {
    // https://github.com/SchedMD/slurm/blob/master/src/common/job_state_reason.c: WAIT_MAX_POWERED_NODES
    if word != "MaxPoweredUpNodes" {
        return None;
    }
    let set = conf.config().power.slurmctld_parameters.iter();
    let mut set = set.filter_map(|value| value.strip_prefix("max_powered_nodes="));
    let most = set.next().map(|most| format!(" ({most})")).unwrap_or_default();
    Some(Words::new(
        "max_powered_nodes",
        format!("as many nodes are powered up as max_powered_nodes allows{most}"),
        "Wait until other nodes are idle and power down, or raise `max_powered_nodes` in SlurmctldParameters of slurm.conf.",
    ))
}

/// Limits of an account, a user or a quality of service.
fn by_account(word: &str) -> Option<Words> {
    let of_account = ["Assoc", "QOS", "InvalidQOS", "InvalidAccount", "MaxJobsPer", "Account"];
    of_account.iter().any(|start| word.starts_with(start)).then(|| {
        Words::new(
            "account_limit",
            format!("a limit of its account or QOS is reached ({word})"),
            "See `sacctmgr show assoc` and `sacctmgr show qos`; ask the administrator for more.",
        )
    })
}

/// The value of a partition's attribute.
fn attribute(def: &PartitionDef, key: &str) -> Option<String> {
    if key == "MaxTime" {
        return def.max_time.clone();
    }
    let mut others = def.other.iter();
    others.find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.clone())
}

/// A number of nodes.
pub(super) fn nodes(count: u32) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

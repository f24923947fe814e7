//! Whose jobs ran on which CPUs, for what machines cost.

use crate::world::Roster;
use history::cost::{JobRun, Owner, spread};
use history::millis;
use hostlist::NodeName;
use slurmconf::NodeDef;
use slurmctl::JobRecord;
use std::time::SystemTime;

/// How many CPUs slurm.conf gives a node; 0 if it does not say.
#[must_use]
pub fn cpus(conf: &Roster<'_>, node: &str) -> u32 {
    let def = NodeName::new(node).ok().and_then(|name| conf.get(&name));
    def.map(cpus_of).unwrap_or_default()
}

fn cpus_of(def: &NodeDef) -> u32 {
    let product = || {
        let parts = [def.sockets, def.cores_per_socket, def.threads_per_core];
        let boards = def.sockets_per_board.map(|sockets| sockets * def.boards.unwrap_or(1));
        let [sockets, cores, threads] = parts;
        boards.or(sockets).map(|sockets| sockets * cores.unwrap_or(1) * threads.unwrap_or(1))
    };
    // Without any of them, Slurm takes a node to have one.
    def.cpus.or_else(product).unwrap_or(1)
}

/// The runs of jobs, as Slurm's accounting has them.
#[must_use]
pub fn job_runs(records: &[JobRecord], conf: &Roster<'_>, now: SystemTime) -> Vec<JobRun> {
    let run = |record: &JobRecord| {
        let names: Vec<String> = record.nodes.iter().map(|name| name.to_string()).collect();
        let known: Vec<u32> = names.iter().map(|name| cpus(conf, name)).collect();
        let nodes = names.into_iter().zip(spread(record.cpus, &known)).collect();
        let owner = Owner {
            job: record.id.to_string(),
            user: record.user.clone(),
            account: record.account.clone(),
            partition: record.partition.clone(),
        };
        JobRun {
            owner,
            nodes,
            from: millis(record.start),
            until: millis(record.end.unwrap_or(now)),
        }
    };
    records.iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::Config;

    #[test]
    fn a_node_has_the_cpus_that_slurm_counts() {
        let config = Config::parse(
            "NodeName=a CPUs=8\nNodeName=b Sockets=2 CoresPerSocket=4 ThreadsPerCore=2\n\
             NodeName=c Boards=2 SocketsPerBoard=1 CoresPerSocket=3\nNodeName=d\n",
        );
        let config = config.unwrap();
        let roster = Roster::new(&config);
        assert_eq!(["a", "b", "c", "d", "e"].map(|name| cpus(&roster, name)), [8, 16, 6, 1, 0]);
    }
}

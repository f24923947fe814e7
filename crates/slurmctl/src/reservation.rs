//! Reservations for maintenance.

use crate::argv::{Argv, argv};
use crate::time;
use hostlist::{Hostlist, NodeName};
use std::time::{Duration, SystemTime};

/// What names of reservations of ours begin with; that of the node follows.
const PREFIX: &str = "elastic_maintenance_";

/// A reservation of a node for its maintenance: no job runs there that would last into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The node.
    pub node: NodeName,
    /// Its begin, in whole seconds.
    pub start: SystemTime,
    /// How long it lasts, in whole minutes.
    pub duration: Duration,
}

impl Reservation {
    /// The name of the reservation of a node.
    pub(crate) fn name(node: &NodeName) -> String {
        format!("{PREFIX}{node}")
    }

    pub(crate) fn create(&self) -> Argv {
        let own =
            [format!("nodes={}", self.node), "users=root".into(), "flags=maint,ignore_jobs".into()];
        argv(["create", "reservation"]).into_iter().chain(self.times()).chain(own).collect()
    }

    pub(crate) fn update(&self) -> Argv {
        argv(["update", "reservation"]).into_iter().chain(self.times()).collect()
    }

    fn times(&self) -> [String; 3] {
        let minutes = self.duration.as_secs().div_ceil(60).max(1);
        [
            format!("reservationname={}", Self::name(&self.node)),
            format!("starttime={}", time::print(self.start)),
            format!("duration={minutes}"),
        ]
    }

    pub(crate) fn delete(node: &NodeName) -> Argv {
        argv(["delete", &format!("reservationname={}", Self::name(node))])
    }
}

/// The reservations of ours, of the output of `scontrol show reservation --oneliner`; lines of others are ignored.
pub(crate) fn parse(text: &str) -> Vec<Reservation> {
    text.lines().filter_map(read).collect()
}

fn read(line: &str) -> Option<Reservation> {
    let field = |key: &str| {
        let mut words = line.split(' ');
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    let node = field("ReservationName")?.strip_prefix(PREFIX)?;
    let nodes: Hostlist = field("Nodes")?.parse().ok()?;
    let (start, end) = (time::parse(field("StartTime")?)?, time::parse(field("EndTime")?)?);
    let duration = end.duration_since(start).ok()?;
    let node = NodeName::new(node).ok().filter(|node| nodes.contains(node.as_str()))?;
    Some(Reservation { node, start, duration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_made_and_read_in_slurms_words() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_hours(499_658);
        let node = NodeName::new("n3").unwrap();
        let ours = Reservation { node, start, duration: Duration::from_hours(1) };
        assert_eq!(
            ours.create().join(" "),
            "create reservation reservationname=elastic_maintenance_n3 starttime=2027-01-01T02:00:00 duration=60 nodes=n3 \
             users=root flags=maint,ignore_jobs"
        );
        // As 24.11 prints it.
        let shown = "ReservationName=elastic_maintenance_n3 StartTime=2027-01-01T02:00:00 EndTime=2027-01-01T03:00:00 \
            Duration=01:00:00 Nodes=n3 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS\n\
            ReservationName=other StartTime=2027-01-01T02:00:00 EndTime=2027-01-01T03:00:00 Nodes=n4\n";
        assert_eq!(parse(shown), [ours]);
        assert!(parse("No reservations in the system\n").is_empty());
    }
}

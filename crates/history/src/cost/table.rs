//! Tables of costs, summed by a key.

use super::attribute::{Owner, Share};
use super::calendar::day_name;
use super::money::{Cost, apportion, in_cents, in_units};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The key by which costs are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The job.
    Job,
    /// The user.
    #[default]
    User,
    /// The account.
    Account,
    /// The partition of the job.
    Partition,
    /// The shape and zone of the machine.
    Pool,
    /// The day, in UTC.
    Day,
}

/// An error for an unknown key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no way to sum costs: {0}; use job, user, account, partition, pool or day")]
pub struct UnknownBy(String);

impl By {
    /// All keys.
    pub const ALL: [Self; 6] =
        [Self::Job, Self::User, Self::Account, Self::Partition, Self::Pool, Self::Day];

    /// The name of the key.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::User => "user",
            Self::Account => "account",
            Self::Partition => "partition",
            Self::Pool => "pool",
            Self::Day => "day",
        }
    }

    fn key(self, share: &Share<'_>) -> String {
        let owned = |part: fn(&Owner) -> &String| {
            share.owner.map_or_else(|| "idle".to_owned(), |owner| part(owner).clone())
        };
        match self {
            Self::Job => owned(|owner| &owner.job),
            Self::User => owned(|owner| &owner.user),
            Self::Account => owned(|owner| &owner.account),
            Self::Partition => owned(|owner| &owner.partition),
            Self::Pool => share.machine.pool(),
            Self::Day => day_name(share.day),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for By {
    type Err = UnknownBy;

    fn from_str(text: &str) -> Result<Self, UnknownBy> {
        let found = Self::ALL.into_iter().find(|by| by.as_str() == text);
        found.ok_or_else(|| UnknownBy(text.to_owned()))
    }
}

/// One line of a table of costs, in hundredths of the currency's unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The job, user, account, partition, pool or day; `idle` for idle time.
    pub name: String,
    /// The costs of jobs.
    #[serde(serialize_with = "units")]
    pub jobs: u128,
    /// The costs of idle time.
    #[serde(serialize_with = "units")]
    pub idle: u128,
}

impl Row {
    /// The sum of both, in hundredths.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.jobs + self.idle
    }

    /// The formatted amounts: jobs, idle and total.
    #[must_use]
    pub fn amounts(&self) -> [String; 3] {
        [self.jobs, self.idle, self.total()].map(in_units)
    }
}

/// Amounts in JSON are strings, because not every reader keeps numbers exact.
fn units<S: serde::Serializer>(cents: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&in_units(*cents))
}

/// A table of costs, whose lines add up to its total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The lines, the most expensive first; days in order.
    pub rows: Vec<Row>,
    /// The sum.
    pub total: Row,
}

impl Table {
    /// Sums shares.
    #[must_use]
    pub fn new(shares: &[Share<'_>], by: By) -> Self {
        let mut sums: BTreeMap<String, [Cost; 2]> = BTreeMap::new();
        for share in shares {
            let [jobs, idle] = sums.entry(by.key(share)).or_default();
            *(if share.owner.is_some() { jobs } else { idle }) += share.cost;
        }
        // Round the totals of both columns first, so that they are the same for every key.
        let column =
            |which: fn(&[Cost; 2]) -> Cost| sums.values().map(which).collect::<Vec<Cost>>();
        let (jobs, idle) = (column(|[jobs, _]| *jobs), column(|[_, idle]| *idle));
        let totals = [&jobs, &idle].map(|column| column.iter().copied().sum());
        let totals = in_cents(&totals);
        let total = |column: usize| totals.get(column).copied().unwrap_or_default();
        let total = Row { name: "total".to_owned(), jobs: total(0), idle: total(1) };
        let cents = apportion(&jobs, total.jobs).into_iter().zip(apportion(&idle, total.idle));
        let named = sums.into_keys().zip(cents);
        let mut rows: Vec<Row> =
            named.map(|(name, (jobs, idle))| Row { name, jobs, idle }).collect();
        if by != By::Day {
            // Idle time comes last.
            rows.sort_by_key(|row| (row.name == "idle", std::cmp::Reverse(row.total())));
        }
        Self { rows, total }
    }

    /// Formats the table as CSV, with a header and the total at the end.
    #[must_use]
    pub fn to_csv(&self, by: By) -> String {
        let line = |row: &Row| {
            let [jobs, idle, total] = row.amounts();
            let quoted = row.name.contains(['"', ',', '\n', '\r']);
            let name = row.name.replace('"', "\"\"");
            let quote = if quoted { "\"" } else { "" };
            format!("{quote}{name}{quote},{jobs},{idle},{total}\n")
        };
        let lines: String = self.rows.iter().chain([&self.total]).map(line).collect();
        format!("{by},jobs,idle,total\n{lines}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JobRun, PaidMachine, Prices, attribute};
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn table(by: By) -> String {
        let machine = |node: &str, zone: &str, from: u64| PaidMachine {
            node: node.to_owned(),
            shape: "a".to_owned(),
            zone: Some(zone.to_owned()),
            cpus: 3,
            from,
            until: from + 2 * HOUR,
        };
        let machines = [machine("n1", "1", 0), machine("n2", "2", 23 * HOUR)];
        let run = |job: &str, user: &str, node: &str, from: u64| JobRun {
            owner: Owner {
                job: job.to_owned(),
                user: user.to_owned(),
                account: "physics, main".to_owned(),
                partition: "p".to_owned(),
            },
            nodes: vec![(node.to_owned(), 1000)],
            from,
            until: from + HOUR,
        };
        let runs = [
            run("1", "ada", "n1", 0),
            run("2", "ada", "n2", 24 * HOUR),
            run("3", "bob", "n1", HOUR / 2),
        ];
        let prices = Prices::read("p", "currency: EUR\nshapes: {a: 0.10}\n").unwrap();
        let (shares, _) = attribute(&machines, &runs, &(0..u64::MAX), &prices);
        Table::new(&shares, by).to_csv(by)
    }

    #[test]
    fn every_sum_has_the_same_total() {
        for (by, expected) in [
            (
                By::Job,
                "job,jobs,idle,total\n1,0.04,0.00,0.04\n2,0.03,0.00,0.03\n3,0.03,0.00,0.03\nidle,0.00,0.30,0.30\n",
            ),
            (
                By::User,
                "user,jobs,idle,total\nada,0.07,0.00,0.07\nbob,0.03,0.00,0.03\nidle,0.00,0.30,0.30\n",
            ),
            (
                By::Account,
                "account,jobs,idle,total\n\"physics, main\",0.10,0.00,0.10\nidle,0.00,0.30,0.30\n",
            ),
            (By::Partition, "partition,jobs,idle,total\np,0.10,0.00,0.10\nidle,0.00,0.30,0.30\n"),
            (By::Pool, "pool,jobs,idle,total\na in 1,0.07,0.13,0.20\na in 2,0.03,0.17,0.20\n"),
            (
                By::Day,
                "day,jobs,idle,total\n1970-01-01,0.07,0.23,0.30\n1970-01-02,0.03,0.07,0.10\n",
            ),
        ] {
            assert_eq!(table(by), format!("{expected}total,0.10,0.30,0.40\n"), "{by}");
        }
    }

    #[test]
    fn a_word_for_a_sum_is_read_or_refused() {
        for by in By::ALL {
            assert_eq!(by.as_str().parse(), Ok(by));
        }
        assert!("node".parse::<By>().is_err());
    }
}

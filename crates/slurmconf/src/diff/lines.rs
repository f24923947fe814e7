//! Comparing partitions, node sets and other lines with attributes.

use super::{Change, Values, compare};
use crate::model::{Config, OtherDefinition, PartitionDef};
use std::collections::HashSet;

/// The lines that differ in meaning, as written.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let meant = compare(&lines(old, &Text::MEANT), &lines(new, &Text::MEANT));
    let changed: HashSet<String> = meant.into_iter().map(|change| change.key).collect();
    let written = compare(&lines(old, &Text::WRITTEN), &lines(new, &Text::WRITTEN));
    written.into_iter().filter(|change| changed.contains(&change.key)).collect()
}

/// How lines are converted to text.
struct Text {
    partition: fn(&PartitionDef) -> String,
    other: fn(&OtherDefinition) -> String,
}

impl Text {
    const WRITTEN: Self = Self { partition: ToString::to_string, other: ToString::to_string };
    const MEANT: Self = Self { partition: whole, other: in_order };
}

/// Lines by name. Unlike keys, names are case sensitive: `gpu` and `GPU` are two partitions.
fn lines(config: &Config, text: &Text) -> Values {
    let partitions = config.partitions.iter().map(|partition| {
        (format!("PartitionName={}", partition.name), (text.partition)(partition))
    });
    let sets =
        config.node_sets.iter().map(|set| (format!("NodeSet={}", set.name), set.to_string()));
    let others = config
        .others
        .iter()
        .map(|other| (format!("{}={}", other.kind, other.name), (text.other)(other)));
    let all = partitions.chain(sets).chain(others);
    let mut values = Values::new();
    for (key, value) in all {
        match values.get_mut(&key) {
            // A change in either of two lines with one name counts.
            Some((_, first)) => *first = format!("{first}\n{value}"),
            None => drop(values.insert(key.clone(), (key, value))),
        }
    }
    values
}

/// The line with Slurm's defaults for missing attributes.
fn whole(partition: &PartitionDef) -> String {
    let mut whole = partition.clone();
    for truth in [
        &mut whole.default,
        &mut whole.hidden,
        &mut whole.root_only,
        &mut whole.disable_root_jobs,
        &mut whole.power_down_on_idle,
    ] {
        truth.get_or_insert(false);
    }
    whole.priority_job_factor.get_or_insert(1);
    whole.state.get_or_insert_with(|| "UP".to_owned()).make_ascii_uppercase();
    whole.to_string()
}

/// The line with sorted attributes.
fn in_order(other: &OtherDefinition) -> String {
    let lower = |(key, value): &(String, String)| (key.to_ascii_lowercase(), value.clone());
    let mut ordered = other.clone();
    ordered.attributes = other.attributes.iter().map(lower).collect();
    ordered.attributes.sort();
    ordered.to_string()
}

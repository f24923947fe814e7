//! The kinds of things that are kept, and where each of them is.

use crate::instance::{Life, Record};
use crate::world::World;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;

/// The kinds of things that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Table {
    Instances,
    /// Of an instance that is written down already, what its life has changed.
    Lives,
    Images,
    WorkRequests,
    Tokens,
    ComputeClusters,
    Configurations,
    Pools,
    BootVolumes,
}

impl Table {
    /// All of them: what is missing here is lost when the journal is written anew.
    pub(crate) const ALL: [Self; 9] = [
        Self::Instances,
        Self::Lives,
        Self::Images,
        Self::WorkRequests,
        Self::Tokens,
        Self::ComputeClusters,
        Self::Configurations,
        Self::Pools,
        Self::BootVolumes,
    ];
}

/// A part of a line as it is read: the new form of a thing, or that it is gone.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    table: Table,
    id: String,
    now: Option<Value>,
}

/// The same as it is written, straight from the thing.
#[derive(Serialize)]
struct Written<'a, T> {
    table: Table,
    id: &'a str,
    now: Option<&'a T>,
}

/// Adds the row of a thing to a text. What cannot be written as JSON, which nothing here can be, is
/// as if it had not changed.
fn add<T: Serialize>(text: &mut Vec<u8>, table: Table, id: &str, now: Option<&T>) {
    let before = text.len();
    if serde_json::to_writer(&mut *text, &Written { table, id, now }).is_err() {
        text.truncate(before);
    }
}

/// The things of one kind, by id; whoever shows several sorts them.
pub(crate) type Kept<T> = HashMap<String, T>;

/// The things of a table, whatever they are.
trait Things {
    fn ids(&self) -> Box<dyn Iterator<Item = &str> + '_>;
    fn has(&self, id: &str) -> bool;
    /// Adds a thing as it is now, or that it is gone, to a text.
    fn write(&self, text: &mut Vec<u8>, table: Table, id: &str);
    fn put(&mut self, id: String, row: Option<Value>) -> serde_json::Result<()>;
}

impl<T: Serialize + DeserializeOwned> Things for Kept<T> {
    fn ids(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.keys().map(String::as_str))
    }

    fn has(&self, id: &str) -> bool {
        self.contains_key(id)
    }

    fn write(&self, text: &mut Vec<u8>, table: Table, id: &str) {
        add(text, table, id, self.get(id));
    }

    fn put(&mut self, id: String, row: Option<Value>) -> serde_json::Result<()> {
        match row {
            Some(row) => drop(self.insert(id, serde_json::from_value(row)?)),
            None => drop(self.remove(&id)),
        }
        Ok(())
    }
}

impl World {
    /// The things of a table; lives are a part of instances.
    fn things(&self, table: Table) -> Option<&dyn Things> {
        Some(match table {
            Table::Instances => &self.instances,
            Table::Lives => return None,
            Table::Images => &self.images,
            Table::WorkRequests => &self.work_requests,
            Table::Tokens => &self.tokens,
            Table::ComputeClusters => &self.compute_clusters,
            Table::Configurations => &self.configurations,
            Table::Pools => &self.pools,
            Table::BootVolumes => &self.boot_volumes,
        })
    }

    fn things_mut(&mut self, table: Table) -> Option<&mut dyn Things> {
        Some(match table {
            Table::Instances => &mut self.instances,
            Table::Lives => return None,
            Table::Images => &mut self.images,
            Table::WorkRequests => &mut self.work_requests,
            Table::Tokens => &mut self.tokens,
            Table::ComputeClusters => &mut self.compute_clusters,
            Table::Configurations => &mut self.configurations,
            Table::Pools => &mut self.pools,
            Table::BootVolumes => &mut self.boot_volumes,
        })
    }

    /// True if a table has this thing.
    pub(crate) fn has(&self, table: Table, id: &str) -> bool {
        self.things(table).is_some_and(|things| things.has(id))
    }

    /// Everything there is, table by table.
    pub(crate) fn all_things(&self) -> impl Iterator<Item = (Table, &str)> {
        let tables = Table::ALL.into_iter();
        let tables = tables.filter_map(|table| Some((table, self.things(table)?)));
        tables.flat_map(|(table, things)| things.ids().map(move |id| (table, id)))
    }

    /// Adds a thing as it is now, or that it is gone, to a text.
    pub(crate) fn write_row(&self, text: &mut Vec<u8>, table: Table, id: &str) {
        if let Some(things) = self.things(table) {
            things.write(text, table, id);
        } else if let Some(life) = self.instances.get(id).map(Record::life) {
            add(text, table, id, Some(&life));
        }
    }

    /// Takes over a row of a journal.
    pub(crate) fn put_row(&mut self, row: Row) -> serde_json::Result<()> {
        let Row { table, id, now } = row;
        if let Some(things) = self.things_mut(table) {
            return things.put(id, now);
        }
        let life: Life = serde_json::from_value(now.unwrap_or_default())?;
        if let Some(record) = self.instances.get_mut(&id) {
            record.set_life(life);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_was_missing_from_all_would_be_lost_at_the_next_rewrite() {
        let all: Vec<String> = Table::ALL
            .iter()
            .map(|table| serde_json::to_string(table).unwrap().replace('"', "`"))
            .collect();
        // Whoever reads a word that is none of them is told all that there are.
        let told = serde_json::from_str::<Table>("\"\"").unwrap_err().to_string();
        let (_, told) = told.split_once("expected one of ").unwrap();
        let (told, _) = told.split_once(" at line").unwrap();
        assert_eq!(told.split(", ").collect::<Vec<_>>(), all);
    }
}

//! Keys with two spellings, of which Slurm prefers one wherever it stands.

use super::{features::Features, node::NodeDef, value::number};
use crate::{document::Pair, error::Problem};

/// What a line, or all `DEFAULT` lines so far, say under keys that have two spellings.
#[derive(Clone, Default)]
pub(super) struct Aliases {
    procs: Option<u32>,
    feature: Option<Features>,
    features: Option<Features>,
}

impl Aliases {
    /// Takes an attribute; false if it is none of these.
    pub(super) fn take(&mut self, pair: &Pair<'_>) -> Result<bool, Problem> {
        let features = || Some(Features::from(&*pair.value));
        match pair.key.to_ascii_lowercase().as_str() {
            "procs" => self.procs = Some(number(pair)?),
            "feature" => self.feature = features(),
            "features" => self.features = features(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds what a later `DEFAULT` line says.
    pub(super) fn update(&mut self, later: Self) {
        self.procs = later.procs.or(self.procs);
        self.feature = later.feature.or(self.feature.take());
        self.features = later.features.or(self.features.take());
    }

    /// Gives a node what its line says, or else the defaults.
    ///
    /// `CPUs` even of a default goes before `Procs`, `Feature` before `Features` of the same line.
    pub(super) fn settle(self, defaults: &Self, node: &mut NodeDef) {
        node.cpus = node.cpus.or(self.procs).or(defaults.procs);
        let own = self.feature.or(self.features);
        let default = || defaults.feature.as_ref().or(defaults.features.as_ref()).cloned();
        node.features = own.or_else(default);
    }
}

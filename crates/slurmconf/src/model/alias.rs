//! Keys with two spellings, one of which takes precedence.

use super::{features::Features, node::NodeDef, value::number};
use crate::{document::Pair, error::Problem};

/// The values of such keys in a line, or in all `DEFAULT` lines so far.
#[derive(Clone, Default)]
pub(super) struct Aliases {
    procs: Option<u32>,
    feature: Option<Features>,
    features: Option<Features>,
}

impl Aliases {
    /// Takes an attribute; false if it is another key.
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

    /// Adds the values of a later `DEFAULT` line.
    pub(super) fn update(&mut self, later: Self) {
        self.procs = later.procs.or(self.procs);
        self.feature = later.feature.or(self.feature.take());
        self.features = later.features.or(self.features.take());
    }

    /// Applies these values, or else the defaults, to a node. `CPUs` takes precedence over `Procs`, even as a default;
    /// `Feature` takes precedence over `Features` of the same line.
    pub(super) fn apply(self, defaults: &Self, node: &mut NodeDef) {
        node.cpus = node.cpus.or(self.procs).or(defaults.procs);
        let own = self.feature.or(self.features);
        let default = || defaults.feature.as_ref().or(defaults.features.as_ref()).cloned();
        node.features = own.or_else(default);
    }
}

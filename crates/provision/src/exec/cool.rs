//! Pools that said no.

use super::engine::Engine;
use crate::cooldown::Cooldowns;
use crate::report::Cause;
use crate::site::Pool;
use crate::state::{EventKind, cooldowns};

impl Engine<'_> {
    /// Closes a pool at once, for all nodes of this run and for other runs.
    pub(super) fn cool(&mut self, pool: &Pool, cause: Cause) {
        let (now, pause) = (self.tools.now(), self.site.policies.cooldown);
        self.change_cooldowns(|all| all.close(pool.clone(), cause, now, pause));
        let event = self.tools.event(EventKind::Cooling);
        self.tools.note(&event.because(format!("{pool}: {}", cause.words())));
    }

    /// Changes the cool-downs here and where other runs see them.
    pub(super) fn change_cooldowns(&mut self, change: impl Fn(&mut Cooldowns)) {
        change(&mut self.cooldowns);
        if !cooldowns::change(self.tools.state, change) {
            self.passed.warnings.insert("the cool-downs could not be stored".to_owned());
        }
    }
}

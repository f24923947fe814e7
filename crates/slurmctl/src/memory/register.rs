//! Registration of nodes.

use super::{
    node::{NodeRecord, Power, Reboot, Seconds},
    settings::{Registration, ReturnToService},
    world::World,
};
use tokio::time::Instant;

impl World {
    /// Handles a registration of slurmd, after a boot or later.
    pub(super) fn register(
        &mut self,
        name: &str,
        address: &str,
        boot: Seconds,
        now: Seconds,
    ) -> Registration {
        if self.is_unreachable(Instant::now()) {
            return Registration::Unheard;
        }
        let rule = self.settings.return_to_service;
        let takes_address = self.settings.version.resets_addresses();
        let keeps_reason = self.settings.keeps_reasons();
        let needs_address = self.settings.looks_for_nodes();
        let Some(node) = self.node(name) else {
            return Registration::Unheard;
        };
        if node.asked().is_some_and(|since| boot < since) {
            return Registration::OldBoot;
        }
        let replaced =
            node.power == Power::Up && node.boot_time.is_some_and(|before| boot > before);
        let back = node.may_return(rule);
        node.arrive(boot, now);
        node.seen_at = Some(address.to_owned());
        if node.spec.cloud && takes_address {
            address.clone_into(&mut node.address);
        }
        if node.down && back {
            node.down = false;
            node.reason = node.reason.take().filter(|_| keeps_reason);
        }
        let reached = !needs_address || node.is_reached();
        node.missed = (!reached).then_some(now);
        let (stays_down, name) = (node.down, node.name().clone());
        self.dirty = true;
        if replaced {
            self.kill_orphans(&name, now);
        }
        if stays_down { Registration::StaysDown } else { Registration::Accepted }
    }
}

impl NodeRecord {
    /// The last request for a machine; a machine that booted before is an old one.
    fn asked(&self) -> Option<Seconds> {
        match (self.power, self.reboot) {
            (Power::GoingDown { since } | Power::ComingUp { since }, _)
            | (_, Some(Reboot::Issued { since })) => Some(since),
            (Power::Up | Power::Down, Some(Reboot::Requested) | None) => None,
        }
    }

    /// True if a registration returns the node to service from `DOWN`.
    fn may_return(&self, rule: ReturnToService) -> bool {
        let expected = matches!(self.power, Power::ComingUp { .. })
            || matches!(self.reboot, Some(Reboot::Issued { .. }));
        let silent =
            || self.reason.as_ref().is_some_and(|(text, _)| text.starts_with("Not responding"));
        match rule {
            ReturnToService::Always => true,
            ReturnToService::NotResponding => expected || silent(),
            ReturnToService::Never => expected,
        }
    }

    fn arrive(&mut self, boot: Seconds, now: Seconds) {
        let rebooted = matches!(self.reboot, Some(Reboot::Issued { .. }));
        if self.power != Power::Up || self.down {
            self.last_busy = Some(now);
        }
        if rebooted {
            self.reboot = None;
            self.drain = false;
        }
        self.power = Power::Up;
        self.not_responding = false;
        self.lost = None;
        self.boot_time = Some(boot);
    }
}

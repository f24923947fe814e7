//! What can go wrong with a request, by script or by chance.

use crate::{ApiOperation, ErrorKind};
use std::collections::VecDeque;
use std::time::Duration;

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// It is refused with this kind of error and not carried out.
    Refuse(ErrorKind),
    /// It is carried out, and the answer is lost on the way.
    LoseResponse,
    /// It is lost on the way and not carried out; the caller cannot tell this from a lost answer.
    LoseRequest,
    /// Everything is fine, only later.
    Delay(Duration),
    /// It is taken at once and carried out so much later, whoever waits for the answer by then: a caller that is gone has
    /// stopped nothing. Who watches is told when it is taken.
    DoneLater(Duration),
    /// A launch is accepted, and fails with this kind while booting; other requests are fine.
    FailLater(ErrorKind),
    /// A listing, or a page of it, shows nothing, as eventually consistent ones do now and then;
    /// other requests are fine.
    Flap,
}

/// A fault to come.
#[derive(Debug, Default)]
pub(super) struct InjectedFaults {
    script: VecDeque<(ApiOperation, InjectedFault)>,
    chances: Vec<Chance>,
}

#[derive(Debug)]
struct Chance {
    operation: Option<ApiOperation>,
    fault: InjectedFault,
    probability: f64,
}

impl InjectedFaults {
    pub(super) fn script(&mut self, operation: ApiOperation, fault: InjectedFault) {
        self.script.push_back((operation, fault));
    }

    pub(super) fn chance(
        &mut self,
        operation: Option<ApiOperation>,
        fault: InjectedFault,
        probability: f64,
    ) {
        self.chances.push(Chance { operation, fault, probability });
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The fault of the next request: what the script has for it, or else what chance has.
    pub(super) fn next(
        &mut self,
        operation: ApiOperation,
        random: &mut fastrand::Rng,
    ) -> Option<InjectedFault> {
        let scripted = self.script.iter().position(|(scripted, _)| *scripted == operation);
        if let Some((_, fault)) = scripted.and_then(|place| self.script.remove(place)) {
            return Some(fault);
        }
        let concerned =
            |chance: &&Chance| chance.operation.is_none_or(|concerned| concerned == operation);
        let mut chances = self.chances.iter().filter(concerned);
        chances.find(|chance| random.f64() < chance.probability).map(|chance| chance.fault)
    }
}

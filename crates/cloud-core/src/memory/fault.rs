//! Faults of requests, scripted or random.

use crate::{ApiOperation, ErrorKind};
use std::collections::VecDeque;
use std::time::Duration;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Refuse the request with this kind of error, without carrying it out.
    Refuse(ErrorKind),
    /// Carry out the request, and lose the response.
    LoseResponse,
    /// Lose the request. The caller cannot distinguish this from a lost response.
    LoseRequest,
    /// Delay the request.
    Delay(Duration),
    /// Accept the request immediately and carry it out later, even if the caller is gone. Watchers are called when it is
    /// accepted.
    DoneLater(Duration),
    /// Accept a launch that fails with this kind while booting. Other requests succeed.
    FailLater(ErrorKind),
    /// Return an empty listing or page, as eventually consistent clouds sometimes do. Other requests succeed.
    Flap,
}

/// A scripted fault.
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

    /// The fault of the next request: scripted, or else random.
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

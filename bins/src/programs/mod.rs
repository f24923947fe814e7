//! The programs, one file each.

pub mod finish;
pub mod listnodes;
pub mod rebuild;
pub mod reconcile;
pub mod resize;
pub mod startnode;
pub mod stopnode;

use crate::args::Common;
use crate::context::output;
use crate::environment::Environment;
use crate::process::WRONG;
use crate::trouble::Trouble;

/// Says why the program could not begin.
fn wrong(common: &Common, trouble: &Trouble) -> u8 {
    output(common, &Environment::read()).complain(trouble);
    WRONG
}

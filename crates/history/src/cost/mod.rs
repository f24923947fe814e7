//! Costs of machines, by job, user, account and other keys.
//!
//! All functions are pure and use integers, so that rounding loses and adds nothing.

mod attribute;
mod budget;
mod calendar;
mod lives;
mod money;
mod prices;
mod table;

pub use attribute::{JobRun, Owner, PaidMachine, Share, attribute, spread};
pub use budget::{Budget, BudgetState, Period, Spending};
pub use calendar::{Millis, date, day_name, day_start, month_start, next_day, next_month};
pub use lives::{machines, runs};
pub use money::{Cost, Price, in_cents};
pub use prices::Prices;
pub use table::{By, Row, Table, UnknownBy};

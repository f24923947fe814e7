//! Tests of the public face: what is written is read again, and lives follow from events.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise")]

mod format;
mod lives;
mod money;

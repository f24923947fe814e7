//! The main job and new images in a real OpenStack: Nova's servers are slurmd that the harness boots when they are ACTIVE.
//!
//! Many scenarios on each cloud, since it takes its time to start.

mod elastic;
mod images;
mod persistent;
mod steps;

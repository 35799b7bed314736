//! A simulator of whole nodes. The supervision tree of one or several nodes runs on one thread whose time is simulated; store,
//! network and people are of the simulator, and everything that they do comes from a seed. So a run is a schedule that can be
//! repeated, and the promises of `docs/promises.md` are checked at its end.
//!
//! [`world`] holds what a run consists of, [`store`] and [`network`] are what nodes see of it, [`people`] use it, [`chaos`] breaks
//! it, and [`promises`] judges what happened.
// A broken expectation ends the run, which is then the finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chaos;
mod entropy;
mod network;
mod people;
mod promises;
mod run;
mod store;
mod world;

pub use entropy::keep_memory;
pub use run::{Run, run, shrunk};
pub use world::Shape;

//! A simulator of whole nodes: their supervision trees, use cases and HTTP handlers on one thread with simulated time.
//! Store, network and people are simulated too, and a seed decides everything. A run repeats exactly, and is checked
//! against `docs/promises.md` at its end.
//!
//! [`world`] holds the state of a run. [`node`] builds a node on [`store`] and [`network`], its whole environment.
//! [`sim`] is the people's side: [`clients`] and their [`developers`], [`residents`], [`guests`], [`operators`] and the
//! upstreams of [`flows`]. [`chaos`] injects faults, and [`rotation`] changes the key.
//!
//! [`journal`] records observations, and [`promises`] judges the [`evidence`]. [`model`] has state machines that every
//! run must follow. [`process`] isolates runs from each other.
// A failed expectation ends the run and is its finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod chaos;
mod checks;
mod clients;
mod clock;
mod coverage;
mod developers;
mod doors;
mod entropy;
mod evidence;
mod exempt;
mod flows;
mod guests;
mod history;
mod inspectors;
mod journal;
pub mod model;
mod network;
mod node;
mod operators;
mod pairs;
mod process;
mod promises;
mod readers;
mod receivers;
mod replication;
mod residents;
mod rotation;
mod run;
mod shape;
mod sim;
mod store;
mod transfers;
mod world;

pub use coverage::{Gap, gaps};
pub use entropy::keep_memory;
pub use process::{run, run_all};
pub use run::{Run, shrink};
pub use shape::Shape;

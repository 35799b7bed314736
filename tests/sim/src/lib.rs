//! A simulator of whole nodes. The supervision tree of one or several nodes, the use cases on it and the HTTP handlers run on one
//! thread whose time is simulated; store, network and people are of the simulator, and everything that they do comes from a seed. So
//! a run is a schedule that can be repeated, and the promises of `docs/promises.md` are checked at its end.
//!
//! [`world`] holds what a run consists of. [`node`] builds a node on [`store`] and [`network`], which are what it sees of the world. [`sim`]
//! is what people see: [`clients`] and their [`developers`], [`residents`], [`guests`], [`operators`] and the upstreams of [`flows`]. [`chaos`] breaks things, [`rotation`] changes the key,
//! [`diary`] notes what people learned, and [`promises`] judges the [`evidence`]; [`model`] has state machines that every run must follow. [`process`] makes runs that do not depend on each other.
// A broken expectation ends the run, which is then the finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chaos;
mod clients;
mod clock;
mod coverage;
mod developers;
mod diary;
mod entropy;
mod evidence;
mod flows;
mod guests;
mod history;
pub mod model;
mod network;
mod node;
mod operators;
mod process;
mod promises;
mod replication;
mod residents;
mod rotation;
mod run;
mod sim;
mod store;
mod world;

pub use coverage::{Gap, gaps};
pub use entropy::keep_memory;
pub use process::{run, run_all};
pub use run::{Run, shrunk};
pub use world::Shape;

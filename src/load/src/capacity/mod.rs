//! Machines for a load, from measured costs, with the arithmetic of each figure.
//!
//! Everything is proportional: a figure times a cost. `docs/capacity.md` states what that leaves out. [`costs`] has the
//! measured table, [`steps`] the cost of one second at the peak, [`sizing`] the machines, [`plan`] all of it together.

pub(crate) mod cli;
mod costs;
pub(crate) mod document;
mod error;
mod number;
mod plan;
mod sizing;
mod steps;
mod table;
#[cfg(test)]
mod tests;

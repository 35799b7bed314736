//! Machines for a load, from measured costs, with the arithmetic of each figure.
//!
//! Everything is proportional: a figure times a cost. What that leaves out is said in `docs/capacity.md`. [`costs`] has
//! the measured table, [`steps`] what a second of the peak costs, [`sizing`] the machines, [`plan`] all of it together.

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

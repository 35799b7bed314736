//! Machines for a load, from measured costs, with the arithmetic of each figure.
//!
//! Every figure is a count times a cost. `docs/capacity.md` lists what this leaves out. [`costs`] has the measured
//! table, [`steps`] the cost of one second at the peak, [`sizing`] the machines, and [`plan`] the whole plan.

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

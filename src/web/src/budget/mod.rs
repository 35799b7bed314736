//! What the service holds in memory, and computes, on behalf of others.
//!
//! [`memory`] accounts for bytes and [`cpu`] for processor time of untrusted work. Both know their
//! [`owner`]s as nested paths and keep to one rule: nobody is refused because somebody else takes
//! much. When memory runs out, whoever holds most gives way; when processor time is short, whoever
//! has used least goes first.

pub mod cpu;
pub mod memory;
pub mod owner;
mod usage;

pub use cpu::{CpuBudget, CpuError};
pub use memory::{Memory, MemoryBudget, MemoryPermit, NoRoom, Stage};
pub use owner::{Owner, Owners};

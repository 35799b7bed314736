//! Fair budgets for the memory and processor time that clients use.
//!
//! [`memory`] accounts for bytes and [`cpu`] for processor time of untrusted work. Both charge nested [`owner`]s, and
//! no owner can exclude another. When memory runs out, the owner that holds most loses its largest holding. When
//! processor time is short, work of the owner that has used least runs first.

mod cpu;
mod flow_fetches;
mod memory;
mod owner;
mod usage;

pub use cpu::CpuBudget;
pub use flow_fetches::FlowFetches;
pub use memory::{BudgetExhausted, MemoryBudget, MemoryBudgets, MemoryPermit, Stage};
pub use owner::{Owner, OwnerPath};

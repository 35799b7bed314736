//! Flows through the public interface of the crate: reading, writing, and changes by reports.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an error here is a failed test")]

mod at_most_once;
mod fixtures;
mod forms;
mod golden;
mod signing;
mod transitions;

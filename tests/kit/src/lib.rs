//! What the test suites share: nodes as real processes, each on free ports with a store of its own,
//! and everybody who talks to them.
//!
//! Nothing here reaches into the server's memory. What a test needs to know it asks over HTTP, or
//! reads from the process's output.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "whatever goes wrong here is a failed test, and what it prints is for its reader"
)]

pub mod answer;
pub mod backend;
pub mod balancer;
pub mod connector;
pub mod flow;
pub mod forge;
pub mod goldens;
pub mod independent;
pub mod office;
pub mod operator;
pub mod phone;
pub mod portal;
pub mod process;
pub mod redis;
pub mod universe;
pub mod upstream;
pub mod venue;
pub mod waiting;

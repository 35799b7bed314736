//! What every black-box suite stands on: a universe of its own for each test, with the real binary
//! on free ports, a store in a temporary directory, and everyone who talks to it.
//!
//! Nothing here reaches into the server's memory. What a test needs to know it asks over HTTP, or
//! reads from the process's output.

// Each suite uses its own part of it.
#![allow(dead_code)]

pub(crate) mod answer;
pub(crate) mod backend;
pub(crate) mod balancer;
pub(crate) mod connector;
pub(crate) mod flow;
pub(crate) mod forge;
pub(crate) mod goldens;
pub(crate) mod independent;
pub(crate) mod office;
pub(crate) mod operator;
pub(crate) mod phone;
pub(crate) mod portal;
pub(crate) mod process;
pub(crate) mod redis;
pub(crate) mod universe;
pub(crate) mod upstream;
pub(crate) mod venue;
pub(crate) mod waiting;

//! The load tester as a program, against a node and against servers with faults.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faulty_server;
mod node;
mod stand_in;

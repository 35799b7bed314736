//! Shared parts of the test suites: nodes as real processes on free ports, and the parties that call them.
//!
//! Tests read state over HTTP or from a process's output, never from the server's memory. Only [`records`] and
//! [`flow_records`] are for tests inside one process: they make records for a store without HTTP.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an error here is a failed test, and the output is for the reader of the test"
)]

pub mod answer;
pub mod audit_entries;
pub mod backend;
pub mod balancer;
pub mod collector;
pub mod connector;
pub mod crowd;
mod documented;
pub mod event;
pub mod flow;
pub mod flow_fixture;
pub mod flow_records;
pub mod goldens;
pub mod identity_app;
pub mod issuer;
pub mod model;
pub mod name_server;
pub mod node;
pub mod operator;
pub mod other_issuers;
pub mod outbox;
pub mod overload;
pub mod portal;
pub mod ports;
pub mod process;
pub mod random;
pub mod raw;
pub mod records;
pub mod redis;
pub mod rsyslog;
pub mod secrets;
pub mod soft_token;
pub mod status_host;
pub mod storm;
pub mod tls;
pub mod upstream;
pub mod waiting;

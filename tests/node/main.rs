//! A whole node within the test's process, with its own store and a clock that the test moves: answers of the edges,
//! route by route.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an error here is a failed test")]

mod api;
mod audit_log;
mod caller;
mod cli;
mod console;
mod document;
mod failed_logins;
mod grants;
mod in_process;
mod log_level;
mod operator;
mod operator_document;
mod operators;
mod pages;
mod pages_fixture;
mod portal;
mod reports;
mod routes;
mod store_fixture;
mod trigger;

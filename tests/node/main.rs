//! Tests of every HTTP route: API, pages, portal, console and internal listener.
//!
//! A node or its routes run in the process of the test, with a store of their own and mostly a manual clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an error here is a failed test")]

mod api;
mod audit_log;
mod browser;
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

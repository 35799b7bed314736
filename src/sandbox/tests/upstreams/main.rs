//! The sandbox upstreams as the service, a browser and a script use them. The flows of the domain check
//! their reports, as in the service.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an error here is a failed test")]

mod checks;
mod decisions;
mod orders;
mod outcomes;
mod pages;
mod reports;
mod scene;
mod service;

//! The sandbox upstreams as the service, a browser and a script meet them. Their reports are read
//! and judged by the flows of the domain, as the service does it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an error here is a failed test")]

mod decisions;
mod orders;
mod outcomes;
mod pages;
mod pan;
mod reports;
mod scene;
mod service;

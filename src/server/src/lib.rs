//! The server around the actors: settings, HTTP, the operator's API and command line, telemetry.
//!
//! Nothing here decides a rule of the service; the domain does, and the actors carry it out.

pub mod cli;
pub mod http;
pub mod internal;
pub mod settings;
pub mod telemetry;

#[cfg(test)]
mod universe;

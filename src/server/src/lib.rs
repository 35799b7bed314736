//! The process around the edges: settings, keys, wiring, telemetry, drain, and the command line.
//!
//! Nothing here decides a rule of the service; the domain does, and the actors carry it out.

pub mod allocator;
pub mod authority;
pub mod cli;
#[cfg(feature = "sandbox")]
pub mod developer;
#[cfg(not(feature = "sandbox"))]
#[path = "no_developer.rs"]
pub mod developer;
pub mod fd_budget;
pub mod health;
pub mod keys;
pub mod node;
pub mod public;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(not(feature = "sandbox"))]
#[path = "no_sandbox.rs"]
pub mod sandbox;
pub mod serve;
pub mod settings;
pub mod storage;
pub mod store_path;
pub mod telemetry;
pub mod upstreams;

//! The process around the service: settings, keys, wiring, telemetry, graceful shutdown, and the command line. The
//! rules of the service are in the domain crate, and the actors apply them.

// Clippy enables all features at once.
#[cfg(all(feature = "rehearsal", feature = "shipped", not(clippy)))]
compile_error!("`rehearsal` imitates a future release and must not be shipped");

/// Commit of the sources, with `-dirty` after local changes; `unknown` for an archive of them.
pub const COMMIT: &str = env!("SAKSHI_COMMIT");

pub mod allocator;
mod audit_receiver;
pub mod authority;
mod bounds;
pub mod cli;
#[cfg(feature = "sandbox")]
pub mod developer;
mod fd_budget;
mod health;
mod intent_key_choice;
mod internal;
mod issuer_keys;
mod key_command;
pub mod keys;
pub mod node;
mod nodes;
pub mod pkcs11;
pub mod public;
pub mod sandbox;
pub mod serve;
pub mod settings;
mod storage;
pub mod telemetry;
mod tls_files;
pub mod upstreams;

//! Attacks that hold or waste resources, one in each file, beside an honest client.
//!
//! Each test measures the honest client alone and then under the attack. None of its requests may be refused. The
//! slowest hundredth may take at most a multiple of the time alone. The memory of the process may grow by no more than
//! the budgets in `docs/security.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "whatever goes wrong here is a failed test, and what it prints is for its reader"
)]

mod balanced;
mod connections;
mod honest;
mod malformed;
mod many_values;
mod mutated;
mod one_address;
mod overload;
mod registrations;
mod revoked;
#[cfg(feature = "soak")]
mod soak;
mod status;
mod unread;
mod withheld_bodies;
mod withheld_files;

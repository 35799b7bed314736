//! Attacks that hold or waste resources, one in each file, beside an honest client.
//!
//! Each test measures the honest client alone and then under the attack. Three bounds hold: none of
//! its requests is refused, the slowest hundredth of them takes at most a multiple of what it took
//! alone, and the memory of the process grows by no more than the budgets that `docs/security.md` lists.

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

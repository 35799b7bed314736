//! The HTTP client for webhooks: one attempt, bounded in every direction.
//!
//! [`guard`] says which addresses may be connected to, [`resolver`] makes sure that only those are,
//! and [`client`] sends the one POST and says in the domain's words what became of it. When to send
//! and what to record is decided elsewhere; nothing here knows the store, the actors or retries.

pub mod client;
pub mod guard;
mod local;
pub mod resolver;

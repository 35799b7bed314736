//! The HTTP clients for webhooks and for upstreams: one attempt each, bounded in every direction.
//!
//! [`guard`] says which addresses may be connected to, [`resolver`] makes sure that only those are,
//! and [`client`] sends the one POST and says in the domain's words what became of it. When to send
//! and what to record is decided elsewhere; nothing here knows the store, the actors or retries.
//! [`upstream`] sends the orders that flows begin with, and reads the answers.

pub mod client;
pub mod guard;
mod local;
pub mod resolver;
pub mod upstream;

//! The HTTP clients for webhooks and for upstreams: one attempt each, bounded in every direction.
//!
//! [`guard`] says which addresses may be connected to, [`resolver`] makes sure that only those are,
//! and [`client`] sends the one POST and says in the domain's words what became of it: over plain
//! HTTP/1.1, or over TLS by `http1` or `http2`, whichever `origin` finds the receiver to speak. When to send
//! and what to record is decided elsewhere; nothing here knows the store, the actors or retries.
//! [`upstream`] sends the orders that flows begin with, and reads the answers.

pub mod client;
mod connect;
mod exchange;
pub mod guard;
mod http1;
mod http2;
mod local;
mod origin;
pub mod resolver;
mod threads;
mod tls;
pub mod upstream;

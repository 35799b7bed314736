//! Test doubles for external systems: the identity app with its own issuer, the upstreams of the flows,
//! a webhook receiver, and inboxes for webhooks.
//!
//! They use the real protocols, with keys that only the sandbox profile trusts. As in production, the identity app
//! posts to the public callback, and the upstreams report to the internal listener.

pub mod app;
mod http;
pub mod inbox;
pub mod issuer;
pub mod keys;
mod page;
pub mod receiver;
pub mod residents;
pub mod upstreams;

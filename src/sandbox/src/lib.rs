//! Stand-ins for what lies outside the service: the identity app with an issuer of its own, the
//! upstreams of every other flow, and a webhook receiver.
//!
//! They speak the real protocols with keys that only the sandbox profile trusts; production never
//! mounts them. Nothing here knows the store or the actors: the identity app reaches the service
//! through its public callback, and the upstreams report to the internal listener, like real ones.

pub mod app;
pub mod issuer;
pub mod keys;
mod page;
pub mod receiver;
pub mod residents;
pub mod upstreams;

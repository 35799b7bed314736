//! Stand-ins for what lies outside the service: the identity app with an issuer of its own, and a
//! webhook receiver.
//!
//! They speak the real protocols with keys that only the sandbox profile trusts; production never
//! mounts them. Nothing here knows the store or the actors: the identity app reaches the service
//! through its public callback, like the real one.

pub mod app;
pub mod issuer;
pub mod keys;
pub mod receiver;
pub mod residents;

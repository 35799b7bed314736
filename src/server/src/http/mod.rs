//! What every route shares: the error table, request ids with their log line and metrics, bodies,
//! queries, callers, admission and rate limits.
//!
//! Handlers decide nothing: they parse with these types, ask an actor, and render.

pub mod admission;
pub mod api_key;
pub mod body;
pub mod caller;
pub mod error;
pub mod key_cache;
pub mod peer;
pub mod query;
pub mod rate;
pub mod request_id;
pub mod routing;

#[cfg(test)]
mod caller_tests;
#[cfg(test)]
mod tests;

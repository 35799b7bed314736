//! What every route shares: the error table, request ids with their log line and metrics, bodies,
//! queries, callers, rates.
//!
//! Handlers decide nothing: they parse with these types, ask an actor, and render.

pub mod answer_body;
pub mod api_key;
pub mod body;
pub mod called;
pub mod caller;
pub mod credits;
pub mod error;
pub mod events;
pub mod fields;
pub mod flow_requests;
pub mod flow_schema;
pub mod flows;
pub mod idempotency;
pub mod intake;
pub mod json;
pub mod key_cache;
pub mod openapi;
pub mod ovse;
pub mod pan;
pub mod polls;
pub mod query;
pub mod rate;
pub mod request_id;
pub mod requests;
pub mod routes;
pub mod routing;
pub mod schema;
pub mod terms;
mod unread;
pub mod webhook_schema;
pub mod webhook_urls;

#[cfg(test)]
mod caller_tests;
#[cfg(test)]
mod tests;

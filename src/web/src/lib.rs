//! What every HTTP edge shares: the error table, request ids with their log line and metrics, bodies and their bounds, queries,
//! callers, rates, budgets of memory and processor time, and the connections themselves.

pub mod answer_body;
pub mod api_document;
pub mod authenticated;
pub mod body;
pub mod budget;
pub mod edge;
pub mod error;
pub mod fields;
pub mod html;
pub mod idempotency;
pub mod intake;
pub mod json;
pub mod listener;
pub mod query;
pub mod rate;
pub mod routing;
pub mod same_site;
pub mod static_file;
pub mod terms;
mod unread;

#[cfg(test)]
mod tests;

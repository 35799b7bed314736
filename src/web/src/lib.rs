//! The parts of the HTTP edge that the API, the pages, the portal and the internal listener share.
//!
//! Begin with [`edge`], the middleware around every route, and [`error`], the errors of the edge. [`routing`] has the
//! route tables, [`authenticated`] the extractors of callers. [`body`] and [`body_reader`] bound request bodies,
//! [`rate_limit`] bounds rates, and [`listener`] serves connections.

pub mod api_document;
pub mod authenticated;
pub mod body;
pub mod body_reader;
pub mod compressed;
pub mod delivery;
pub mod edge;
pub mod error;
pub mod error_page;
mod error_table;
pub mod event_stream;
pub mod field;
pub mod form;
pub mod held_body;
pub mod html;
pub mod idempotency;
pub mod listener;
pub mod openapi;
pub mod paging;
pub mod query;
pub mod rate_limit;
mod refusal_record;
mod request_log;
mod response_body;
pub mod routing;
pub mod same_site;
pub mod session;
pub mod static_file;
pub mod subject;
mod unread_body;
pub mod when;
pub mod why;

#[cfg(test)]
mod tests;

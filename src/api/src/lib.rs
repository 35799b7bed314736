//! The API of client backends: its routes, and the OpenAPI document that describes them.
//!
//! Handlers decide nothing: they read the request, call a use case, and write its result.

mod checks;
mod credits;
mod events;
mod flows;
mod intent_keys;
mod openapi;
mod ovse;
mod ping;
mod poll;
mod routes;
mod status;
mod webhook_urls;

pub use self::openapi::{CamelCaseDocument, document_of};
pub use self::routes::ROUTES;

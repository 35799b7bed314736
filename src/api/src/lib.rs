//! The API of client backends: its routes, and the OpenAPI document that describes them.
//!
//! Handlers decide nothing: they read the request, call a use case, and write its result.

pub mod credits;
pub mod events;
pub mod flows;
pub mod openapi;
pub mod ovse;
pub mod pan;
pub mod ping;
pub mod polls;
mod routes;
pub mod webhook_urls;

pub use self::routes::ROUTES;

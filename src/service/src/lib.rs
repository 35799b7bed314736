//! The use cases, without HTTP: what a caller may ask of the service, whoever carries the question.
//!
//! The API, the portal and the pages call the same functions. They decide no rule (the domain does) and keep no state: they ask
//! actors and the store, and answer with typed results.

pub mod api_key;
pub mod authentication;
pub mod authority;
pub mod drain;
pub mod error;
pub mod events;
pub mod flows;
pub mod idempotency;
pub mod idempotency_locks;
pub mod pan;
pub mod service;
pub mod transactions;
pub mod upstreams;
pub mod url_policy;
pub mod webhook_urls;

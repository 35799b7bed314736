//! The use cases, without HTTP.
//!
//! The API, the portal and the pages call the same functions. The rules are in the domain and every record is in the store. This
//! crate asks the actors and the store, answers with typed results, and keeps in memory only what a node may lose: checked keys,
//! locks on idempotency keys, the state of the drain.

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

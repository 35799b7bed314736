//! The use cases, without HTTP.
//!
//! The API, the portal and the pages call the same functions. The rules are in the domain and every record is in the
//! store. This crate calls the actors and the store, and returns typed results. Its memory holds only state that a node
//! may lose: checked keys, locks on idempotency keys, the state of the drain. [`budget`] shares memory and processor
//! time fairly.

pub mod api_key;
pub mod authentication;
pub mod authority;
pub mod authority_answers;
pub mod budget;
pub mod callbacks;
pub mod check_ins;
pub mod checks;
pub mod client_log;
pub mod clock_suspicion;
mod consents;
pub mod credential_status;
pub mod deliveries;
pub mod doors;
pub mod drain;
pub mod entrance;
mod error;
pub mod events;
pub mod evidence;
pub mod flow_polls;
pub mod flows;
pub mod guest_list;
pub mod idempotency;
pub mod idempotency_locks;
pub mod issuer_keys;
pub mod keys;
pub mod names;
pub mod one_time_code;
pub mod opened;
pub mod operator_token;
pub mod page_settings;
pub mod passwords;
pub mod registration_codes;
mod service;
pub mod statement;
pub mod status;
mod status_rules;
#[cfg(test)]
mod test_store;
pub mod transactions;
pub mod upstreams;
pub mod url_policy;
pub mod users;
pub mod verifications;
pub mod webhook_urls;

pub use self::error::ServiceError;
pub use self::service::{Rules, Service};

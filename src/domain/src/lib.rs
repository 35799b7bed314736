//! The rules of the service: requests, transactions, credits and results.
//!
//! Everything here is a value or a pure function: no async, no I/O, no framework. Code that needs the
//! time takes a clock. The other crates apply these rules.

pub mod brand;
pub mod channel;
pub mod checks;
pub mod claims;
pub mod client_log;
pub mod client_transfer;
pub mod clock;
pub mod clock_watch;
pub mod consent;
pub mod credits;
pub mod day_figures;
pub mod delivery;
pub mod erasure;
pub mod event;
pub mod flow;
pub mod grant_request;
pub mod http_url;
pub mod icon;
pub mod ids;
pub mod invalid;
pub mod language;
pub mod limits;
pub mod network;
pub mod operator;
pub mod profile;
pub mod refused_request;
pub mod request_id;
pub mod retention;
mod string_enum;
pub mod tenancy;
pub mod time;
pub mod time_zone;
pub mod transaction;
pub mod unseen;
pub mod user;

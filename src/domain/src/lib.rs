//! The rules of the service: what a client may ask for, what happens to a transaction, what it costs,
//! and what the client is told.
//!
//! Everything here is a value or a pure function: no async, no I/O, no framework. Code that needs the
//! time is given a clock. The other crates carry these rules out.

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

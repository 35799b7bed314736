//! The portal at `/portal`: where developers try a verification and look after events, webhook URLs
//! and credits, signed in with their API key.
//!
//! It does what the API does, by the same functions and with the same sentences; nothing is decided
//! here. The key itself is read once, at the sign-in, and kept nowhere: neither by the browser nor
//! in a page, a log or the store. Every page works without JavaScript.

pub mod credits;
mod curl;
pub mod docs;
mod error;
pub mod events;
mod field;
mod files;
mod form;
mod frame;
mod newest;
mod routes;
mod session;
pub mod sign_in;
pub mod transaction;
pub mod trial;
mod visitor;
pub mod webhooks;

pub use self::routes::ROUTES;

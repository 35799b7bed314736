//! The portal at `/portal`: developers try a verification and manage events, webhook URLs and credits, signed in as a
//! user of their client or with its API key.
//!
//! It calls the same use cases as the API and shows the same messages. Begin with `routes.rs`; `overview.rs` is the
//! first page, `docs.rs` shows the OpenAPI document, and `portal_user.rs` authenticates. The API key is read once, at
//! the sign-in, and never stored: not by the browser, in a page, in a log or in the store. Every page works without
//! JavaScript.

mod attention;
mod checks;
mod credits;
mod curl;
mod deliveries;
pub mod docs;
mod error;
mod events;
mod fallback;
mod files;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod json_body;
mod keys;
mod label;
mod layout;
mod list_filters;
mod log;
pub mod once;
mod orders;
mod overview;
mod pace;
mod person;
mod portal_user;
mod refusals;
pub mod roles;
mod routes;
mod session;
mod sign_in;
mod status;
mod story;
mod team;
mod today;
mod transaction;
mod trial;
mod verifications;
mod verifications_csv;
mod webhooks;

use sakshi_web::{delivery, field, paging, when, why};

pub use self::error::error_page;
pub use self::routes::ROUTES;

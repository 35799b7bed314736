//! The operators' console at `/console` of the internal listener, for support, finance and security.
//!
//! Operators sign in with their token, which is checked again at every use. Pages read the store; changes go through
//! the admin API's handlers, with its roles and audit entries. Begin with `routes.rs`; `staff.rs` authenticates,
//! `view.rs` has the parts of most pages. No page shows data that a person has shared, and every page works without
//! JavaScript.

mod audit_log;
mod brand;
mod cell;
mod clients;
mod consents;
mod credits;
mod encryption;
mod erasure;
mod error;
mod find;
mod flow;
mod front;
mod keys;
mod layout;
mod multipart;
mod oidc;
mod operators;
mod provider_sign_in;
mod records;
mod requests;
mod routes;
mod sign_in;
mod staff;
mod submitted;
mod transaction;
mod tree;
mod view;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Data, ServiceConfig};
use sakshi_service::drain::Drain;
use sakshi_store::SessionDigest;
use sakshi_supervision::FairSlots;
use sakshi_web::error_page::ErrorPages;
use sakshi_web::routing;

pub use self::error::error_page;
pub use self::oidc::{Provider, ProviderSettings};
pub use self::routes::ROUTES;

/// Maximum number of concurrent streams of the tree; a session can use half of them.
pub const STREAMS_MAX: usize = 16;

/// Configuration and dependencies of the console, besides the admin API.
#[derive(Clone, Debug)]
pub struct Console {
    /// True if the internal listener speaks TLS.
    pub is_https: bool,
    /// True in the sandbox.
    pub sandbox: bool,
    /// Balance below which a client is marked as low, unless it has its own limit.
    pub low_credits: u64,
    /// Time for which a transaction and its result are stored.
    pub transaction_retention: Duration,
    /// Name of this installation: its public URL.
    pub installation: Arc<str>,
    /// Identity provider, if operators may sign in there.
    pub provider: Option<Provider>,
    /// Drain of the node, which ends streams.
    pub drain: Drain,
    /// Slots for streams, by the session that reads one.
    pub streams: FairSlots<SessionDigest>,
}

/// Declares the pages. [`sakshi_operator::configure`] declares the API that they use.
pub fn configure(config: &mut ServiceConfig, console: Console) {
    config.app_data(Data::new(console)).app_data(ErrorPages(error_page));
    routing::configure(config, ROUTES);
}

//! The operators' console at `/console` of the internal listener: where support, finance and security find things and put them right.
//!
//! It signs in with an operator's token and checks that again at every use. Pages read the store; every change goes through the handler
//! of the admin API, with its roles and its audit entries. Begin with `routes.rs`; `staff.rs` authenticates, `view.rs` is what most
//! pages are put together from. No page shows what a person has shared, and every page works without JavaScript.

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

/// Readers of the tree at one time; one session has half of them at most.
pub const STREAMS_MAX: usize = 16;

/// The console's needs besides the admin API.
#[derive(Clone, Debug)]
pub struct Console {
    /// True if the internal listener speaks TLS.
    pub is_https: bool,
    /// True in the sandbox.
    pub sandbox: bool,
    /// Clients with fewer credits are marked, unless they have a limit of their own.
    pub low_credits: u64,
    /// The time for which a transaction and its result are kept.
    pub kept: Duration,
    /// The name of this installation, its public URL.
    pub installation: Arc<str>,
    /// The identity provider, if operators may sign in there.
    pub provider: Option<Provider>,
    /// Ends streams when the node drains.
    pub drain: Drain,
    /// Places for streams, by the session that reads one.
    pub streams: FairSlots<SessionDigest>,
}

/// Declares the pages. [`sakshi_operator::configure`] declares the API that they use.
pub fn configure(config: &mut ServiceConfig, console: Console) {
    config.app_data(Data::new(console)).app_data(ErrorPages(error_page));
    routing::configure(config, ROUTES);
}

//! What the public routes of one worker share.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Events, Transactions};
use sakshi_domain::clock::Clock;
use sakshi_domain::web_address::Schemes;
use sakshi_store::{Store, Vault};

use crate::agreement::Agreement;
use crate::drain::Drain;

/// The service as its handlers see it.
#[derive(Clone, Debug)]
pub struct Service {
    /// The door to all transactions.
    pub transactions: Transactions,
    /// The door to all events.
    pub events: Events,
    /// The truth.
    pub store: Arc<dyn Store>,
    /// Seals what is personal.
    pub vault: Arc<Vault>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What is agreed with the identity authority.
    pub agreement: Arc<Agreement>,
    /// Times and rules of a verification.
    pub rules: Rules,
    /// Whether the process is about to end.
    pub drain: Drain,
}

/// Times and rules of a verification.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long a transaction waits for the person.
    pub window: Duration,
    /// How long a result can be fetched.
    pub result_ttl: Duration,
    /// How long a credential is refused under another transaction.
    pub replay_window: Duration,
    /// The URL schemes that clients may give.
    pub schemes: Schemes,
    /// Whether the public knows the service under one name, as `server.public_base_url` says.
    pub has_one_name: bool,
    /// Bytes of a callback.
    pub callback_bytes: usize,
}

//! What every use case needs; each worker has its own copy.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Events, Flows, Transactions};
use sakshi_domain::clock::Clock;
use sakshi_domain::time_zone::TimeZone;
use sakshi_store::{Store, Vault};
use sakshi_wire::Context;

use crate::authority::AuthorityContext;
use crate::budget::{CpuBudget, FlowFetches, MemoryBudgets};
use crate::drain::Drain;
use crate::idempotency_locks::IdempotencyLocks;
use crate::names::Names;
use crate::page_settings::PageSettings;
use crate::upstreams::Upstreams;
use crate::url_policy::UrlPolicy;

/// Everything that the use cases ask.
#[derive(Clone, Debug)]
pub struct Service {
    /// Reaches all transactions.
    pub transactions: Transactions,
    /// Reaches all events.
    pub events: Events,
    /// Reaches all flows.
    pub flows: Flows,
    /// The durable store.
    pub store: Store,
    /// Seals what is personal.
    pub vault: Arc<Vault>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What the identity authority and this service have agreed on.
    pub authority: Arc<AuthorityContext>,
    /// Times and rules of a verification.
    pub rules: Rules,
    /// What the pages name and link.
    pub pages: Arc<PageSettings>,
    /// The names that pages show.
    pub names: Names,
    /// Whether the process is about to end.
    pub drain: Drain,
    /// Where flows are ordered.
    pub upstreams: Upstreams,
    /// Carry out requests under one idempotency key one after the other.
    pub idempotency_locks: IdempotencyLocks,
    /// Bounds how many flows are fetched at one moment.
    pub flow_fetches: FlowFetches,
    /// What the service holds for others.
    pub memory: MemoryBudgets,
    /// What the service computes for strangers.
    pub cpu: CpuBudget,
}

impl Service {
    /// What requests are read with that are sent at this moment.
    #[must_use]
    pub fn request_context(&self) -> Context<'_> {
        self.rules.urls.at(self.clock.now())
    }
}

/// Times and rules of a verification.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long a transaction waits for the person.
    pub window: Duration,
    /// How long a result can be fetched.
    pub result_ttl: Duration,
    /// The clock of an event that names none.
    pub time_zone: TimeZone,
    /// How long an event and its registrations are kept after its end.
    pub registration_ttl: Duration,
    /// The longest time for which a credential is refused under another transaction.
    pub replay_window: Duration,
    /// Whether `server.public_base_url` is set: then pages of no other origin are ours.
    pub has_public_base_url: bool,
    /// Which URLs clients may give.
    pub urls: UrlPolicy,
    /// Bytes of a callback.
    pub callback_bytes: usize,
    /// How long the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
    /// Events of an app that are kept at one time, unless its client has a limit of its own.
    pub events_per_app: Option<u32>,
    /// How long a flow waits for its upstream.
    pub flow_pending_ttl: Duration,
}

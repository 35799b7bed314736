//! Dependencies and rules of the use cases; each worker has its own copy.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Events, Flows, Transactions};
use sakshi_domain::clock::Clock;
use sakshi_domain::profile::Profile;
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

/// Dependencies of the use cases.
#[derive(Clone, Debug)]
pub struct Service {
    /// Handle to the transactions.
    pub transactions: Transactions,
    /// Handle to the events.
    pub events: Events,
    /// Handle to the flows.
    pub flows: Flows,
    /// The durable store.
    pub store: Store,
    /// Encrypts personal data.
    pub vault: Arc<Vault>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Settings shared with the identity authority.
    pub authority: Arc<AuthorityContext>,
    /// Times and rules from the settings.
    pub rules: Rules,
    /// Texts and links of the pages.
    pub pages: Arc<PageSettings>,
    /// Cached names of clients and apps for pages.
    pub names: Names,
    /// State of the graceful shutdown.
    pub drain: Drain,
    /// Upstreams that carry out flows.
    pub upstreams: Upstreams,
    /// Locks that run requests under one idempotency key one after the other.
    pub idempotency_locks: IdempotencyLocks,
    /// Limit on concurrent reads of flows.
    pub flow_fetches: FlowFetches,
    /// Memory budgets of request and response bodies.
    pub memory: MemoryBudgets,
    /// Processor time for untrusted work.
    pub cpu: CpuBudget,
}

impl Service {
    /// Returns the context for parsing the requests of this moment.
    #[must_use]
    pub fn request_context(&self) -> Context<'_> {
        self.rules.urls.at(self.clock.now())
    }
}

/// Times and rules of verifications, events and flows.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Environment of the installation.
    pub profile: Profile,
    /// Time for which a transaction waits for the person.
    pub window: Duration,
    /// Time for which a result can be fetched.
    pub result_ttl: Duration,
    /// Time zone of events without their own.
    pub time_zone: TimeZone,
    /// Time for which an event and its registrations are kept after its end.
    pub registration_ttl: Duration,
    /// Longest time for which other transactions refuse a used credential.
    pub replay_window: Duration,
    /// True if `server.public_base_url` is set. Forms are then accepted from pages of its origin only.
    pub has_public_base_url: bool,
    /// Rules for URLs in clients' requests.
    pub urls: UrlPolicy,
    /// Maximum bytes of a callback.
    pub callback_bytes: usize,
    /// Time for which the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
    /// Maximum stored events of an app, unless its client has another limit.
    pub events_per_app: Option<u32>,
    /// Time for which a flow waits for its upstream.
    pub flow_pending_ttl: Duration,
    /// Number of credits below which a balance counts as low, unless its client has another limit.
    pub low_credits: u64,
}

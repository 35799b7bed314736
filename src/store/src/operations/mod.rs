//! Operations: the calls of a store. Each reads records, lets a transition decide, and commits the resulting batch. If
//! a guard refuses the batch, the operation starts over.

mod audit_log;
mod client_log;
mod consents;
mod console;
mod credits;
mod day_figures;
mod erasure;
mod events;
mod flows;
mod guests;
mod idempotency;
mod intent_key;
mod nodes;
pub(crate) mod operators;
mod outbox;
mod refusals;
pub(crate) mod reseal;
mod sessions;
mod tenancy;
#[cfg(test)]
pub(crate) mod tests;
mod transactions;
mod transfers;
mod upkeep;
mod users;

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use sakshi_domain::ids::TxnId;
use tokio::sync::broadcast;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::engine::{Answers, Applied, Batch, CallId, Engine, Key, Query, Record};
use crate::error::{StoreError, StoreFuture};
use crate::invariants::CheckedEngine;
use crate::redis::NodeId;
use crate::upkeep::Retention;
use crate::vault::Vault;

pub use self::nodes::OtherNode;

/// A store over an engine. Clones share the engine.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

struct Shared {
    engine: CheckedEngine,
    vault: Arc<Vault>,
    retention: Retention,
    node: NodeId,
    /// Reports transactions that other nodes end; `None` without other nodes.
    ended_elsewhere: Option<broadcast::Sender<TxnId>>,
    /// True once this node has left the cluster; it then begins no further delivery attempt.
    has_left: AtomicBool,
}

impl Store {
    /// Returns the store of a node. `ended_elsewhere` reports transactions that other nodes end; `None` without other
    /// nodes.
    pub fn new(
        engine: Box<dyn Engine>,
        vault: Arc<Vault>,
        retention: Retention,
        node: NodeId,
        ended_elsewhere: Option<broadcast::Sender<TxnId>>,
    ) -> Self {
        let engine = CheckedEngine::new(engine);
        Self(Arc::new(Shared { engine, vault, retention, node, ended_elsewhere, has_left: AtomicBool::new(false) }))
    }

    fn engine(&self) -> &dyn Engine {
        &self.0.engine
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.0.vault
    }

    fn node(&self) -> NodeId {
        self.0.node
    }

    fn has_left(&self) -> bool {
        self.0.has_left.load(Ordering::Relaxed)
    }

    /// Returns the trace span of an operation that is called in the current span but runs together with others.
    #[must_use]
    pub fn span_of(&self, operation: &'static str) -> tracing::Span {
        sakshi_trace::store(self.engine().system(), operation)
    }

    /// Polls an operation once before returning it, so that calls reach the engine in the order in which they are made.
    /// Counts and traces the operation under the name of the calling method.
    fn run<T, F>(&self, operation: impl FnOnce(Self) -> F) -> StoreFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let span = sakshi_trace::store_step(self.engine().system(), &operation);
        let name = sakshi_trace::method_of(&operation);
        count_calls(name, 1);
        let mut work = Box::pin(operation(self.clone()));
        match span.in_scope(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
            Poll::Ready(answer) => Box::pin(ready(answer)),
            Poll::Pending if span.is_disabled() => work,
            Poll::Pending => Box::pin(work.instrument(span)),
        }
    }

    /// Answers queries, in their order.
    async fn read(&self, queries: Vec<Query>) -> Result<Answers, StoreError> {
        self.engine().read(queries).await
    }

    /// Answers queries with data that survives a failover. What decides the answer to a change is read so: a change
    /// that an earlier call has written, but that no replica has, is not reported as done.
    async fn read_confirmed(&self, queries: Vec<Query>) -> Result<Answers, StoreError> {
        self.engine().read_confirmed(queries).await
    }

    /// Answers queries without checking the invariants of the records. Operations that search for damage, erase or
    /// reseal also process damaged records.
    async fn read_as_is(&self, queries: Vec<Query>) -> Result<Answers, StoreError> {
        self.0.engine.unchecked().read(queries).await
    }

    /// Commits batches without checking the invariants of the records that guards read, for the same operations.
    async fn commit_as_is(&self, batches: Vec<Batch>) -> Result<Vec<Applied>, StoreError> {
        self.0.engine.commit_as_is(batches).await
    }

    /// Returns the record with this key.
    async fn record(&self, key: Key) -> Result<Option<Record>, StoreError> {
        self.read(vec![Query::Record(key)]).await?.record()
    }

    /// Returns the record with this key, as it survives a failover.
    async fn record_confirmed(&self, key: Key) -> Result<Option<Record>, StoreError> {
        self.read_confirmed(vec![Query::Record(key)]).await?.record()
    }

    /// Returns the record with this key; `None` once the engine has confirmed that a failover did not lose it, and will
    /// not undo its removal.
    async fn record_unless_lost(&self, key: Key) -> Result<Option<Record>, StoreError> {
        match self.record(key.clone()).await? {
            None if self.engine().may_be_ahead() => {
                self.unless_records_were_lost(()).await?;
                self.record_confirmed(key).await
            }
            None => self.unless_records_were_lost(None).await,
            found => Ok(found),
        }
    }

    async fn commit(&self, batch: Batch) -> Result<Applied, StoreError> {
        only_answer(self.engine().commit(vec![batch]).await?)
    }

    /// Commits a batch without a timeout, so that its outcome is known.
    async fn commit_until_answered(&self, batch: Batch) -> Result<Applied, StoreError> {
        only_answer(self.engine().commit_until_answered(vec![batch]).await?)
    }

    /// Returns [`StoreError::Full`] while little room is left, which is reserved for completing open transactions.
    fn check_room(&self) -> Result<(), StoreError> {
        if self.engine().is_nearly_full() { Err(StoreError::Full) } else { Ok(()) }
    }

    /// Returns an answer that is true unless records were lost, once the engine has confirmed that a failover lost
    /// none.
    async fn unless_records_were_lost<T>(&self, answer: T) -> Result<T, StoreError> {
        self.engine().confirm().await?;
        Ok(answer)
    }
}

/// The names of the operations, for metrics and traces.
pub const OPERATIONS: &[&str] = &[
    "abandon_attempts",
    "accept_invite",
    "add_day_figures",
    "add_operator",
    "append_audit",
    "append_client_log",
    "ask_grant",
    "audit",
    "audit_head",
    "audit_log",
    "backlog",
    "balance",
    "check_in",
    "choose_intent_key",
    "chosen_intent_key",
    "claim_delivery",
    "client_log",
    "complete_transaction",
    "confirm_absence",
    "consents",
    "create_app",
    "create_client",
    "create_event",
    "create_key",
    "day_figures",
    "decide_grant",
    "due_deliveries",
    "end_console_session",
    "end_order_lease",
    "end_provider_sessions",
    "end_session",
    "end_sessions",
    "erase",
    "expire_transaction",
    "export_client",
    "find_invite",
    "find_key",
    "find_operator",
    "find_signing_in",
    "find_user",
    "flow_deliveries",
    "forget_delivery",
    "grant_requests",
    "has_moved",
    "import_client",
    "imported_at",
    "invite_user",
    "is_watched",
    "keep_consent",
    "keep_logo",
    "keep_refusal",
    "key_uses",
    "lacks_credits",
    "lapse_flow",
    "lapsed_flows",
    "last_sweep",
    "ledger_entries",
    "list_apps",
    "list_clients",
    "list_events",
    "list_flows",
    "list_guests",
    "list_keys",
    "list_registrations",
    "list_sessions",
    "list_users",
    "load_app",
    "load_client",
    "load_console_session",
    "load_delivery",
    "load_event",
    "load_event_of",
    "load_evidence",
    "load_flow",
    "load_idempotent_answer",
    "load_intent",
    "load_key",
    "load_logo",
    "load_registration",
    "load_session",
    "load_transaction",
    "load_transaction_with_app",
    "load_user",
    "load_webhook",
    "move_credits",
    "note_key_use",
    "note_page",
    "note_poll",
    "open_console_session",
    "open_flow",
    "open_session",
    "open_transaction",
    "operators",
    "patch_app",
    "patch_client",
    "patch_event",
    "patch_user",
    "prolong_console_session",
    "prolong_session",
    "publish_snapshot",
    "provider_sessions_ended",
    "refusals",
    "remove_logo",
    "remove_user",
    "report_flow",
    "reseal",
    "reset_user",
    "retire_key",
    "revoke_operator",
    "set_webhook_url",
    "settle_audit_push",
    "settle_delivery",
    "summarise_transactions",
    "sweep",
    "switch_session",
    "take_audit_push",
    "take_order_lease",
    "take_session",
    "use_code",
    "use_recovery_code",
    "watch_nodes",
    "watch_transaction",
    "webhook_urls",
];

/// Counts calls of an operation in the metrics.
fn count_calls(operation: &'static str, times: usize) {
    debug_assert!(OPERATIONS.contains(&operation), "OPERATIONS lacks {operation}");
    metrics::counter!("sakshi_store_operations_total", "operation" => operation).increment(times as u64);
}

/// Returns the answer to a single batch.
fn only_answer(applied: Vec<Applied>) -> Result<Applied, StoreError> {
    applied.into_iter().next().ok_or_else(|| StoreError::unreadable("an answer"))
}

/// Returns a new random id, by which an engine recognises the retry of a call.
fn new_call_id() -> CallId {
    *Uuid::new_v4().as_bytes()
}

/// Returns true if a batch was applied.
const fn is_done(applied: &Applied) -> bool {
    matches!(applied, Applied::Done { .. })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:?})", self.0.engine)
    }
}

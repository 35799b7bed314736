//! The trait that every store implements.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Duration;

use sakshi_domain::credits::{CreditMove, LedgerEntry};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Subject};
use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, TxnId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyDigest};
use sakshi_domain::time::Timestamp;
use tokio::sync::broadcast;

use crate::error::StoreError;
use crate::flows::{FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlow, ReportFlowOutcome, SealedPayload};
use crate::record::{Registration, TransactionRecord};
use crate::session::{SessionDigest, SessionRecord};
use crate::transition::{
    Audit, CompleteOutcome, CompleteTransaction, CreateEvent, CreateEventOutcome, CreditOutcome, IdempotencyScope, IdempotentAnswer,
    KeyGrant, OpenOutcome, OpenTransaction, OrderLease, Page, PageRequest, PatchEventOutcome, Retention, Rows, Swept,
};

/// The answer of a store, to be awaited on any thread.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// Named, atomic, repeatable transitions.
///
/// A future that is dropped may or may not have taken effect; one that answers `Ok` is durable.
pub trait Store: Debug + Send + Sync + 'static {
    /// Checks that the event, if it is for one, takes guests now; checks and debits the balance,
    /// writes the transaction with its ledger entry, counts the scan, and keeps the answer for its
    /// idempotency key, or does none of it. Repeatable by transaction id.
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome>;

    /// Ends a pending transaction that is in time by the store's clock, remembers its credential
    /// and queues its webhook if it has a URL. A guest who passed is registered if the event has a
    /// place *now*, and ends as refused otherwise; only a registration queues the event's webhook,
    /// to its URL of the moment. Repeatable by transaction id and answer.
    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome>;

    /// The transaction, while it is retained.
    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>>;

    /// The same for a node that keeps a copy of it while it waits: [`Store::ended_elsewhere`] tells when another node has
    /// ended it.
    fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.load_transaction(id)
    }

    /// The same with its app, which says how a webhook is written.
    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>>;

    /// The answer kept under an idempotency key, while it is replayed.
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>>;

    /// Lets one request place the order of its idempotency key, for as long as it lasts; `false` while
    /// another one may, on any node. Repeatable by its holder.
    ///
    /// A store of one node has nobody else to keep waiting.
    fn take_order_lease(&self, _lease: OrderLease, _lasting: Duration) -> StoreFuture<bool> {
        Box::pin(ready(Ok(true)))
    }

    /// Gives a lease back before its end, if it is still this holder's.
    fn end_order_lease(&self, _lease: OrderLease) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }

    /// Creates an event, and keeps the answer for its idempotency key. Repeatable by event id.
    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateEventOutcome>;

    /// The event with its counts as of now.
    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>>;

    /// The app's events by creation time.
    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>>;

    /// Changes an event of this app, by the store's clock and its counts of the moment.
    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome>;

    /// The registered guests, in the order in which they were registered.
    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>>;

    /// Opens a flow, and keeps the answer for its idempotency key. Repeatable by flow id.
    fn open_flow(&self, open: OpenFlow) -> StoreFuture<OpenFlowOutcome>;

    /// Takes in what an upstream reports of a flow: in one step its standing and the sealed payload
    /// are stored, and its webhook is queued if one is due and a URL is known at this moment; each
    /// webhook at most once. Repeatable by the report's content.
    fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome>;

    /// Ends a document as expired, and queues its webhook, if an invitation has ended by the store's
    /// clock.
    fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome>;

    /// Documents whose invitation has ended and that have not been told so, longest ago first.
    fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>>;

    /// The flow of this app, while it is retained, with what was reported of it last.
    fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>>;

    /// A flow of any app with what was queued of it, for the operator, while the flow is retained.
    fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>>;

    /// The body of a flow's webhook, while its delivery has not ended and while its result is
    /// retained.
    fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<SealedPayload>>;

    /// Registers where webhooks of an API type go, or removes that; what the app has registered from
    /// now on, or `None` when there is no such app.
    fn set_webhook_url(&self, app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>>;

    /// What the app has registered.
    fn webhook_urls(&self, app: AppId) -> StoreFuture<Option<RegisteredUrls>>;

    /// Grants or adjusts credits. Repeatable by kind and reference.
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome>;

    /// The balance, or `None` for an unknown client.
    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>>;

    /// The client's ledger, oldest first.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>>;

    /// Recomputes every client's ledger and compares it with the balance.
    fn audit(&self) -> StoreFuture<Vec<Audit>>;

    /// Creates a client. Repeatable by client id.
    fn create_client(&self, client: Client) -> StoreFuture<()>;

    /// All clients by creation time.
    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>>;

    /// Creates an app; `false` when its client does not exist. Repeatable by app id.
    fn create_app(&self, app: App) -> StoreFuture<bool>;

    /// The app.
    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>>;

    /// Changes an app; `None` when there is no such app.
    fn patch_app(&self, app: AppId, patch: AppPatch) -> StoreFuture<Option<App>>;

    /// The apps of a client by creation time.
    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>>;

    /// Stores a key's digest; `false` when its client does not exist. Repeatable by key id.
    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool>;

    /// The keys of a client by creation time, revoked ones included.
    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>>;

    /// Changes when a key stops working: `revoked_at` at once, `expires_at` later. `None` when
    /// there is no such key. A key that is revoked stays revoked as of the first time.
    fn retire_key(&self, key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>>;

    /// The key with this digest, together with an app.
    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>>;

    /// Keeps a session. Repeatable by its digest; what it stands for never changes.
    fn open_session(&self, session: SessionRecord) -> StoreFuture<()>;

    /// The session, unless its time has passed by the store's clock.
    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>>;

    /// Keeps a session until then, at most until its own end; `false` when it has ended before.
    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool>;

    /// Ends a session. Repeatable.
    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()>;

    /// Deliveries that wait for their attempt by this node, in order, after a position; of one
    /// origin or of all.
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>>;

    /// Takes the one permission to attempt a delivery; `false` when it was taken before.
    fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool>;

    /// Records what became of the attempt. Repeatable; the first record stands, but `unknown` gives
    /// way to the record of who made the attempt after all.
    fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()>;

    /// The delivery of a subject, for the operator.
    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>>;

    /// Marks attempts that were left unfinished as `unknown`: those of this node's earlier life, and
    /// those of nodes that are gone; how many.
    fn abandon_attempts(&self) -> StoreFuture<u64>;

    /// Removes at most `limit` records of each kind whose time has passed: completed transactions
    /// after their result's, expired ones and events as the retention says, flows and their reports
    /// after their own, never one whose delivery has not ended, and no event before its transactions.
    fn sweep(&self, retention: Retention, limit: usize) -> StoreFuture<Swept>;

    /// Whether a write would succeed now.
    fn check(&self) -> StoreFuture<()>;

    /// Transactions that this node opened or watches and another one ends, from now on; `None` when there are no other
    /// nodes. One may go unannounced: whoever waits for it looks for itself now and then.
    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>>;

    /// Ends this node's part: it begins no further attempt, and others take what waits for it.
    fn leave(&self) -> StoreFuture<()>;
}

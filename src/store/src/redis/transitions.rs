//! The trait, carried out by what the other files add to the shared part.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

use super::{RedisStore, Shared};
use crate::error::StoreError;
use crate::flows::reporting::{self, Keeper as _};
use crate::flows::{FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlow, ReportFlowOutcome, SealedPayload};
use crate::record::{CompletedRecord, Registration, TransactionRecord};
use crate::session::{SessionDigest, SessionRecord};
use crate::store::{Store, StoreFuture};
use crate::transition::{
    Audit, CompleteOutcome, CompleteTransaction, CreateEvent, CreateEventOutcome, CreditOutcome, IdempotencyScope, IdempotentAnswer,
    KeyGrant, OpenOutcome, OpenTransaction, OrderLease, Page, PageRequest, PatchEventOutcome, Retention, Rows, Swept,
};

impl RedisStore {
    /// Carries a transition out on its own share of the store, from the first time that somebody asks
    /// for its answer, as a task of its own: it may hold what others wait for (a connection that is
    /// being opened), and an actor looks at no answer while it waits for another one.
    fn carry_out<T, F>(&self, transition: impl FnOnce(Arc<Shared>) -> F) -> StoreFuture<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let work = transition(Arc::clone(&self.shared));
        Box::pin(async move {
            let ended = tokio::spawn(work).await;
            ended.unwrap_or_else(|_| Err(StoreError::Unavailable("the thread that asked it is ending".to_owned())))
        })
    }
}

impl Store for RedisStore {
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.carry_out(|store| async move { store.open_transaction(open).await })
    }

    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.carry_out(|store| async move { store.complete_transaction(complete).await })
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.carry_out(move |store| async move { store.load_transaction(id).await })
    }

    fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.carry_out(move |store| async move { store.watch_transaction(id).await })
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.carry_out(move |store| async move {
            let Some(record) = store.load_transaction(id).await? else { return Ok(None) };
            let (TransactionRecord::Pending(opened) | TransactionRecord::Completed(CompletedRecord { opened, .. })) = &record;
            let app = store.load_app(opened.app.clone()).await?;
            Ok(Some((record, app)))
        })
    }

    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.carry_out(move |store| async move { store.load_idempotent_answer(scope).await })
    }

    fn take_order_lease(&self, lease: OrderLease, lasting: Duration) -> StoreFuture<bool> {
        self.carry_out(move |store| async move { store.take_order_lease(lease, lasting).await })
    }

    fn end_order_lease(&self, lease: OrderLease) -> StoreFuture<()> {
        self.carry_out(move |store| async move { store.end_order_lease(lease).await })
    }

    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateEventOutcome> {
        self.carry_out(|store| async move { store.create_event(create).await })
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        self.carry_out(move |store| async move { store.load_event(id).await })
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.carry_out(move |store| async move { store.list_events(app, page).await })
    }

    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome> {
        self.carry_out(move |store| async move { store.patch_event(id, app, patch).await })
    }

    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.carry_out(move |store| async move { store.list_registrations(id, rows).await })
    }

    fn open_flow(&self, open: OpenFlow) -> StoreFuture<OpenFlowOutcome> {
        self.carry_out(|store| async move { store.open_flow(open).await })
    }

    fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        self.carry_out(|store| reporting::report(store, report))
    }

    fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome> {
        self.carry_out(move |store| store.lapse_flow(id, result_ttl))
    }

    fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>> {
        self.carry_out(move |store| async move { store.lapsed_flows(limit).await })
    }

    fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>> {
        self.carry_out(move |store| reporting::load(store, id, app))
    }

    fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        self.carry_out(move |store| reporting::deliveries(store, id))
    }

    fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<SealedPayload>> {
        self.carry_out(
            move |store| async move { Ok(store.payload(flow, webhook).await?.map(|bytes| SealedPayload::new(flow, webhook, bytes))) },
        )
    }

    fn set_webhook_url(&self, app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        self.carry_out(move |store| async move { store.set_webhook_url(app, api_type, url).await })
    }

    fn webhook_urls(&self, app: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.carry_out(|store| async move { store.webhook_urls(app).await })
    }

    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.carry_out(|store| async move { store.move_credits(client, movement).await })
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.carry_out(|store| async move { store.balance(client).await })
    }

    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.carry_out(move |store| async move { store.statement(client, page).await })
    }

    fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.carry_out(|store| async move { store.audit().await })
    }

    fn create_client(&self, client: Client) -> StoreFuture<()> {
        self.carry_out(|store| async move { store.create_client(client).await })
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.carry_out(move |store| async move { store.list_clients(page).await })
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        self.carry_out(|store| async move { store.create_app(app).await })
    }

    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>> {
        self.carry_out(|store| async move { store.load_app(app).await })
    }

    fn patch_app(&self, app: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        self.carry_out(|store| async move { store.patch_app(app, patch).await })
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        self.carry_out(|store| async move { store.list_apps(client).await })
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.carry_out(move |store| async move { store.create_key(key, digest).await })
    }

    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        self.carry_out(|store| async move { store.list_keys(client).await })
    }

    fn retire_key(&self, key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        self.carry_out(move |store| async move { store.retire_key(key, revoked_at, expires_at).await })
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.carry_out(move |store| async move { store.find_key(digest, app).await })
    }

    fn open_session(&self, session: SessionRecord) -> StoreFuture<()> {
        self.carry_out(|store| async move { store.open_session(session).await })
    }

    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.carry_out(move |store| async move { store.load_session(digest).await })
    }

    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.carry_out(move |store| async move { store.prolong_session(digest, until).await })
    }

    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        self.carry_out(move |store| async move { store.end_session(digest).await })
    }

    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.carry_out(move |store| async move {
            if store.has_left() { Ok(Vec::new()) } else { store.due_deliveries(after, origin, limit).await }
        })
    }

    fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool> {
        self.carry_out(move |store| async move { if store.has_left() { Ok(false) } else { store.claim_delivery(id, subject).await } })
    }

    fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.carry_out(move |store| async move { store.settle_delivery(id, subject, attempt).await })
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.carry_out(move |store| async move { store.load_delivery(subject).await })
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.carry_out(|store| async move { store.abandon(&store.node).await })
    }

    /// Nothing: every key goes by itself when its time has passed.
    fn sweep(&self, _: Retention, _: usize) -> StoreFuture<Swept> {
        Box::pin(ready(Ok(Swept::default())))
    }

    fn check(&self) -> StoreFuture<()> {
        self.carry_out(|store| async move { store.check().await })
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        Some(self.shared.ended_elsewhere.subscribe())
    }

    fn leave(&self) -> StoreFuture<()> {
        // Also when others cannot be told at once: they will notice.
        self.shared.left.store(true, Ordering::Relaxed);
        let background = Arc::clone(&self.background);
        Box::pin(async move { background.leave().await })
    }
}

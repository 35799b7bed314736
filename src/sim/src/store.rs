//! The store as a node sees it: one atomic step per call, reached over a network that delays calls, loses them before or after
//! they took effect, and is away at times. A node that was killed gets no answer any more, and its calls take no effect.
//!
//! A store may have a replica that lags and takes over. Then what was written meanwhile is lost, and whoever wrote it got no answer,
//! if answers wait for the replica.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::client_transfer::{ClientTransfer, ImportedRecord};
use sakshi_domain::credits::{CreditMove, LedgerEntry};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery, Subject};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, OperatorId, TxnId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;
use sakshi_store::embedded::EmbeddedStore;
use sakshi_store::{
    Audit, AuditHead, AuditLog, AuditRecord, Backlog, ChosenIntentKey, CompleteOutcome, CompleteTransaction, CreateEvent, CreateOutcome,
    CreditOutcome, Credits, EncryptionKeyId, Erased, Erasure, Events, ExpireOutcome, FlowDeliveries, FlowRecord, Flows, Idempotency,
    IdempotencyScope, IdempotentAnswer, IntentKeyChoice, KeyGrant, LapseFlowOutcome, OpenFlow, OpenOutcome, OpenTransaction, Operators,
    Outbox, Page, PageRequest, PatchEventOutcome, Refusals, Registration, ReportFlow, ReportFlowOutcome, Reseal, ResealCursor, Resealed,
    Retention, Rows, SealedPayload, SessionDigest, SessionRecord, Sessions, StoreError, StoreFuture, Swept, Tenancy, TransactionRecord,
    Transactions, Transfers, Upkeep,
};
use tokio::sync::broadcast;
use tokio::time::sleep;

use crate::world::{CallPlan, Deployment, Fate, Incarnation, World};

/// How long a call that is lost is waited for.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// The store of one start of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeStore {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
}

fn lost() -> StoreError {
    StoreError::Unavailable("the call was lost".to_owned())
}

fn refused<T: Send + 'static>() -> StoreFuture<T> {
    Box::pin(async { Err(StoreError::Unavailable("the disk is full".to_owned())) })
}

impl NodeStore {
    /// Makes a call that reads. It goes on when nobody waits for it any more.
    fn call<T: Send + 'static>(&self, work: impl FnOnce(&EmbeddedStore) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        if !self.world.is_rough() && !self.incarnation.is_dead() {
            return work(&self.world.store());
        }
        let plan = self.world.plan();
        let called = self.clone().called(plan, false, work);
        self.answered(plan, called)
    }

    async fn called<T>(self, plan: CallPlan, writes: bool, work: impl FnOnce(&EmbeddedStore) -> StoreFuture<T>) -> Result<T, StoreError> {
        let begun = self.incarnation.steps.read().await;
        sleep(plan.before).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        if plan.fate == Fate::LostBefore {
            drop(begun);
            sleep(CALL_TIMEOUT).await;
            return Err(lost());
        }
        let answer = work(&self.world.store()).await;
        drop(begun);
        let is_kept = !writes || self.is_replicated().await;
        sleep(plan.after).await;
        if self.incarnation.is_dead() {
            return pending().await;
        }
        if plan.fate == Fate::LostAfter || !is_kept {
            sleep(CALL_TIMEOUT).await;
            return Err(lost());
        }
        answer
    }

    /// Makes a call that changes something, which a full store refuses.
    fn change<T: Send + 'static>(&self, work: impl FnOnce(&EmbeddedStore) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        let (world, plan) = (Arc::clone(&self.world), self.world.plan());
        let called = self.clone().called(plan, true, move |store| if world.is_full() { refused() } else { work(store) });
        self.answered(plan, called)
    }

    /// Makes a call that changes something, and sometimes makes it again with the same arguments, as the store on Redis does with a step
    /// whose reply is lost.
    fn change_repeatably<T: Send + 'static>(&self, work: impl Fn(&EmbeddedStore) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        if !self.world.goes_wrong("repeated-steps", 200) {
            return self.change(work);
        }
        let (node, pause) = (self.clone(), self.world.pause(10));
        self.change(move |store| {
            let first = work(store);
            Box::pin(async move {
                // Nobody hears this answer.
                let _ = first.await;
                sleep(pause).await;
                if node.incarnation.is_dead() {
                    return pending().await;
                }
                work(&node.world.store()).await
            })
        })
    }

    /// Makes a call that reads what must not be lost when its answer was given.
    fn confirm<T: Send + 'static>(&self, work: impl FnOnce(&EmbeddedStore) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        let plan = self.world.plan();
        let called = self.clone().called(plan, true, work);
        self.answered(plan, called)
    }

    /// Waits until the replica has what was just written; whether it ever will.
    async fn is_replicated(&self) -> bool {
        if self.world.deployment != Deployment::Replicated || !self.world.is_replica_behind() {
            return true;
        }
        self.world.replication.subscribe().recv().await.unwrap_or(false)
    }

    /// Makes a call again until it is answered, as the store on Redis does for a step that changes nothing when it is repeated and
    /// whose outcome must be known.
    fn call_until_answered<T: Send + 'static>(&self, work: impl Fn(&EmbeddedStore) -> StoreFuture<T> + Send + 'static) -> StoreFuture<T> {
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            sleep(plan.before).await;
            while !node.incarnation.is_dead() {
                if node.world.plan().fate == Fate::LostBefore {
                    sleep(CALL_TIMEOUT).await;
                    continue;
                }
                let answer = if node.world.is_full() { refused() } else { work(&node.world.store()) }.await;
                if !node.is_replicated().await {
                    continue;
                }
                // An answer that is lost comes later: whoever repeats the step is told the same.
                sleep(if plan.fate == Fate::LostAfter { CALL_TIMEOUT } else { plan.after }).await;
                if !node.incarnation.is_dead() {
                    return answer;
                }
            }
            pending().await
        };
        self.answered(plan, called)
    }

    /// What the caller gets of a call.
    fn answered<T: Send + 'static>(
        &self,
        plan: CallPlan,
        called: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let called = tokio::spawn(called);
        Box::pin(async move {
            let answer = called.await.unwrap_or_else(|_| Err(lost()));
            assert!(plan.fate != Fate::Panics, "a panic in whoever called");
            answer
        })
    }

    /// Tells the other nodes that a transaction has ended; some notices are lost.
    fn tell(&self, id: TxnId) {
        let (world, incarnation) = (Arc::clone(&self.world), Arc::clone(&self.incarnation));
        if world.goes_wrong("lost-notices", 1_000) {
            return;
        }
        let delay = world.pause(10);
        tokio::spawn(async move {
            sleep(delay).await;
            if !incarnation.is_dead() {
                // There may be no other node.
                let _ = world.notices.send(id);
            }
        });
    }
}

/// Hands calls to the store.
macro_rules! calls {
    ($($trait:ident { $($how:ident $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* })*) => { $(
        impl $trait for NodeStore {
            $(fn $name(&self, $($arg: $type),*) -> StoreFuture<$answer> {
                self.world.reach(concat!("step ", stringify!($name)));
                self.$how(move |store| store.$name($($arg),*))
            })*
        }
    )* };
}

calls! {
    Idempotency { confirm load_idempotent_answer(scope: IdempotencyScope) -> Option<IdempotentAnswer>; }
    Events {
        change create_event(create: CreateEvent) -> CreateOutcome;
        call load_event(id: EventId) -> Option<Event>;
        call list_events(app: AppId, page: PageRequest) -> Page<Event>;
        change patch_event(id: EventId, app: AppId, patch: EventPatch) -> PatchEventOutcome;
        call list_registrations(id: EventId, rows: Rows) -> Page<Registration>;
    }
    Flows {
        change open_flow(open: OpenFlow) -> CreateOutcome;
        change report_flow(report: ReportFlow) -> ReportFlowOutcome;
        change lapse_flow(id: FlowId, result_ttl: Duration) -> LapseFlowOutcome;
        call lapsed_flows(limit: usize) -> Vec<FlowId>;
        call load_flow(id: FlowId, app: AppId) -> Option<FlowRecord>;
        call flow_deliveries(id: FlowId) -> Option<FlowDeliveries>;
        call load_webhook(flow: FlowId, webhook: DedupDigest) -> Option<SealedPayload>;
    }
    Credits {
        change move_credits(client: ClientId, movement: CreditMove) -> CreditOutcome;
        call balance(client: ClientId) -> Option<u64>;
        call statement(client: ClientId, page: PageRequest) -> Page<LedgerEntry>;
        call audit() -> Vec<Audit>;
    }
    Tenancy {
        change create_client(client: Client) -> ();
        call list_clients(page: PageRequest) -> Page<Client>;
        call load_client(client: ClientId) -> Option<Client>;
        change patch_client(client: ClientId, patch: ClientPatch, at: Timestamp) -> Option<Client>;
        change create_app(app: App) -> bool;
        call load_app(app: AppId) -> Option<App>;
        change patch_app(app: AppId, patch: AppPatch) -> Option<App>;
        call list_apps(client: ClientId) -> Vec<App>;
        change create_key(key: ApiKeyRecord, digest: KeyDigest) -> bool;
        call list_keys(client: ClientId) -> Vec<ApiKeyRecord>;
        change retire_key(key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> Option<ApiKeyRecord>;
        call find_key(digest: KeyDigest, app: AppId) -> Option<KeyGrant>;
        change set_webhook_url(app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> Option<RegisteredUrls>;
        call webhook_urls(app: AppId) -> Option<RegisteredUrls>;
    }
    Transfers {
        call export_client(client: ClientId) -> Option<ClientTransfer>;
        change import_client(transfer: ClientTransfer, at: Timestamp) -> Result<Vec<ImportedRecord>, Invalid>;
        call imported_at(client: ClientId) -> Option<Timestamp>;
    }
    Sessions {
        change open_session(session: SessionRecord) -> ();
        call load_session(digest: SessionDigest) -> Option<SessionRecord>;
        change prolong_session(digest: SessionDigest, until: Timestamp) -> bool;
        change end_session(digest: SessionDigest) -> ();
    }
    Refusals {
        change keep_refusal(app: AppId, refused: RefusedRequest) -> ();
        call refusals(app: AppId) -> Vec<RefusedRequest>;
    }
    AuditLog {
        change append_audit(entry: String) -> AuditRecord;
        call audit_log(after: u64, limit: u32) -> Vec<AuditRecord>;
        call audit_head() -> AuditHead;
    }
    Operators {
        change add_operator(operator: OperatorRecord, token: KeyDigest) -> ();
        call operators() -> Vec<OperatorRecord>;
        call find_operator(token: KeyDigest) -> Option<OperatorRecord>;
        change revoke_operator(operator: OperatorId, at: Timestamp) -> Option<OperatorRecord>;
    }
    Erasure { change erase(subject: ErasureSubject) -> Erased; }
    Upkeep {
        change sweep(now: Timestamp, retention: Retention, limit: usize) -> Swept;
        call last_sweep() -> Option<Timestamp>;
        call check() -> ();
        call accept_loss() -> Option<Timestamp>;
        call leave() -> ();
    }
    IntentKeyChoice {
        call chosen_intent_key() -> Option<ChosenIntentKey>;
        change choose_intent_key(chosen: Option<ChosenIntentKey>) -> ();
    }
}

impl Reseal for NodeStore {
    fn reseal(&self, from: ResealCursor, limit: usize) -> StoreFuture<Resealed> {
        self.world.reach("step reseal");
        self.confirm(move |store| store.reseal(from, limit))
    }

    fn sealing_key(&self) -> EncryptionKeyId {
        self.world.store().sealing_key()
    }
}

impl Outbox for NodeStore {
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.world.reach("step due_deliveries");
        self.call(move |store| store.due_deliveries(after, origin, limit))
    }

    fn claim_delivery(&self, id: DeliveryId, subject: Subject) -> StoreFuture<bool> {
        self.world.reach("step claim_delivery");
        self.call_until_answered(move |store| store.claim_delivery(id, subject))
    }

    fn settle_delivery(&self, id: DeliveryId, subject: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.world.reach("step settle_delivery");
        self.call_until_answered(move |store| store.settle_delivery(id, subject, attempt))
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.world.reach("step load_delivery");
        self.call(move |store| store.load_delivery(subject))
    }

    fn backlog(&self) -> StoreFuture<Backlog> {
        self.world.reach("step backlog");
        self.call(|store| store.backlog())
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.world.reach("step abandon_attempts");
        self.change(|store| store.abandon_attempts())
    }
}

impl Transactions for NodeStore {
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.world.reach("step open_transaction");
        self.change_repeatably(move |store| store.open_transaction(open.clone()))
    }

    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.world.reach("step complete_transaction");
        let (id, node) = (complete.id, self.clone());
        let ended = self.change_repeatably(move |store| store.complete_transaction(complete.clone()));
        Box::pin(async move {
            let outcome = ended.await;
            if matches!(outcome, Ok(CompleteOutcome::Completed { .. })) {
                node.world.may_be_full();
                node.tell(id);
            }
            outcome
        })
    }

    fn expire_transaction(&self, id: TxnId) -> StoreFuture<ExpireOutcome> {
        self.world.reach("step expire_transaction");
        let (ended, node) = (self.change_repeatably(move |store| store.expire_transaction(id)), self.clone());
        Box::pin(async move {
            let outcome = ended.await;
            node.tell(id);
            outcome
        })
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.world.reach("step load_transaction");
        self.confirm(move |store| store.load_transaction(id))
    }

    fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.world.reach("step watch_transaction");
        let (plan, node) = (self.world.plan(), self.clone());
        let called = async move {
            if node.world.deployment == Deployment::Alone {
                // It comes after the steps that were begun before.
                drop(node.incarnation.steps.write().await);
            }
            node.clone().called(plan, true, move |store| store.watch_transaction(id)).await
        };
        self.answered(plan, called)
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.world.reach("step load_transaction_with_app");
        self.confirm(move |store| store.load_transaction_with_app(id))
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        (self.world.deployment != Deployment::Alone).then(|| self.world.notices.subscribe())
    }
}

//! The trait, carried out by the writer and the readers.
//!
//! Boxes are sealed before a transition is handed to the writer and opened after its answer, on
//! the caller's side.

use std::future::ready;
use std::sync::Arc;
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

use super::events::{Creation, SealedEvent};
use super::job::Session;
use super::opening::Opening;
use super::{EmbeddedStore, completion, deliveries, events, flows, guests, idempotency, ledger, opening, retention, sessions, tenancy};
use crate::error::StoreError;
use crate::flows::{
    FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, OpenFlowOutcome, Opening as FlowOpening, ReportFlow, ReportFlowOutcome,
    SealedPayload, reporting,
};
use crate::record::{Registration, TransactionRecord};
use crate::sealing::{SealedTerms, seal_terms};
use crate::session::{SealedSession, SessionDigest, SessionRecord};
use crate::store::{Store, StoreFuture};
use crate::transition::{
    Audit, CompleteOutcome, CompleteTransaction, CreateEvent, CreateEventOutcome, CreditOutcome, IdempotencyScope, IdempotentAnswer,
    KeyGrant, OpenOutcome, OpenTransaction, Page, PageRequest, PatchEventOutcome, Retention, Rows, Swept,
};
use crate::vault::Vault;

fn prepared(vault: &Vault, open: OpenTransaction) -> Result<Opening, StoreError> {
    let OpenTransaction { pending, cost, idempotency } = open;
    let origin = pending.terms.webhook_url.as_ref().map(|url| url.origin());
    let terms = seal_terms(vault, pending.id, &pending.terms)?;
    Ok(Opening { pending, terms, origin, cost, idempotency })
}

fn prepared_event(vault: &Vault, create: CreateEvent) -> Result<Creation, StoreError> {
    let CreateEvent { event: Event { id, client, app, created_at, terms, .. }, idempotency } = create;
    Ok(Creation { id, client, app, created_at, terms: SealedTerms::seal(vault, id, &terms)?, idempotency })
}

impl Store for EmbeddedStore {
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        let opening = match prepared(self.vault(), open) {
            Ok(opening) => opening,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let weight = opening.terms.len() + opening.idempotency.as_ref().map_or(0, |kept| kept.answer.ciphertext.len());
        self.write(weight, move |session| opening::open(session, &opening), |outcome, _| Ok(outcome))
    }

    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        let weight = complete.outcome.ciphertext.len();
        self.write(weight, move |session| completion::complete(session, &complete), |done, vault| done.unsealed(vault))
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        let unsealed = |found: Option<completion::Found>, vault: &Vault| found.map(|found| found.unsealed(vault)).transpose();
        self.read(move |session| completion::find(session, id), unsealed)
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        let with_app = move |session: &Session<'_>| {
            let Some(found) = completion::find(session, id)? else { return Ok(None) };
            let app = tenancy::app(session, &found.opened.app)?;
            Ok(Some((found, app)))
        };
        self.read(with_app, |found, vault| {
            let Some((found, app)) = found else { return Ok(None) };
            Ok(Some((found.unsealed(vault)?, app.map(|app| app.unsealed(vault)).transpose()?)))
        })
    }

    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.read(move |session| idempotency::answered(session, &scope), |found, _| Ok(found.map(|(_, kept)| kept)))
    }

    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateEventOutcome> {
        let creation = match prepared_event(self.vault(), create) {
            Ok(creation) => creation,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let weight = creation.terms.weight() + creation.idempotency.as_ref().map_or(0, |kept| kept.answer.ciphertext.len());
        self.write(weight, move |session| events::create(session, &creation), |outcome, _| Ok(outcome))
    }

    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>> {
        let unsealed = |found: Option<SealedEvent>, vault: &Vault| found.map(|event| event.unsealed(vault)).transpose();
        self.read(move |session| events::find(session, id), unsealed)
    }

    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>> {
        self.read(
            move |session| events::list(session, &app, page),
            |Page { items, total }, vault| {
                let items = items.into_iter().map(|event| event.unsealed(vault)).collect::<Result<_, _>>()?;
                Ok(Page { items, total })
            },
        )
    }

    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome> {
        let vault = Arc::clone(self.vault());
        self.write(0, move |session| events::patch(session, &vault, id, &app, &patch), |patched, _| patched)
    }

    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.read(move |session| guests::list(session, id, rows), |page, _| Ok(page))
    }

    fn open_flow(&self, open: OpenFlow) -> StoreFuture<OpenFlowOutcome> {
        let opening = match FlowOpening::of(self.vault(), open) {
            Ok(opening) => opening,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.write(opening.weight(), move |session| flows::open(session, &opening), |outcome, _| Ok(outcome))
    }

    fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        Box::pin(reporting::report(Arc::new(self.clone()), report))
    }

    fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome> {
        Box::pin(reporting::lapse(Arc::new(self.clone()), id, result_ttl))
    }

    fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>> {
        self.read(move |session| flows::lapsed(session, limit), |lapsed, _| Ok(lapsed))
    }

    fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>> {
        Box::pin(reporting::load(Arc::new(self.clone()), id, app))
    }

    fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        Box::pin(reporting::deliveries(Arc::new(self.clone()), id))
    }

    fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<SealedPayload>> {
        let boxed = move |found: Option<_>, _: &Vault| Ok(found.map(|bytes| SealedPayload::new(flow, webhook, bytes)));
        self.read(move |session| flows::payload(session, flow, webhook), boxed)
    }

    fn set_webhook_url(&self, app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        let vault = Arc::clone(self.vault());
        let set = move |session: &Session<'_>| tenancy::set_url(session, &vault, &app, api_type, url.as_ref());
        self.write(0, set, |urls, _| urls.transpose())
    }

    fn webhook_urls(&self, app: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        let urls = |found: Option<tenancy::SealedReceiver>, vault: &Vault| found.map(|found| found.urls(vault)).transpose();
        self.read(move |session| tenancy::receiver(session, &app), urls)
    }

    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.write(0, move |session| ledger::move_credits(session, &client, &movement), |moved, _| Ok(moved))
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.read(move |session| ledger::balance(session, &client), |balance, _| Ok(balance))
    }

    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.read(move |session| ledger::statement(session, &client, page), |page, _| Ok(page))
    }

    fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.read(ledger::audit, |audits, _| Ok(audits))
    }

    fn create_client(&self, client: Client) -> StoreFuture<()> {
        self.write(0, move |session| tenancy::create_client(session, &client), |(), _| Ok(()))
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.read(move |session| tenancy::clients(session, page), |page, _| Ok(page))
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        let vault = Arc::clone(self.vault());
        self.write(0, move |session| tenancy::create_app(session, &vault, &app), |created, _| Ok(created))
    }

    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>> {
        let unsealed = |found: Option<tenancy::SealedApp>, vault: &Vault| found.map(|app| app.unsealed(vault)).transpose();
        self.read(move |session| tenancy::app(session, &app), unsealed)
    }

    fn patch_app(&self, app: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        let vault = Arc::clone(self.vault());
        self.write(0, move |session| tenancy::patch_app(session, &vault, &app, &patch), |patched, _| patched.transpose())
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        let unsealed = |apps: Vec<tenancy::SealedApp>, vault: &Vault| apps.iter().map(|app| app.unsealed(vault)).collect();
        self.read(move |session| tenancy::apps(session, &client), unsealed)
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.write(0, move |session| tenancy::create_key(session, &key, &digest), |created, _| Ok(created))
    }

    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        self.read(move |session| tenancy::keys(session, &client), |keys, _| Ok(keys))
    }

    fn retire_key(&self, key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        self.write(0, move |session| tenancy::retire_key(session, &key, revoked_at, expires_at), |key, _| Ok(key))
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.read(
            move |session| tenancy::find_key(session, &digest, &app),
            |found, vault| {
                let grant = |(key, app): (_, Option<tenancy::SealedApp>)| {
                    Ok(KeyGrant { key, app: app.map(|app| app.unsealed(vault)).transpose()? })
                };
                found.map(grant).transpose()
            },
        )
    }

    fn open_session(&self, session: SessionRecord) -> StoreFuture<()> {
        let sealed = SealedSession::of(self.vault(), &session);
        self.write(0, move |session| sessions::open(session, &sealed), |(), _| Ok(()))
    }

    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        let opened = |found: Option<SealedSession>, vault: &Vault| found.map(|session| session.opened(vault)).transpose();
        self.read(move |session| sessions::load(session, digest), opened)
    }

    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.write(0, move |session| sessions::prolong(session, digest, until), |prolonged, _| Ok(prolonged))
    }

    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        self.write(0, move |session| sessions::end(session, digest), |(), _| Ok(()))
    }

    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.read(
            move |session| deliveries::due(session, after, origin.as_deref(), limit),
            |due, vault| due.into_iter().map(|delivery| delivery.queued(vault)).collect(),
        )
    }

    fn claim_delivery(&self, id: DeliveryId, _: Subject) -> StoreFuture<bool> {
        self.write(0, move |session| deliveries::claim(session, id), |claimed, _| Ok(claimed))
    }

    fn settle_delivery(&self, id: DeliveryId, _: Subject, attempt: Attempt) -> StoreFuture<()> {
        self.write(0, move |session| deliveries::settle(session, id, &attempt), |(), _| Ok(()))
    }

    fn load_delivery(&self, subject: Subject) -> StoreFuture<Option<DeliveryRecord>> {
        self.read(move |session| deliveries::of_subject(session, subject), |found, _| Ok(found))
    }

    fn abandon_attempts(&self) -> StoreFuture<u64> {
        self.write(0, deliveries::abandon, |abandoned, _| Ok(abandoned))
    }

    fn sweep(&self, retention: Retention, limit: usize) -> StoreFuture<Swept> {
        self.write(0, move |session| retention::sweep(session, retention, limit), |swept, _| Ok(swept))
    }

    fn check(&self) -> StoreFuture<()> {
        self.write(0, retention::check, |(), _| Ok(()))
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        None
    }

    fn leave(&self) -> StoreFuture<()> {
        Box::pin(ready(Ok(())))
    }
}

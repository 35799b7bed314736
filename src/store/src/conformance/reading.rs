//! The answers to every query about a [`Workload`], so that two readings can be compared.
//!
//! Sealed values are opened, as the service does.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::day_figures::Day;
use sakshi_domain::delivery::Subject;
use sakshi_domain::time::Timestamp;

use super::guests::ALL;
use super::workload::Workload;
use crate::audit_log::AuditHead;
use crate::consents::{ConsentPosition, ConsentQuery};
use crate::{
    Guest, IdempotentAnswer, LogQuery, Registration, Sealed, SealedPayload, Store, StoreError, TransactionRecord,
};

/// An answer to a query, of any type.
trait Answer: Any + Debug + Send + Sync {
    fn equals(&self, other: &dyn Answer) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + Debug + PartialEq + Send + Sync> Answer for T {
    fn equals(&self, other: &dyn Answer) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

type AnswerResult = Result<Box<dyn Answer>, StoreError>;

/// The answers of a store to every query about a workload.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    answers: Vec<(String, AnswerResult)>,
    /// True if an audit of credits finds a fault.
    pub(crate) is_unbalanced: bool,
}

/// A query that two stores answer differently.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) query: String,
    /// The error of the other store; `None` if it gave another answer.
    pub(crate) refusal: Option<StoreError>,
    /// Both answers.
    pub(crate) answers: String,
}

impl Reading {
    /// Adds the answer to a query.
    fn record<T: Any + Debug + PartialEq + Send + Sync>(
        &mut self,
        query: impl Into<String>,
        answer: Result<T, StoreError>,
    ) {
        self.answers.push((query.into(), answer.map(|answer| Box::new(answer) as Box<dyn Answer>)));
    }

    /// Returns the queries that another store answers differently.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference> {
        assert_eq!(self.answers.len(), other.answers.len(), "both readings have the same queries");
        let pairs = self.answers.iter().zip(&other.answers);
        let differing = pairs.filter_map(|((query, expected), (_, actual))| {
            let query = query.clone();
            match (expected, actual) {
                (Ok(expected), Ok(actual)) if expected.equals(&**actual) => None,
                (Err(expected), Err(actual)) if expected == actual => None,
                (_, Ok(actual)) => {
                    Some(Difference { query, refusal: None, answers: format!("{expected:?} is now {actual:?}") })
                }
                (_, Err(refusal)) => Some(Difference { query, refusal: Some(refusal.clone()), answers: String::new() }),
            }
        });
        differing.collect()
    }

    /// Returns the queries that failed, with their errors.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&str, &StoreError)> {
        self.answers.iter().filter_map(|(query, answer)| Some((query.as_str(), answer.as_ref().err()?)))
    }

    /// Asks every query.
    pub(crate) async fn take(store: &Store, workload: &Workload, now: Timestamp) -> Self {
        let mut reading = Self::default();
        reading.read_client(store, workload).await;
        reading.read_verifications(store, workload).await;
        reading.read_guests(store, workload).await;
        reading.read_flows(store, workload).await;
        reading.read_logs(store, workload, now).await;
        reading
    }

    async fn read_client(&mut self, store: &Store, workload: &Workload) {
        let (client, app) = (&workload.client, &workload.app.app_id);
        self.record("balance", store.balance(client.clone()).await);
        self.record("ledger", store.statement(client.clone(), ALL).await);
        let audit = store.audit().await;
        self.is_unbalanced = audit.as_ref().is_ok_and(|audits| !audits.iter().all(crate::Audit::is_clean));
        self.record("audit of credits", audit);
        for (kind, reference) in
            [(EntryKind::Grant, "first"), (EntryKind::Grant, "grant 1"), (EntryKind::Adjust, "adjust 1")]
        {
            self.record("used reference", store.has_moved(client.clone(), kind, reference.into()).await);
        }
        self.record("clients", store.list_clients(ALL).await);
        self.record("client", store.load_client(client.clone()).await);
        self.record("app", store.load_app(app.clone()).await);
        self.record("apps", store.list_apps(client.clone()).await);
        self.record("key", store.find_key(workload.key, app.clone()).await);
        self.record("keys", store.list_keys(client.clone()).await);
        self.record("URLs of an app", store.webhook_urls(app.clone()).await);
        self.record("users", store.list_users(client.clone()).await);
        let email = workload.email.parse();
        self.record("sign-in", store.find_signing_in(email.unwrap()).await);
        self.record("session", store.load_session(workload.session).await);
    }

    async fn read_verifications(&mut self, store: &Store, workload: &Workload) {
        for id in &workload.txns {
            let record = store
                .load_transaction(*id)
                .await
                .and_then(|record| record.map(|record| open_transaction(store, record)).transpose());
            self.record("verification", record);
            self.record("delivery", store.load_delivery((*id).into()).await);
            self.record("intent", store.load_intent(*id).await);
            let proof = store.load_evidence(*id).await;
            self.record(
                "evidence",
                proof.and_then(|proof| proof.map(|proof| open(store, id.as_bytes(), &proof)).transpose()),
            );
        }
        self.record("summaries", store.summarise_transactions(workload.txns.clone()).await);
        for scope in &workload.scopes {
            let stored = store.load_idempotent_answer(*scope).await;
            let opened = stored.and_then(|stored| {
                let open_answer = |stored: IdempotentAnswer| {
                    Ok((stored.request, stored.until, open(store, &scope.digest, &stored.answer)?))
                };
                stored.map(open_answer).transpose()
            });
            self.record("response stored for an Idempotency-Key", opened);
        }
        self.record("due deliveries", store.first_due_deliveries(1_000).await);
        self.record("backlog", store.backlog().await);
    }

    async fn read_guests(&mut self, store: &Store, workload: &Workload) {
        let event = &workload.event;
        self.record("event", store.load_event(event.id).await);
        self.record("events", store.list_events(event.app.clone(), ALL).await);
        let guests = store.list_guests(event.id, ALL.into()).await.and_then(|page| {
            let open_guest = |guest: Guest| Ok((open(store, guest.txn.as_bytes(), &guest.name)?, guest));
            page.items.into_iter().map(open_guest).collect::<Result<Vec<_>, StoreError>>()
        });
        self.record("guests", guests);
        let registrations = store.list_registrations(event.id, ALL.into()).await.and_then(|page| {
            let open_registration = |Registration { guest, outcome }: Registration| {
                let [name, outcome] = [&guest.name, &outcome].map(|sealed| open(store, guest.txn.as_bytes(), sealed));
                Ok((guest, name?, outcome?))
            };
            page.items.into_iter().map(open_registration).collect::<Result<Vec<_>, StoreError>>()
        });
        self.record("registrations", registrations);
    }

    async fn read_flows(&mut self, store: &Store, workload: &Workload) {
        for flow in &workload.flows {
            let loaded = store.load_flow(flow.id, flow.app.clone()).await.and_then(|loaded| {
                let Some(loaded) = loaded else { return Ok(None) };
                let latest = loaded.latest.map(|payload| open_payload(store, payload)).transpose()?;
                Ok(Some((loaded.state, loaded.kept_until, latest)))
            });
            self.record("flow", loaded);
            self.record("deliveries of a flow", store.flow_deliveries(flow.id).await);
        }
        self.record("flows", store.list_flows(workload.client.clone(), workload.app.app_id.clone(), 100).await);
        for subject in &workload.webhooks {
            let Subject::Flow { flow, webhook } = subject else { continue };
            self.record("delivery of a report", store.load_delivery(*subject).await);
            let loaded = store
                .load_webhook(*flow, *webhook)
                .await
                .and_then(|loaded| loaded.map(|(url, payload)| Ok((url, open_payload(store, payload)?))).transpose());
            self.record("webhook of a report", loaded);
        }
    }

    async fn read_logs(&mut self, store: &Store, workload: &Workload, now: Timestamp) {
        let (client, app) = (&workload.client, &workload.app.app_id);
        let (from, to) = (Timestamp::from_millis(0), now + Duration::from_secs(30 * 86_400));
        let consents_query =
            ConsentQuery { client: client.clone(), from, to, after: ConsentPosition::default(), limit: 1_000 };
        self.record("consents", store.consents(consents_query).await);
        self.record("log of a client", store.client_log(LogQuery::newest(client.clone(), now)).await);
        self.record("refused requests", store.refusals(app.clone()).await);
        self.record("figures of days", store.day_figures(app.clone(), Day::containing(now)).await);
        self.record("audit log", verified_audit_log(store).await);
    }
}

/// Reads the audit log and verifies its chain.
async fn verified_audit_log(store: &Store) -> Result<impl Debug + PartialEq + Send + Sync + use<>, StoreError> {
    let entries = store.audit_log(0, 1_000).await?;
    let mut head = AuditHead::NONE;
    for entry in &entries {
        if (entry.number, entry.previous) != (head.number + 1, head.hash)
            || entry.hash != head.hash.hash_of_next(&entry.entry)
        {
            return Err(StoreError::unreadable("the chain of the audit log"));
        }
        head = AuditHead { number: entry.number, hash: entry.hash };
    }
    Ok((entries, store.audit_head().await?))
}

/// Opens a value sealed for an owner.
fn open(store: &Store, owner: &[u8], sealed: &Sealed) -> Result<Vec<u8>, StoreError> {
    store.vault().open(owner, sealed).map(|plain| plain.to_vec()).map_err(|_| StoreError::unreadable("a sealed value"))
}

fn open_payload(store: &Store, payload: SealedPayload) -> Result<Vec<u8>, StoreError> {
    payload.open(store.vault()).map_err(|_| StoreError::unreadable("a payload"))
}

/// Returns a transaction with its opened outcome and the URL of its webhook.
fn open_transaction(
    store: &Store,
    record: TransactionRecord,
) -> Result<impl Debug + PartialEq + Send + Sync + use<>, StoreError> {
    let (outcome, url) = match &record {
        TransactionRecord::Completed(completed) => {
            let has_url = completed.address.is_some() || completed.opened.terms.webhook_url.is_some();
            let url = has_url.then(|| completed.webhook_url(store.vault())).transpose()?;
            (Some(open(store, completed.opened.id.as_bytes(), &completed.outcome)?), url)
        }
        TransactionRecord::Pending(_) | TransactionRecord::Expired(_) => (None, None),
    };
    Ok((record, outcome, url))
}

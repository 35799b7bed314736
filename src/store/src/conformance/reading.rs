//! Everything that callers can see of a [`Business`], query by query, so that two readings can be compared.
//!
//! Sealed values are opened, as the service does before it shows them.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::day_figures::Day;
use sakshi_domain::delivery::Subject;
use sakshi_domain::time::Timestamp;

use super::business::Business;
use super::guests::ALL;
use crate::audit_log::AuditHead;
use crate::consents::{AskedConsents, ConsentPlace};
use crate::{AskedLog, Guest, Registration, Sealed, SealedPayload, Store, StoreError, TransactionRecord};

/// An answer to a query, of any type.
trait Answer: Any + Debug + Send + Sync {
    fn is(&self, other: &dyn Answer) -> bool;
    fn any(&self) -> &dyn Any;
}

impl<T: Any + Debug + PartialEq + Send + Sync> Answer for T {
    fn is(&self, other: &dyn Answer) -> bool {
        other.any().downcast_ref::<T>() == Some(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

type Answered = Result<Box<dyn Answer>, StoreError>;

/// The answers of a store to every query about a business.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    answers: Vec<(String, Answered)>,
    /// True if the audit of credits finds a fault.
    pub(crate) is_unbalanced: bool,
}

/// A query that two stores answer differently.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) question: String,
    /// The refusal, or `None` for another answer.
    pub(crate) refusal: Option<StoreError>,
    /// Both answers.
    pub(crate) answers: String,
}

impl Reading {
    fn note<T: Any + Debug + PartialEq + Send + Sync>(
        &mut self,
        question: impl Into<String>,
        answer: Result<T, StoreError>,
    ) {
        self.answers.push((question.into(), answer.map(|answer| Box::new(answer) as Box<dyn Answer>)));
    }

    /// Returns the queries that another store answers differently.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Difference> {
        assert_eq!(self.answers.len(), other.answers.len(), "the same questions");
        let pairs = self.answers.iter().zip(&other.answers);
        let differing = pairs.filter_map(|((question, expected), (_, seen))| {
            let question = question.clone();
            match (expected, seen) {
                (Ok(expected), Ok(seen)) if expected.is(&**seen) => None,
                (Err(expected), Err(seen)) if expected == seen => None,
                (_, Ok(seen)) => {
                    Some(Difference { question, refusal: None, answers: format!("{expected:?} is now {seen:?}") })
                }
                (_, Err(refusal)) => {
                    Some(Difference { question, refusal: Some(refusal.clone()), answers: String::new() })
                }
            }
        });
        differing.collect()
    }

    /// Returns the refusals among the answers.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&str, &StoreError)> {
        self.answers.iter().filter_map(|(question, answer)| Some((question.as_str(), answer.as_ref().err()?)))
    }

    /// Reads everything.
    pub(crate) async fn of(store: &Store, business: &Business, now: Timestamp) -> Self {
        let mut reading = Self::default();
        reading.ask_of_the_client(store, business).await;
        reading.ask_of_verifications(store, business).await;
        reading.ask_of_guests(store, business).await;
        reading.ask_of_flows(store, business).await;
        reading.ask_of_logs(store, business, now).await;
        reading
    }

    async fn ask_of_the_client(&mut self, store: &Store, business: &Business) {
        let (client, app) = (&business.client, &business.app.app_id);
        self.note("balance", store.balance(client.clone()).await);
        self.note("ledger", store.statement(client.clone(), ALL).await);
        let audit = store.audit().await;
        self.is_unbalanced = audit.as_ref().is_ok_and(|audits| !audits.iter().all(crate::Audit::is_clean));
        self.note("audit of credits", audit);
        for (kind, reference) in
            [(EntryKind::Grant, "first"), (EntryKind::Grant, "grant 1"), (EntryKind::Adjust, "adjust 1")]
        {
            self.note("used reference", store.has_moved(client.clone(), kind, reference.into()).await);
        }
        self.note("clients", store.list_clients(ALL).await);
        self.note("client", store.load_client(client.clone()).await);
        self.note("app", store.load_app(app.clone()).await);
        self.note("apps", store.list_apps(client.clone()).await);
        self.note("key", store.find_key(business.key, app.clone()).await);
        self.note("keys", store.list_keys(client.clone()).await);
        self.note("URLs of an app", store.webhook_urls(app.clone()).await);
        self.note("users", store.list_users(client.clone()).await);
        let email = business.email.parse();
        self.note("sign-in", store.find_signing_in(email.unwrap()).await);
        self.note("session", store.load_session(business.session).await);
    }

    async fn ask_of_verifications(&mut self, store: &Store, business: &Business) {
        for id in &business.txns {
            let record = store
                .load_transaction(*id)
                .await
                .and_then(|record| record.map(|record| shown(store, record)).transpose());
            self.note("verification", record);
            self.note("delivery", store.load_delivery((*id).into()).await);
            self.note("intent", store.load_intent(*id).await);
            let proof = store.load_evidence(*id).await;
            self.note(
                "evidence",
                proof.and_then(|proof| proof.map(|proof| open(store, id.as_bytes(), &proof)).transpose()),
            );
        }
        self.note("summaries", store.summarise_transactions(business.txns.clone()).await);
        for scope in &business.scopes {
            let kept = store.load_idempotent_answer(*scope).await;
            let shown = kept.and_then(|kept| {
                kept.map(|kept| Ok((kept.request, kept.until, open(store, &scope.digest, &kept.answer)?))).transpose()
            });
            self.note("answer kept for an Idempotency-Key", shown);
        }
        self.note("due deliveries", store.due_deliveries(None, None, 1_000).await);
        self.note("backlog", store.backlog().await);
    }

    async fn ask_of_guests(&mut self, store: &Store, business: &Business) {
        let event = &business.event;
        self.note("event", store.load_event(event.id).await);
        self.note("events", store.list_events(event.app.clone(), ALL).await);
        let guests = store.list_guests(event.id, ALL.into()).await.and_then(|page| {
            let named = |guest: Guest| Ok((open(store, guest.txn.as_bytes(), &guest.name)?, guest));
            page.items.into_iter().map(named).collect::<Result<Vec<_>, StoreError>>()
        });
        self.note("guests", guests);
        let registrations = store.list_registrations(event.id, ALL.into()).await.and_then(|page| {
            let shown = |Registration { guest, outcome }: Registration| {
                let [name, outcome] = [&guest.name, &outcome].map(|sealed| open(store, guest.txn.as_bytes(), sealed));
                Ok((guest, name?, outcome?))
            };
            page.items.into_iter().map(shown).collect::<Result<Vec<_>, StoreError>>()
        });
        self.note("registrations", registrations);
    }

    async fn ask_of_flows(&mut self, store: &Store, business: &Business) {
        for flow in &business.flows {
            let loaded = store.load_flow(flow.id, flow.app.clone()).await.and_then(|loaded| {
                let Some(loaded) = loaded else { return Ok(None) };
                let latest = loaded.latest.map(|payload| payload_of(store, payload)).transpose()?;
                Ok(Some((loaded.state, loaded.kept_until, latest)))
            });
            self.note("flow", loaded);
            self.note("deliveries of a flow", store.flow_deliveries(flow.id).await);
        }
        self.note("flows", store.list_flows(business.client.clone(), business.app.app_id.clone(), 100).await);
        for subject in &business.webhooks {
            let Subject::Flow { flow, webhook } = subject else { continue };
            self.note("delivery of a report", store.load_delivery(*subject).await);
            let loaded = store
                .load_webhook(*flow, *webhook)
                .await
                .and_then(|loaded| loaded.map(|(url, payload)| Ok((url, payload_of(store, payload)?))).transpose());
            self.note("webhook of a report", loaded);
        }
    }

    async fn ask_of_logs(&mut self, store: &Store, business: &Business, now: Timestamp) {
        let (client, app) = (&business.client, &business.app.app_id);
        let (from, to) = (Timestamp::from_millis(0), now + Duration::from_secs(30 * 86_400));
        let asked = AskedConsents { client: client.clone(), from, to, after: ConsentPlace::default(), limit: 1_000 };
        self.note("consents", store.consents(asked).await);
        self.note("log of a client", store.client_log(AskedLog::newest(client.clone(), now)).await);
        self.note("refused requests", store.refusals(app.clone()).await);
        self.note("figures of days", store.day_figures(app.clone(), Day::of(now)).await);
        self.note("audit log", verified(store).await);
    }
}

/// Returns the audit log, verified as an operator does.
async fn verified(store: &Store) -> Result<impl Debug + PartialEq + Send + Sync + use<>, StoreError> {
    let entries = store.audit_log(0, 1_000).await?;
    let mut head = AuditHead::NONE;
    for entry in &entries {
        if (entry.number, entry.previous) != (head.number + 1, head.hash)
            || entry.hash != head.hash.followed_by(&entry.entry)
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

fn payload_of(store: &Store, payload: SealedPayload) -> Result<Vec<u8>, StoreError> {
    payload.open(store.vault()).map_err(|_| StoreError::unreadable("a payload"))
}

/// Returns a verification with its outcome and the URL of its webhook.
fn shown(store: &Store, record: TransactionRecord) -> Result<impl Debug + PartialEq + Send + Sync + use<>, StoreError> {
    let (outcome, url) = match &record {
        TransactionRecord::Completed(done) => {
            let has_url = done.address.is_some() || done.opened.terms.webhook_url.is_some();
            let url = has_url.then(|| done.webhook_url(store.vault())).transpose()?;
            (Some(open(store, done.opened.id.as_bytes(), &done.outcome)?), url)
        }
        TransactionRecord::Pending(_) | TransactionRecord::Expired(_) => (None, None),
    };
    Ok((record, outcome, url))
}

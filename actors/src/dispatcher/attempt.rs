//! One delivery: build the body, claim the attempt, make it, record its outcome.
//!
//! The claim is durable before a byte is sent, and only its holder may send. If the process ends between claim and
//! record, or the attempt panics, its outcome is `unknown`, and it is not repeated.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sakshi_domain::clock::Clock;
use sakshi_domain::delivery::{
    Attempt, AttemptFailure, AttemptPart, DeliveryId, DeliveryOutcome, FailureReason, QueuedDelivery, Subject,
};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, TxnId};
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_outbound::client::SendWebhook;
use sakshi_store::{CompletedRecord, Store, StoreError, TransactionRecord, Vault, VaultError};
use sakshi_trace::invariant::{Broken, Part, ensure, holds};
use sakshi_wire::ovse::OvsePayload;
use tracing::Instrument as _;
use tracing::field::display;

use super::budget::{ENVELOPE_BYTES, Reservation};
use super::receiver_queue::DueDelivery;
use crate::figures::Tally;
use crate::reveal::{RevealError, reveal};

/// First pause before an attempt's record is retried; it doubles up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Dependencies of an attempt.
#[derive(Debug)]
pub(crate) struct Attempter {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) client: Arc<dyn SendWebhook>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A webhook ready to be sent.
struct Content {
    url: WebhookUrl,
    body: Vec<u8>,
    /// Time at which it was queued, if its record has it.
    queued_at: Option<Timestamp>,
}

/// The error when a webhook cannot be built.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Reveal(#[from] RevealError),
    #[error("the record no longer exists")]
    Gone,
    #[error("the transaction is not completed")]
    NotCompleted,
    #[error("the payload cannot be serialised")]
    Unserialisable,
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Attempter {
    /// Makes the attempt. `completed` is the delivery's transaction, if it is in memory; otherwise the store is read.
    /// The body must fit the reserved memory. Returns `true` if the attempt did not begin and must be retried later;
    /// its body is loaded again then. Sends nothing if the receiver's name has not resolved for too long.
    pub(super) async fn attempt(
        &self,
        due: DueDelivery,
        completed: Option<Box<CompletedRecord>>,
        memory: Reservation,
    ) -> bool {
        let (id, subject, has_begun) = (due.delivery.id, due.delivery.subject, Cell::new(false));
        let span = sakshi_trace::webhook(|| due.delivery.receiver.origin.clone(), id);
        let attempt = AssertUnwindSafe(self.attempt_in_span(due, completed, memory, &has_begun)).catch_unwind();
        match attempt.instrument(span).await {
            Ok(retry) => retry,
            // The webhook may have been sent. An unclaimed delivery stays as it is, and a scan finds it again.
            Err(_) if has_begun.get() => {
                self.record_outcome(id, subject, Attempt::unknown()).await;
                false
            }
            Err(_) => true,
        }
    }

    /// Makes the attempt; see [`Self::attempt`]. Sets `has_begun` before the claim: from then on, a panic is not
    /// retried.
    async fn attempt_in_span(
        &self,
        due: DueDelivery,
        completed: Option<Box<CompletedRecord>>,
        mut memory: Reservation,
        has_begun: &Cell<bool>,
    ) -> bool {
        let DueDelivery { delivery, waited, receiver_was_busy, unresolved } = due;
        let Content { url, body, queued_at } = match self.load_content(&delivery, completed).await {
            Ok(content) => content,
            // The record was erased after it was queued, or lost. If this fails, a scan finds the delivery again.
            Err(BodyError::Gone) => return self.store.forget_delivery(delivery.id, delivery.subject).await.is_err(),
            Err(error) => {
                tracing::error!(delivery.id = %delivery.id, subject.id = %delivery.subject, %error, "a webhook could \
                    not be built");
                return true;
            }
        };
        memory.resize(body.capacity());
        // Includes the time that the delivery waited on another node, which has ended.
        let waited = queued_at.map_or(waited, |at| self.clock.now().since(at).max(waited));
        has_begun.set(true);
        match self.store.claim_delivery(delivery.id, delivery.subject).await {
            Ok(true) => {}
            Ok(false) => return false,
            Err(_) => return true,
        }
        let attempt = match unresolved {
            Some(waited) => unresolved_for(waited),
            None => self.client.attempt(&url, body.into()).await,
        };
        drop(memory);
        check_coherence(attempt);
        let busy = if receiver_was_busy { "true" } else { "false" };
        metrics::histogram!("sakshi_webhook_delay_seconds", "receiver_busy" => busy).record(waited.as_secs_f64());
        log_and_count(&delivery, attempt);
        if let Some(app) = &delivery.app {
            self.tally.count_attempt(app, attempt.outcome == DeliveryOutcome::Delivered);
        }
        self.record_outcome(delivery.id, delivery.subject, attempt).await;
        false
    }

    /// Returns the URL and the body. A flow's body is the bytes that were sealed when it was reported.
    async fn load_content(
        &self,
        delivery: &QueuedDelivery,
        completed: Option<Box<CompletedRecord>>,
    ) -> Result<Content, BodyError> {
        match delivery.subject {
            Subject::Transaction(txn) => {
                let app = delivery.app.clone().ok_or(BodyError::Gone)?;
                let (record, app) = match completed {
                    Some(record) => (*record, self.store.load_app(app).await?),
                    None => self.load_completed(txn, app).await?,
                };
                let (url, queued_at) = (record.webhook_url(&self.vault)?, Some(record.verified_at));
                check_ownership(delivery, txn, &record.opened, record.refused.is_some())?;
                check_receiver(delivery, &url)?;
                Ok(Content { url, body: self.build_outcome_body(record, app, delivery.stored_bytes)?, queued_at })
            }
            Subject::Flow { flow, webhook } => {
                let (url, payload) = self.store.load_webhook(flow, webhook).await?.ok_or(BodyError::Gone)?;
                check_receiver(delivery, &url)?;
                Ok(Content { url, body: payload.open(&self.vault)?, queued_at: None })
            }
        }
    }

    async fn load_completed(&self, txn: TxnId, app: AppId) -> Result<(CompletedRecord, Option<App>), BodyError> {
        match self.store.load_transaction_with_app(txn, app).await? {
            Some((TransactionRecord::Completed(record), app)) => Ok((record, app)),
            Some((TransactionRecord::Pending(_) | TransactionRecord::Expired(_), _)) => Err(BodyError::NotCompleted),
            None => Err(BodyError::Gone),
        }
    }

    /// Builds the body that reports the outcome of a verification.
    fn build_outcome_body(
        &self,
        record: CompletedRecord,
        app: Option<App>,
        stored_bytes: usize,
    ) -> Result<Vec<u8>, BodyError> {
        let span = sakshi_trace::current();
        span.record("txn.id", display(record.opened.id));
        if let Some(trace) = record.opened.terms.trace() {
            sakshi_trace::link(&span, trace);
        }
        let spelling = app.map(|app| app.payload_spelling).unwrap_or_default();
        let completed = reveal(&self.vault, record)?;
        // Large enough from the start: a growing buffer could use twice the reserved memory.
        let mut body = Vec::with_capacity(stored_bytes.saturating_add(ENVELOPE_BYTES));
        serde_json::to_writer(&mut body, &OvsePayload::new(&completed, spelling))
            .map_err(|_| BodyError::Unserialisable)?;
        Ok(body)
    }

    async fn record_outcome(&self, id: DeliveryId, subject: Subject, attempt: Attempt) {
        retry_until_recorded(|| self.store.settle_delivery(id, subject, attempt)).await;
    }
}

/// Records an outcome. Retries after failures and panics, because nothing else retries before a restart.
async fn retry_until_recorded<Recording: Future<Output = Result<(), StoreError>>>(record: impl Fn() -> Recording) {
    let mut pause = PAUSE_FIRST;
    while !matches!(AssertUnwindSafe(async { record().await }).catch_unwind().await, Ok(Ok(()))) {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Refuses a webhook that does not belong to its receiver.
fn check_ownership(delivery: &QueuedDelivery, txn: TxnId, opened: &Pending, is_refused: bool) -> Result<(), Broken> {
    ensure(Part::Dispatcher, "a webhook tells of its own transaction", opened.id == txn)?;
    ensure(Part::Dispatcher, "a webhook goes to its own client", opened.client == delivery.receiver.client)?;
    ensure(Part::Dispatcher, "a webhook is of its own app", delivery.app.as_ref() == Some(&opened.app))?;
    ensure(Part::Dispatcher, "a guest without a place has no webhook", !is_refused)
}

/// Refuses a webhook whose URL is not at the receiver for which it was queued.
fn check_receiver(delivery: &QueuedDelivery, url: &WebhookUrl) -> Result<(), Broken> {
    ensure(Part::Dispatcher, "a webhook goes where it was queued for", url.origin() == delivery.receiver.origin)
}

/// Checks that outcome, failure and status agree. A broken invariant is reported, and the attempt is recorded anyway.
fn check_coherence(attempt: Attempt) -> bool {
    let Attempt { outcome, failure, status, .. } = attempt;
    let (is_delivered, is_rejected) = (outcome == DeliveryOutcome::Delivered, outcome == DeliveryOutcome::Rejected);
    let has_succeeded = status.is_some_and(|status| (200..300).contains(&status));
    holds(
        Part::Dispatcher,
        "a delivered webhook has no failure, and every other has one",
        is_delivered == failure.is_none(),
    ) && holds(
        Part::Dispatcher,
        "a webhook is delivered if it was answered with success",
        is_delivered == has_succeeded,
    ) && holds(
        Part::Dispatcher,
        "only a webhook that was answered has a status",
        status.is_none() || is_delivered || is_rejected,
    )
}

/// Returns the outcome of a delivery that waited for its receiver's name to resolve, and was not sent.
fn unresolved_for(waited: Duration) -> Attempt {
    let duration_ms = u32::try_from(waited.as_millis()).unwrap_or(u32::MAX);
    Attempt::unanswered(DeliveryOutcome::Unresolved, FailureReason::Dns, Some(AttemptPart::Name), duration_ms)
}

/// Logs and counts an attempt. The receiver is named by its origin alone.
fn log_and_count(delivery: &QueuedDelivery, attempt: Attempt) {
    metrics::counter!("sakshi_webhook_attempts_total", "outcome" => attempt.outcome.as_str()).increment(1);
    metrics::histogram!("sakshi_webhook_attempt_seconds").record(f64::from(attempt.duration_ms) / 1_000.0);
    sakshi_trace::current().record("http.response.status_code", attempt.status);
    let (outcome, sent, status) = (attempt.outcome.as_str(), attempt.outcome.sent().as_str(), attempt.status);
    let duration_ms = attempt.duration_ms;
    let Some(AttemptFailure { reason, part }) = attempt.failure else {
        tracing::info!(subject.id = %delivery.subject, receiver = delivery.receiver.origin, outcome, sent, status,
            duration_ms, "webhook delivered");
        return;
    };
    let (reason, part) = (reason.as_str(), part.map(AttemptPart::as_str));
    metrics::counter!("sakshi_webhook_failures_total", "reason" => reason).increment(1);
    sakshi_trace::mark_failed(&sakshi_trace::current(), reason);
    tracing::warn!(subject.id = %delivery.subject, receiver = delivery.receiver.origin, outcome, reason, part, sent,
        status, duration_ms, "webhook lost");
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use sakshi_domain::delivery::Receiver;
    use sakshi_domain::http_url::{HttpUrl, Schemes};
    use sakshi_domain::ids::ClientId;
    use sakshi_kit::records;
    use sakshi_trace::invariant::broken_by;

    use super::super::budget::{Budget, Need};
    use super::*;
    use crate::ByteBounds;
    use crate::tests::dispatch::{FakeResolver, start_sending_to};
    use crate::tests::{Fixture, run, vault};

    #[tokio::test(start_paused = true)]
    async fn recording_an_outcome_is_retried_after_failures_and_panics() {
        let tries = Cell::new(0);
        retry_until_recorded(|| {
            tries.set(tries.get() + 1);
            assert_ne!(tries.get(), 1, "a panic before the outcome is recorded");
            let try_number = tries.get();
            async move {
                assert!(try_number > 3, "a panic while the outcome is recorded");
                if try_number < 6 { Err(StoreError::Overloaded) } else { Ok(()) }
            }
        })
        .await;
        assert_eq!(tries.get(), 6);
    }

    #[derive(Debug)]
    struct PanickingClock;

    impl Clock for PanickingClock {
        fn now(&self) -> Timestamp {
            panic!("as the test asked")
        }

        fn monotonic(&self) -> Duration {
            panic!("as the test asked")
        }
    }

    #[test]
    fn an_attempt_that_panics_before_its_claim_is_made_later() {
        run(async {
            let fixture = Fixture::new().await;
            fixture.tree.stop();
            let resolver = FakeResolver::new();
            let (tree, ids) = start_sending_to(&fixture, &resolver, &[FakeResolver::UNANSWERED]).await;
            let delivery = fixture.store.due_deliveries(None, None, 1).await.unwrap().remove(0);
            let attempter = Attempter {
                store: (*fixture.store).clone(),
                vault: Arc::new(vault()),
                client: resolver,
                tally: Tally::new(Arc::new(PanickingClock)),
                clock: Arc::new(PanickingClock),
            };
            let budget = Rc::new(Budget::new(ByteBounds::OUTCOMES, ByteBounds::FLOWS, Arc::default()));
            let receiver = Arc::new(delivery.receiver.clone());
            let memory = budget.reserve(Need::for_delivery(&delivery), &receiver, &tree.dispatcher.clone().recipient());
            let due = DueDelivery { delivery, waited: Duration::ZERO, receiver_was_busy: false, unresolved: None };
            assert!(attempter.attempt(due, None, memory.unwrap()).await, "it is retried");
            let stored = fixture.store.load_delivery(ids[0].into()).await.unwrap().unwrap();
            assert!(stored.claimed_at.is_none() && stored.attempt.is_none(), "{stored:?}");
            tree.stop();
            fixture.end().await;
        });
    }

    #[test]
    fn a_webhook_of_another_owner_or_receiver_is_refused() {
        let client = ClientId::generate();
        let txn = TxnId::generate(client.partition(), 0);
        let opened = records::pending(txn, client.clone(), AppId::generate(), Timestamp::from_millis(0));
        let receiver = Receiver { client, origin: "https://a.example".to_owned() };
        let own = QueuedDelivery {
            id: DeliveryId(1),
            subject: txn.into(),
            receiver,
            app: Some(opened.app.clone()),
            stored_bytes: 0,
        };
        let broken_invariant = |delivery: &QueuedDelivery, txn, is_refused| {
            check_ownership(delivery, txn, &opened, is_refused).err().map(Broken::name)
        };
        assert_eq!(broken_invariant(&own, txn, false), None);
        let other = TxnId::generate(opened.client.partition(), 0);
        assert_eq!(broken_invariant(&own, other, false), Some("a webhook tells of its own transaction"));
        assert_eq!(broken_invariant(&own, txn, true), Some("a guest without a place has no webhook"));
        let other_app = QueuedDelivery { app: Some(AppId::generate()), ..own.clone() };
        assert_eq!(broken_invariant(&other_app, txn, false), Some("a webhook is of its own app"));
        let mut other_client = own.clone();
        other_client.receiver.client = ClientId::generate();
        assert_eq!(broken_invariant(&other_client, txn, false), Some("a webhook goes to its own client"));
        let broken_for = |url: &str| {
            check_receiver(&own, &HttpUrl::parse(url, Schemes::HttpAndHttps).unwrap()).err().map(Broken::name)
        };
        assert_eq!(
            (broken_for("https://a.example/hook"), broken_for("https://b.example/hook")),
            (None, Some("a webhook goes where it was queued for"))
        );
    }

    #[test]
    fn an_incoherent_attempt_breaks_an_invariant() {
        const DURATION_MS: u32 = 5;
        let broken_invariants = |attempt| broken_by(|| _ = check_coherence(attempt));
        let failed = Attempt::unanswered(DeliveryOutcome::TimedOut, FailureReason::TimedOut, None, DURATION_MS);
        for coherent in [
            Attempt::from_status(204, DURATION_MS),
            Attempt::from_status(500, DURATION_MS),
            Attempt::from_status(302, DURATION_MS),
            failed,
            Attempt::unknown(),
        ] {
            assert_eq!(broken_invariants(coherent), Vec::<&str>::new(), "{coherent:?}");
        }
        let delivered = Attempt::from_status(200, DURATION_MS);
        for (incoherent, name) in [
            (
                Attempt { failure: failed.failure, ..delivered },
                "a delivered webhook has no failure, and every other has one",
            ),
            (Attempt { failure: None, ..failed }, "a delivered webhook has no failure, and every other has one"),
            (Attempt { status: Some(500), ..delivered }, "a webhook is delivered if it was answered with success"),
            (Attempt { status: None, ..delivered }, "a webhook is delivered if it was answered with success"),
            (Attempt { status: Some(500), ..failed }, "only a webhook that was answered has a status"),
        ] {
            assert_eq!(broken_invariants(incoherent), [name], "{incoherent:?}");
        }
    }
}

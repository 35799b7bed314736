//! A sample workload that uses every part of a store: verifications, guests, flows, credits and webhooks.
//!
//! Tests that damage the storage fill a store with it. Each step is one answered call, which a [`StepObserver`]
//! records.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::client_log::Action;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_domain::delivery::{Attempt, DeliveryId, Subject};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::event::{CheckIn, CheckInId, Event, EventPatch};
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::ids::{ClientId, KeyId, TxnId};
use sakshi_domain::network::Networks;
use sakshi_domain::tenancy::{ApiKeyRecord, App, KeyDigest};
use sakshi_domain::transaction::CredentialIdentity;

use super::TestStore;
use super::fixture::{
    build_app, build_client, build_completion, build_declined_completion, build_event, build_guest_scan, build_opening,
    build_opening_with_hook, grant, idempotency_scope, store_event, url,
};
use super::flow_fixture::{ClientApp, Flow, ShortReport, accept_report, document_flow, open_flow, wealth_flow};
use super::refusals::build_refused_request;
use super::sessions::build_session;
use super::users::join_user;
use crate::{
    CompleteOutcome, CompleteTransaction, IdempotencyScope, IdempotentAnswer, OpenOutcome, OpenTransaction,
    PresentedCredential, Sealed, SessionDigest, Store,
};

/// An observer of the steps of a workload.
pub(crate) trait StepObserver {
    /// Records a step after its answer.
    fn record(&mut self, step: &'static str) -> impl Future<Output = ()>;
}

/// Ignores every step.
impl StepObserver for () {
    async fn record(&mut self, _step: &'static str) {}
}

/// The ids of the records that a workload has created.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) client: ClientId,
    pub(crate) app: App,
    pub(crate) key: KeyDigest,
    pub(crate) email: String,
    pub(crate) event: Event,
    pub(crate) session: SessionDigest,
    pub(crate) txns: Vec<TxnId>,
    pub(crate) scopes: Vec<IdempotencyScope>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) webhooks: Vec<Subject>,
    rounds: u8,
}

/// Seals text for an owner under the store's key.
fn seal_text(store: &Store, owner: &[u8], text: &str) -> Sealed {
    store.vault().seal(owner, text.as_bytes())
}

/// Replaces the outcome and the proof of a completion by values that are sealed under the store's key.
fn with_sealed_outcome(store: &Store, complete: CompleteTransaction, number: u8) -> CompleteTransaction {
    let owner = *complete.id.as_bytes();
    let outcome = seal_text(store, &owner, &format!("planted outcome {number}"));
    let evidence = Some(seal_text(store, &owner, &format!("planted proof {number}")));
    CompleteTransaction { outcome, evidence, ..complete }
}

impl Workload {
    /// Starts a workload: creates a client with credits, an app with a key and URLs, a user, a session and an event.
    pub(crate) async fn create(test: &impl TestStore, observer: &mut impl StepObserver) -> Self {
        let (store, client) = (test.store(), build_client(test));
        let id = client.client_id.clone();
        store.create_client(client).await.unwrap();
        observer.record("a client").await;
        store.move_credits(id.clone(), grant(1_000, "first")).await.unwrap();
        observer.record("a grant").await;
        let urls =
            ["consent", "data", "historical"].map(|host| Some(url(&format!("https://{host}.example/hook?planted=1"))));
        let [consent_webhook_url, data_webhook_url, historical_webhook_url] = urls;
        let app = App { consent_webhook_url, data_webhook_url, historical_webhook_url, ..build_app(test, &id) };
        assert!(store.create_app(app.clone()).await.unwrap());
        observer.record("an app").await;
        store
            .set_webhook_url(app.app_id.clone(), ApiType::ESign, Some(url("https://esign.example/hook")))
            .await
            .unwrap();
        observer.record("a URL").await;
        let key = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: id.clone(),
            label: "kiosk".into(),
            environments: vec![],
            networks: Networks::default(),
            created_at: test.now(),
            expires_at: None,
            revoked_at: None,
        };
        let digest = KeyDigest([1; 32]);
        assert!(store.create_key(key, digest).await.unwrap());
        observer.record("a key").await;
        let email = "planted-one@example.com".to_owned();
        join_user(test, &id, &email, 1).await;
        observer.record("a user").await;
        let session = build_session(test, 1);
        store.open_session(session.clone()).await.unwrap();
        observer.record("a session").await;
        let mut event = Event { app: app.app_id.clone(), ..build_event(test, &id, 50) };
        event.terms.expires_at = test.now() + Duration::from_secs(30 * 86_400);
        let event = store_event(test, event).await;
        observer.record("an event").await;
        Self {
            client: id,
            app,
            key: digest,
            email,
            event,
            session: session.digest,
            txns: vec![],
            scopes: vec![],
            flows: vec![],
            webhooks: vec![],
            rounds: 0,
        }
    }

    /// Runs one round of steps in every area.
    pub(crate) async fn run_round(&mut self, test: &impl TestStore, observer: &mut impl StepObserver) {
        self.rounds += 1;
        self.verify(test, observer).await;
        self.admit_guest(test, observer).await;
        self.follow_flows(test, observer).await;
        self.append_records(test, observer).await;
    }

    /// Builds the opening of a transaction of the app, and remembers its id.
    fn opening(&mut self, test: &impl TestStore) -> OpenTransaction {
        let mut open = build_opening(test, &self.client);
        Arc::make_mut(&mut open.pending).app = self.app.app_id.clone();
        self.txns.push(open.pending.id);
        self.webhooks.push(open.pending.id.into());
        open
    }

    /// Opens and completes a verification with every field. Opens three more in one call: one is declined, one expires,
    /// and one stays pending.
    async fn verify(&mut self, test: &impl TestStore, observer: &mut impl StepObserver) {
        let (store, number) = (test.store(), self.rounds);
        let scope = idempotency_scope(&self.client, number);
        let answer = seal_text(store, &scope.digest, &format!("planted answer {number}"));
        let stored_answer =
            IdempotentAnswer { scope, request: [number; 32], answer, until: test.now() + super::fixture::RESULT_TTL };
        self.scopes.push(scope);
        let open = OpenTransaction {
            idempotency: Some(stored_answer),
            intent: Some(b"planted intent".to_vec()),
            ..self.opening(test)
        };
        let id = open.pending.id;
        assert!(matches!(store.open_transaction(open).await.unwrap(), OpenOutcome::Opened { .. }));
        observer.record("an init with an Idempotency-Key").await;
        store.note_page(id).await.unwrap();
        observer.record("a page").await;
        let credential = Some(PresentedCredential { digest: CredentialIdentity([number; 32]), holder_bound: false });
        let delivery = complete(
            store,
            with_sealed_outcome(store, CompleteTransaction { credential, ..build_completion(id, number) }, number),
        )
        .await;
        observer.record("a callback").await;
        assert!(store.claim_delivery(delivery, id.into()).await.unwrap());
        observer.record("a claim").await;
        store.settle_delivery(delivery, id.into(), Attempt::from_status(200, 42)).await.unwrap();
        observer.record("a delivery").await;
        store.note_poll(id).await.unwrap();
        observer.record("a poll").await;

        let opens: Vec<_> = (0..3).map(|_| self.opening(test)).collect();
        let ids: Vec<TxnId> = opens.iter().map(|open| open.pending.id).collect();
        assert!(store.open_transactions(opens).await.unwrap().iter().all(Result::is_ok));
        observer.record("three inits together").await;
        let declined = CompleteTransaction {
            code: Some("301".into()),
            ..with_sealed_outcome(store, build_declined_completion(ids[0], number), number)
        };
        let delivery = complete(store, declined).await;
        observer.record("a refusal").await;
        if number.is_multiple_of(2) {
            assert!(store.claim_delivery(delivery, ids[0].into()).await.unwrap());
            observer.record("a claim that stays").await;
        }
        store.expire_transaction(ids[1]).await.unwrap();
        observer.record("an end").await;
    }

    /// Opens two scans, registers and checks in one guest, and changes the event.
    async fn admit_guest(&mut self, test: &impl TestStore, observer: &mut impl StepObserver) {
        let (store, number) = (test.store(), self.rounds);
        for is_registered in [true, false] {
            let open = build_guest_scan(test, &self.event);
            let id = open.pending.id;
            self.txns.push(id);
            assert!(matches!(store.open_transaction(open).await.unwrap(), OpenOutcome::Opened { .. }));
            observer.record("a scan").await;
            if is_registered {
                self.webhooks.push(id.into());
                complete(store, with_sealed_outcome(store, build_completion(id, number), number)).await;
                observer.record("a registration").await;
            }
        }
        let check_in = CheckIn { id: CheckInId::new(number.into()), at: test.now(), gate: format!("gate {number}") };
        store.check_in(self.event.id, number.into(), check_in).await.unwrap();
        observer.record("a check-in").await;
        let patch = EventPatch {
            max_guests: Some(super::fixture::max_guests(50 + u64::from(number))),
            ..EventPatch::default()
        };
        super::fixture::patch_event(test, &self.event, patch).await;
        observer.record("a change of the event").await;
    }

    /// Opens a consent for wealth data and a document to sign, and reports their progress.
    async fn follow_flows(&mut self, test: &impl TestStore, observer: &mut impl StepObserver) {
        let store = test.store();
        let client_app = ClientApp { client: self.client.clone(), app: self.app.app_id.clone() };
        let flow = open_flow(test, wealth_flow(test, &client_app)).await;
        observer.record("a flow").await;
        let document = open_flow(test, document_flow(test, &client_app, None)).await;
        observer.record("a document").await;
        for (flow, report) in [
            (&flow, ShortReport::Consent { status: "Accepted", content: 1 }),
            (&flow, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }),
            (&document, ShortReport::Document("Rejected")),
        ] {
            let queued = accept_report(test, flow, report).await;
            observer.record("a report").await;
            if let Some(delivery) = queued {
                self.webhooks.push(delivery.subject);
                if matches!(report, ShortReport::Data { .. }) {
                    assert!(store.claim_delivery(delivery.id, delivery.subject).await.unwrap());
                    observer.record("a claim of a report").await;
                }
            }
        }
        self.flows.extend([flow, document]);
    }

    /// Moves credits, appends to the logs, and adds the figures of a day.
    async fn append_records(&self, test: &impl TestStore, observer: &mut impl StepObserver) {
        let (store, number) = (test.store(), self.rounds);
        store.move_credits(self.client.clone(), grant(50, &format!("grant {number}"))).await.unwrap();
        observer.record("another grant").await;
        let adjustment = CreditMove { kind: EntryKind::Adjust, amount: -3, reference: format!("adjust {number}") };
        store.move_credits(self.client.clone(), adjustment).await.unwrap();
        observer.record("an adjustment").await;
        store.append_audit(format!("{{\"asked\":\"planted {number}\"}}")).await.unwrap();
        observer.record("an entry of the audit log").await;
        let entry = super::client_log::build_log_entry(test, Action::SignedIn);
        store.append_client_log(self.client.clone(), entry).await.unwrap();
        observer.record("an entry of the client's log").await;
        store.keep_refusal(self.app.app_id.clone(), build_refused_request(test, number.into())).await.unwrap();
        observer.record("a refused request").await;
        let figures = DayFigures { opened: 4, verified: 1, ..DayFigures::default() };
        store
            .add_day_figures(self.app.app_id.clone(), Day::containing(test.now()), figures, [number; 16])
            .await
            .unwrap();
        observer.record("the figures of a day").await;
    }

    /// Erases the verification that the first round opened with an `Idempotency-Key`.
    pub(crate) async fn erase(&self, test: &impl TestStore, observer: &mut impl StepObserver) {
        test.store().erase(ErasureSubject::Transaction(self.txns[0])).await.unwrap();
        observer.record("an erasure").await;
    }

    /// Advances the clock by `span`, and removes expired records.
    pub(crate) async fn sweep(&self, test: &impl TestStore, span: Duration, observer: &mut impl StepObserver) {
        test.advance(span);
        test.store().sweep(test.now(), 1_000).await.unwrap();
        observer.record("a sweep").await;
    }

    /// Opens a transaction to check that the store still works. Returns the balance afterwards.
    pub(crate) async fn open_another(&self, test: &impl TestStore) -> u64 {
        let OpenOutcome::Opened { balance } =
            test.store().open_transaction(build_opening_with_hook(test, &self.client, None)).await.unwrap()
        else {
            panic!("the client has credits");
        };
        balance
    }
}

/// Completes a transaction, which must queue a webhook. Returns the id of the delivery.
async fn complete(store: &Store, command: CompleteTransaction) -> DeliveryId {
    match store.complete_transaction(command).await.unwrap() {
        CompleteOutcome::Completed { queued: Some(delivery), repeated: false, .. } => delivery.id,
        other => panic!("{other:?}"),
    }
}

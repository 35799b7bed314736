//! Values and helpers for the properties.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::channel::Channel;
use sakshi_domain::claims::Claim;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::delivery::{QueuedDelivery, Subject};
use sakshi_domain::event::{
    Event, EventCounts, EventEntry, EventPatch, EventSecret, EventTerms, EventText, MaxGuests, OnDuplicate, Trait,
};
use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::{App, Client, KeyCase};
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::{AnswerDigest, OptionalTerms, Pending, Terms};

use super::TestStore;
use crate::Sealed;
use crate::StoreFuture;
use crate::{
    CompleteOutcome, CompleteTransaction, CreateEvent, CreateOutcome, CreditOutcome, GuestDetails, IdempotencyScope,
    IdempotentAnswer, OpenOutcome, OpenTransaction, PatchEventOutcome, Retention, Store, TransactionRecord,
};

/// Time in which a transaction must be completed.
pub(crate) const WINDOW: Duration = Duration::from_secs(900);
/// Time for which the result of a transaction is stored.
pub(crate) const RESULT_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Time for which an accepted credential is remembered.
pub(crate) const REPLAY_WINDOW: Duration = Duration::from_secs(3_600);
pub(crate) const RETENTION: Retention = Retention {
    expired: Duration::from_secs(600),
    events: Duration::from_secs(30 * 24 * 3_600),
    consents: Duration::from_secs(30 * 24 * 3_600),
};
/// Webhook URL of a transaction.
pub(crate) const HOOK: &str = "https://hooks.example/secret-path";
/// Webhook URL of an event.
pub(crate) const EVENT_HOOK: &str = "https://events.example/guest-list";
/// Time from the creation of an event to its expiry.
pub(crate) const EVENT_DURATION: Duration = Duration::from_secs(8 * 3_600);

pub(crate) fn url(text: &str) -> WebhookUrl {
    HttpUrl::parse(text, Schemes::HttpAndHttps).unwrap()
}

/// Returns a value in the format of sealed ciphertext, under a key that no vault has.
pub(crate) fn sealed(text: &str) -> Sealed {
    Sealed::from_bytes([&[1; 28][..], text.as_bytes(), &[1; 16]].concat()).unwrap()
}

/// Builds a client, to be created.
pub(crate) fn build_client(test: &impl TestStore) -> Client {
    Client::new(ClientId::generate(), "Bank of Testing".into(), test.now())
}

/// Builds an app of a client, to be created.
pub(crate) fn build_app(test: &impl TestStore, client: &ClientId) -> App {
    App {
        app_id: AppId::generate(),
        client_id: client.clone(),
        name: "Onboarding".into(),
        payload_spelling: KeyCase::SnakeCase,
        evidence: false,
        consent_webhook_url: None,
        data_webhook_url: Some(url("https://data.example/in?key=1")),
        historical_webhook_url: None,
        created_at: test.now(),
    }
}

/// Builds a grant of credits; the reference identifies it.
pub(crate) fn grant(amount: i64, reference: &str) -> CreditMove {
    CreditMove { kind: EntryKind::Grant, amount, reference: reference.into() }
}

/// Creates a client with credits.
pub(crate) async fn client_with(test: &impl TestStore, credits: i64) -> ClientId {
    let client = build_client(test);
    test.store().create_client(client.clone()).await.unwrap();
    if credits > 0 {
        let outcome = test.store().move_credits(client.client_id.clone(), grant(credits, "first")).await.unwrap();
        assert!(matches!(outcome, CreditOutcome::Moved(_)));
    }
    client.client_id
}

/// Builds the opening of a transaction that costs one credit and has a webhook.
pub(crate) fn build_opening(test: &impl TestStore, client: &ClientId) -> OpenTransaction {
    let extras = OptionalTerms { name_hint: Some("Asha Rao".into()), ..OptionalTerms::default() };
    let terms = Terms {
        claims: [Claim::Name, Claim::Dob].into_iter().collect(),
        channel: Channel::Web,
        language: Language::ENGLISH,
        face_auth: true,
        webhook_url: Some(url(HOOK)),
        request_id: RequestId::mint(),
        extras: Some(Box::new(extras)),
    };
    let pending = Arc::new(Pending {
        id: TxnId::generate(client.partition(), 7),
        client: client.clone(),
        app: AppId::generate(),
        event: None,
        opened_at: test.now(),
        expires_at: test.now() + WINDOW,
        terms,
    });
    OpenTransaction { pending, cost: 1, idempotency: None, pending_max: None, intent: None }
}

/// Builds the opening of a transaction with this webhook URL.
pub(crate) fn build_opening_with_hook(test: &impl TestStore, client: &ClientId, hook: Option<&str>) -> OpenTransaction {
    let mut open = build_opening(test, client);
    Arc::make_mut(&mut open.pending).terms.webhook_url = hook.map(url);
    open
}

/// Opens a transaction. Asserts success.
pub(crate) async fn open_pending(test: &impl TestStore, client: &ClientId) -> Pending {
    let open = build_opening(test, client);
    let pending = (*open.pending).clone();
    let outcome = test.store().open_transaction(open).await.unwrap();
    assert!(matches!(outcome, OpenOutcome::Opened { .. }), "{outcome:?}");
    pending
}

/// Returns the trait (a digest that recognises a returning person) of this guest, which no other guest has.
pub(crate) fn unique_trait(id: TxnId) -> Trait {
    Trait([*id.as_bytes(); 2].concat().try_into().unwrap())
}

/// Builds the completion of a transaction by a passed verification. The number identifies the answer.
pub(crate) fn build_completion(id: TxnId, answer: u8) -> CompleteTransaction {
    CompleteTransaction {
        id,
        known: None,
        passed: true,
        code: None,
        evidence: None,
        guest: GuestDetails { name: Some("Asha Rao".into()), traits: vec![unique_trait(id)] },
        outcome: sealed(&format!("outcome {answer}")),
        answer: AnswerDigest([answer; 32]),
        credential: None,
        replay_window: REPLAY_WINDOW,
        result_ttl: RESULT_TTL,
    }
}

/// Opens and completes a transaction. Asserts that a delivery is queued.
pub(crate) async fn open_and_complete(
    test: &impl TestStore,
    client: &ClientId,
) -> (Pending, sakshi_domain::delivery::DeliveryId) {
    let pending = open_pending(test, client).await;
    match test.store().complete_transaction(build_completion(pending.id, 1)).await.unwrap() {
        CompleteOutcome::Completed { queued: Some(delivery), repeated: false, .. } => (pending, delivery.id),
        other => panic!("{other:?}"),
    }
}

impl Store {
    /// Returns the first due deliveries, of every receiver.
    pub(crate) fn first_due_deliveries(&self, limit: usize) -> StoreFuture<Vec<QueuedDelivery>> {
        self.due_deliveries(None, None, limit)
    }
}

/// Returns the URL to which a delivery goes.
pub(crate) async fn receiver(store: &Store, delivery: &QueuedDelivery) -> WebhookUrl {
    match delivery.subject {
        Subject::Transaction(txn) => {
            let loaded = store.load_transaction_with_app(txn, delivery.app.clone().unwrap()).await.unwrap();
            let Some((TransactionRecord::Completed(record), _)) = loaded else { panic!("{loaded:?}") };
            record.webhook_url(store.vault()).unwrap()
        }
        Subject::Flow { flow, webhook } => store.load_webhook(flow, webhook).await.unwrap().unwrap().0,
    }
}

/// Returns the scope of an `Idempotency-Key`, identified by a number.
pub(crate) fn idempotency_scope(client: &ClientId, number: u8) -> IdempotencyScope {
    IdempotencyScope { partition: client.partition(), digest: [number; 32] }
}

/// Builds the response to store for an idempotency key. Numbers identify the key and the request.
pub(crate) fn build_idempotent_answer(
    test: &impl TestStore,
    client: &ClientId,
    number: u8,
    request: u8,
) -> IdempotentAnswer {
    IdempotentAnswer {
        scope: idempotency_scope(client, number),
        request: [request; 32],
        answer: sealed(&format!("answer to {request}")),
        until: test.now() + RESULT_TTL,
    }
}

/// Returns the balance. Asserts that it agrees with the ledger.
pub(crate) async fn audited_balance(test: &impl TestStore, client: &ClientId) -> u64 {
    let audits = test.store().audit().await.unwrap();
    for audit in &audits {
        assert!(audit.is_clean(), "{audit:?}");
    }
    let balance = test.store().balance(client.clone()).await.unwrap().unwrap();
    assert!(audits.iter().any(|audit| audit.client == *client && audit.balance == balance));
    balance
}

pub(crate) fn max_guests(count: u64) -> MaxGuests {
    MaxGuests::new(count).unwrap()
}

/// Builds an event with a webhook and a limit of guests, to be created.
pub(crate) fn build_event(test: &impl TestStore, client: &ClientId, guests_max: u64) -> Event {
    Event {
        id: EventId::generate(client.partition(), 3),
        client: client.clone(),
        app: AppId::generate(),
        created_at: test.now(),
        terms: EventTerms {
            name: EventText::parse("Garden party").unwrap(),
            claims: [Claim::Name].into_iter().collect(),
            language: Language::ENGLISH,
            time_zone: TimeZone::INDIA,
            organiser: None,
            purpose: None,
            max_guests: max_guests(guests_max),
            max_pending: None,
            credit_budget: None,
            entry: EventEntry::Open,
            starts_at: None,
            place: None,
            expires_at: test.now() + EVENT_DURATION,
            webhook_url: Some(url(EVENT_HOOK)),
            retention: sakshi_domain::retention::ClientRetention::default(),
            on_duplicate: OnDuplicate::Flag,
            secret: EventSecret::fixed(1),
            doors: vec![],
            brand: sakshi_domain::brand::Brand::default(),
            is_active: true,
        },
        counts: EventCounts::default(),
        is_funded: true,
    }
}

/// Creates an event. Asserts success.
pub(crate) async fn store_event(test: &impl TestStore, event: Event) -> Event {
    let outcome =
        test.store().create_event(CreateEvent { event: event.clone(), events_max: None, idempotency: None }).await;
    assert_eq!(outcome, Ok(CreateOutcome::Created));
    event
}

/// Patches an event. Asserts success.
pub(crate) async fn patch_event(test: &impl TestStore, event: &Event, patch: EventPatch) -> Event {
    match test.store().patch_event(event.id, event.app.clone(), patch).await.unwrap() {
        PatchEventOutcome::Patched(event) => *event,
        other => panic!("{other:?}"),
    }
}

/// Builds the opening of a guest's transaction without its own webhook.
pub(crate) fn build_guest_scan(test: &impl TestStore, event: &Event) -> OpenTransaction {
    let mut open = build_opening_with_hook(test, &event.client, None);
    let pending = Arc::make_mut(&mut open.pending);
    pending.id = TxnId::generate(event.client.partition(), 7);
    (pending.app, pending.event) = (event.app.clone(), Some(event.id));
    open
}

/// Opens a guest's transaction. Asserts success.
pub(crate) async fn open_guest_scan(test: &impl TestStore, event: &Event) -> TxnId {
    let open = build_guest_scan(test, event);
    let id = open.pending.id;
    let outcome = test.store().open_transaction(open).await.unwrap();
    assert!(matches!(outcome, OpenOutcome::Opened { .. }), "{outcome:?}");
    id
}

/// Builds the completion of a transaction by a declined verification.
pub(crate) fn build_declined_completion(id: TxnId, answer: u8) -> CompleteTransaction {
    CompleteTransaction { passed: false, outcome: sealed("declined"), ..build_completion(id, answer) }
}

/// Opens a guest's transaction and registers the guest. Asserts success.
pub(crate) async fn register_guest(test: &impl TestStore, event: &Event) -> TxnId {
    let id = open_guest_scan(test, event).await;
    match test.store().complete_transaction(build_completion(id, 1)).await.unwrap() {
        CompleteOutcome::Completed { record, repeated: false, .. } => assert!(record.passed),
        other => panic!("{other:?}"),
    }
    id
}

/// Returns the counts of the event.
pub(crate) async fn load_counts(test: &impl TestStore, event: &Event) -> EventCounts {
    test.store().load_event(event.id).await.unwrap().unwrap().counts
}

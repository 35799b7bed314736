//! Use cases of transactions: opening them for callers and for guests of events, and reading them.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::View;
use sakshi_authority::intent::SignedIntent;
use sakshi_domain::channel::Channel;
use sakshi_domain::delivery::Attempt;
use sakshi_domain::event::Event;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Completed, OptionalTerms, Pending, Terms};
use sakshi_outbound::client::WebhookClient;
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, Sealed};
use sakshi_trace::invariant::{Broken, Part, ensure};
use sakshi_wire::ovse::{InitResponse, OvsePayload, QrIntentResponse};

use crate::authentication::Caller;
use crate::idempotency::{CreationAnswer, IdempotentRequest};
use crate::{Service, ServiceError};

/// Name of the operation in the digest of a request with an idempotency key.
pub const OPERATION: &str = "init";

/// Opens a transaction with these terms and debits its credit, unless an earlier request under the same key has opened
/// it. `with_qr` adds the value of a QR code to the response.
///
/// # Errors
/// Any [`ServiceError`]; the transaction is not opened, and nothing is debited.
pub async fn open_transaction(
    service: &Service,
    caller: Caller,
    terms: Terms,
    with_qr: bool,
    idempotent: Option<IdempotentRequest>,
) -> Result<CreationAnswer<InitResponse>, ServiceError> {
    // This comes before the search for a stored response: the last credit may just have paid for a request under the
    // same key.
    let lacks_credits = service.transactions.lacks_credits(&caller.client, CREDITS_PER_VERIFICATION).await?;
    if let Some(idempotent) = &idempotent
        && let Some(answer) = idempotent.find_answer(service, &caller).await?
    {
        return Ok(answer);
    }
    caller.recheck().await?;
    if lacks_credits {
        // No intent is signed for a transaction that will not be opened.
        return Err(ServiceError::InsufficientCredits);
    }

    let id = new_id(service, &caller.client)?;
    let announcement = service.transactions.announce(&caller.client);
    let now = service.clock.now();
    let pending = Arc::new(Pending {
        id,
        client: caller.client,
        app: caller.app.app_id.clone(),
        event: None,
        opened_at: now,
        expires_at: now + service.rules.window,
        terms: with_current_trace(with_retention(terms, caller.limits.retention)),
    });
    // The response is stored in the step that debits, so it must exist before.
    let (answer, intent) = build_answer(service, &pending, with_qr, now).await?;
    let response = CreationAnswer::new(answer)?;
    let idempotency = idempotent.map(|idempotent| idempotent.to_record(&service.vault, response.json(), now));
    drop(announcement);
    match open(
        service,
        OpenTransaction { pending, cost: CREDITS_PER_VERIFICATION, idempotency, pending_max: None, intent },
    )
    .await?
    {
        None => Ok(response),
        Some(sealed) => IdempotentRequest::replay(idempotent.as_ref(), &service.vault, &sealed),
    }
}

/// Makes the id of a transaction, if there is room for it. Signing is most of the work of an opening, so an overloaded
/// node refuses requests before it signs.
fn new_id(service: &Service, client: &ClientId) -> Result<TxnId, ServiceError> {
    let id = service.transactions.new_id(client);
    service.transactions.check_room(id)?;
    Ok(id)
}

/// Builds the response to `init`, with every way to launch the identity app on this channel. Also returns the bytes
/// from which the transaction's page, if it has one, rebuilds the intent.
async fn build_answer(
    service: &Service,
    pending: &Pending,
    with_qr: bool,
    now: Timestamp,
) -> Result<(InitResponse, Option<Vec<u8>>), ServiceError> {
    let authority = &service.authority;
    let SignedIntent { jwt: intent_jwt, stored } = authority.sign_intent(pending, now).await?;
    let channel = &pending.terms.channel;
    let answer = InitResponse {
        txn_id: pending.id,
        expires_at: pending.expires_at,
        request_url: matches!(channel, Channel::Web | Channel::Qr).then(|| authority.request_url(pending.id)),
        national_id_app_uri: matches!(channel, Channel::Android(_))
            .then(|| authority.links.android_native(&intent_jwt)),
        ios_app_uri: matches!(channel, Channel::Web | Channel::Ios).then(|| authority.links.ios(&intent_jwt)),
        qr_payload: with_qr.then(|| authority.qr_payload(&intent_jwt)),
        intent_jwt,
    };
    // The transaction has a page, which shows the intent again.
    let has_page = matches!(channel, Channel::Web | Channel::Qr);
    Ok((answer, stored.filter(|_| has_page)))
}

/// Loads the bytes from which a transaction's pages rebuild the intent that was signed at its opening. Without them,
/// the pages need a new intent.
pub async fn load_stored_intent(service: &Service, id: TxnId) -> Option<Vec<u8>> {
    service.store.load_intent(id).await.ok().flatten()
}

/// Records in the background that the page of a transaction was opened. Failures are ignored, because the record only
/// informs the client.
pub fn note_page(service: &Service, id: TxnId) {
    tokio::spawn(service.store.note_page(id));
}

/// Records in the background that the outcome of a transaction was fetched.
pub fn note_poll(service: &Service, record: &CompletedRecord) {
    if !record.is_polled {
        tokio::spawn(service.store.note_poll(record.opened.id));
    }
}

/// Opens the transaction of a guest at an event, at the organiser's cost. The store decides if the event accepts the
/// guest. Also returns the intent.
///
/// # Errors
/// Any [`ServiceError`]; the transaction is not opened, and nothing is debited.
pub async fn open_for_guest(
    service: &Service,
    event: &Event,
    request_id: RequestId,
) -> Result<(Arc<Pending>, String), ServiceError> {
    let now = service.clock.now();
    // No intent is signed for a transaction that will not be opened.
    match check_credits(event) {
        // The event may be older than a grant, if this node still reaches a replaced Redis primary.
        Err(ServiceError::InsufficientCredits)
            if !service.transactions.lacks_credits(&event.client, CREDITS_PER_VERIFICATION).await? => {}
        outcome => outcome?,
    }
    let terms = Terms {
        claims: event.terms.claims,
        channel: Channel::Web,
        language: event.terms.language,
        face_auth: true,
        webhook_url: None,
        request_id,
        extras: event
            .terms
            .purpose
            .clone()
            .map(|purpose| Box::new(OptionalTerms { purpose: Some(purpose), ..OptionalTerms::default() })),
    };
    let terms = with_current_trace(with_retention(terms, event.terms.retention));
    let pending = Arc::new(Pending {
        id: new_id(service, &event.client)?,
        client: event.client.clone(),
        app: event.app.clone(),
        event: Some(event.id),
        opened_at: now,
        expires_at: now + service.rules.window,
        terms,
    });
    let SignedIntent { jwt, stored: intent } = service.authority.sign_intent(&pending, now).await?;
    let (cost, pending_max) = (CREDITS_PER_VERIFICATION, Some(event.pending_max()));
    open(service, OpenTransaction { pending: Arc::clone(&pending), cost, idempotency: None, pending_max, intent })
        .await?;
    Ok((pending, jwt))
}

/// Refuses a guest if the event has no credits, by its last known state.
///
/// # Errors
/// [`ServiceError::BudgetSpent`] and [`ServiceError::InsufficientCredits`].
pub fn check_credits(event: &Event) -> Result<(), ServiceError> {
    if event.is_budget_spent() {
        Err(ServiceError::BudgetSpent)
    } else if !event.is_funded {
        Err(ServiceError::InsufficientCredits)
    } else {
        Ok(())
    }
}

/// Adds the client's current retention to a transaction.
fn with_retention(mut terms: Terms, retention: ClientRetention) -> Terms {
    if !retention.is_usual() {
        terms.extras.get_or_insert_default().retention = retention;
    }
    terms
}

/// Adds the current trace to a transaction; its callback and its webhook link to this trace.
fn with_current_trace(mut terms: Terms) -> Terms {
    if let Some(state) = sakshi_trace::parent_of(&sakshi_trace::current()) {
        terms.extras.get_or_insert_default().trace = Some(state.parent.into());
    }
    terms
}

/// Opens a transaction and debits its credits. Returns the stored response of an earlier request under the same key, if
/// there was one.
///
/// # Errors
/// Any [`ServiceError`]; the transaction is not opened, and nothing is debited.
async fn open(service: &Service, opening: OpenTransaction) -> Result<Option<Sealed>, ServiceError> {
    let pending = Arc::clone(&opening.pending);
    check_opening(&opening)?;
    match service.transactions.open(opening).await? {
        OpenOutcome::Opened { .. } => {
            metrics::counter!("sakshi_transactions_opened_total").increment(1);
            let Pending { id, client, app, terms, .. } = &*pending;
            tracing::info!(txn.id = %id, client.id = %client, app.id = %app, request.id = %terms.request_id,
                "transaction opened");
            Ok(None)
        }
        OpenOutcome::InsufficientCredits => Err(ServiceError::InsufficientCredits),
        OpenOutcome::Replayed(sealed) => Ok(Some(sealed)),
        OpenOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        OpenOutcome::EventRefused(refusal) => Err(refusal.into()),
        OpenOutcome::BudgetSpent => Err(ServiceError::BudgetSpent),
        OpenOutcome::ScansPending => Err(ServiceError::ScansPending),
        OpenOutcome::EventNotFound => Err(ServiceError::NotFound("event")),
    }
}

/// Refuses an opening that breaks an invariant.
fn check_opening(opening: &OpenTransaction) -> Result<(), Broken> {
    let (Pending { id, client, event, opened_at, expires_at, terms, .. }, stored) =
        (&*opening.pending, &opening.idempotency);
    let is_of_client = |partition| partition == client.partition();
    ensure(Part::Service, "a transaction is in the partition of its client", is_of_client(id.partition()))?;
    ensure(
        Part::Service,
        "a guest's event is in the partition of its client",
        event.is_none_or(|event| is_of_client(event.partition())),
    )?;
    ensure(
        Part::Service,
        "a kept answer is in the partition of its client",
        stored.as_ref().is_none_or(|stored| is_of_client(stored.scope.partition)),
    )?;
    ensure(Part::Service, "a window ends after it began", opened_at < expires_at)?;
    ensure(Part::Service, "a transaction costs its credits", opening.cost == CREDITS_PER_VERIFICATION)?;
    ensure(Part::Service, "a transaction asks for claims", !terms.claims.is_empty())?;
    ensure(
        Part::Service,
        "only a guest has no more than the scans of an event beside",
        event.is_some() == opening.pending_max.is_some(),
    )
}

/// A transaction that has not expired.
#[derive(Debug)]
pub enum OpenOrCompleted {
    /// The transaction waits for the person.
    Pending(Arc<Pending>),
    /// The transaction has ended with an answer.
    Completed(Box<CompletedRecord>),
}

/// Returns the current transaction of this app.
///
/// # Errors
/// [`ServiceError::TransactionNotFound`] unless the app has such a transaction, [`ServiceError::TransactionExpired`]
/// when its window has passed.
pub(crate) async fn own_transaction(service: &Service, app: &App, id: TxnId) -> Result<OpenOrCompleted, ServiceError> {
    check_owner(service.transactions.get(id).await?, app)
}

/// Like [`own_transaction`], but first waits for a pending transaction to end: for `wait` at most, or until this
/// process shuts down.
///
/// # Errors
/// As [`own_transaction`], and [`ServiceError::Unauthorized`] when the caller's key is revoked during the wait.
pub async fn await_outcome(
    service: &Service,
    caller: &Caller,
    id: TxnId,
    wait: Duration,
) -> Result<OpenOrCompleted, ServiceError> {
    let app = &caller.app;
    let current = own_transaction(service, app, id).await?;
    if wait.is_zero() || matches!(current, OpenOrCompleted::Completed(_)) {
        return Ok(current);
    }
    let end = service.transactions.wait_for_end(id, wait);
    let after_wait = tokio::select! {
        ended = end => check_owner(ended?, app),
        () = service.drain.wait_until_begun() => Ok(current),
        () = caller.until_revoked() => return Err(ServiceError::Unauthorized),
    };
    caller.recheck().await?;
    after_wait
}

/// Returns the transaction if it is of this app and has not expired.
fn check_owner(view: View, app: &App) -> Result<OpenOrCompleted, ServiceError> {
    let opened = match &view {
        View::Pending(opened) | View::Expired(opened) => Some(&**opened),
        View::Completed(record) => Some(&record.opened),
        View::Unknown => None,
    };
    let has_client = |opened: &Pending| opened.app != app.app_id || opened.client == app.client_id;
    ensure(Part::Service, "a transaction of an app is one of its client", opened.is_none_or(has_client))?;
    match view {
        View::Pending(pending) if pending.app == app.app_id => Ok(OpenOrCompleted::Pending(pending)),
        View::Completed(record) if record.opened.app == app.app_id => Ok(OpenOrCompleted::Completed(record)),
        View::Expired(opened) if opened.app == app.app_id => Err(ServiceError::TransactionExpired),
        _ => Err(ServiceError::TransactionNotFound),
    }
}

/// Signs a new intent for a pending transaction and encodes it for a QR code.
///
/// # Errors
/// As [`own_transaction`], and [`ServiceError::AlreadyCompleted`].
pub async fn qr_intent(service: &Service, app: &App, id: TxnId) -> Result<QrIntentResponse, ServiceError> {
    match own_transaction(service, app, id).await? {
        OpenOrCompleted::Pending(pending) => {
            let intent = service.authority.sign_intent(&pending, service.clock.now()).await?;
            Ok(QrIntentResponse { qr_payload: service.authority.qr_payload(&intent.jwt) })
        }
        OpenOrCompleted::Completed(_) => Err(ServiceError::AlreadyCompleted),
    }
}

/// Ends the window of a pending transaction now, and returns the end. For tests of clients, in the sandbox.
///
/// # Errors
/// [`ServiceError::TransactionNotFound`], and [`ServiceError::AlreadyCompleted`].
pub async fn expire(service: &Service, id: TxnId) -> Result<Timestamp, ServiceError> {
    match service.transactions.expire(id).await? {
        View::Expired(opened) => Ok(opened.expires_at),
        View::Completed(_) => Err(ServiceError::AlreadyCompleted),
        View::Pending(_) | View::Unknown => Err(ServiceError::TransactionNotFound),
    }
}

/// Sends the webhook of a completed transaction again, with the same body; `None` while the transaction is pending. For
/// tests of receivers, in the sandbox: elsewhere no webhook is sent twice.
///
/// # Errors
/// As [`own_transaction`], and [`ServiceError::NotFound`] without a webhook URL.
pub async fn send_again(
    service: &Service,
    app: &App,
    id: TxnId,
    webhooks: &WebhookClient,
) -> Result<Option<Attempt>, ServiceError> {
    let OpenOrCompleted::Completed(record) = own_transaction(service, app, id).await? else { return Ok(None) };
    let url = record.webhook_url(&service.vault).map_err(|_| ServiceError::NotFound("webhook URL"))?;
    let (_, body) = outcome_body(service, *record, app)?;
    let attempt = webhooks.attempt(&url, body.into()).await;
    tracing::info!(txn.id = %id, outcome = attempt.outcome.as_str(), "webhook sent again");
    Ok(Some(attempt))
}

/// Decrypts a completed transaction, and builds the body of its webhook and its polls.
///
/// # Errors
/// [`ServiceError::Internal`] when the outcome cannot be decrypted.
pub fn outcome_body(
    service: &Service,
    record: CompletedRecord,
    app: &App,
) -> Result<(Completed, Vec<u8>), ServiceError> {
    let completed = service.transactions.reveal(record).map_err(ServiceError::internal)?;
    let json =
        serde_json::to_vec(&OvsePayload::new(&completed, app.payload_spelling)).map_err(ServiceError::internal)?;
    Ok((completed, json))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{AppId, ClientId, EventId, Partition};
    use sakshi_domain::transaction::AnswerDigest;
    use sakshi_kit::records::{self, opening};
    use sakshi_store::{IdempotencyScope, IdempotentAnswer, Vault};
    use sakshi_trace::invariant::broken_by;

    use super::*;

    fn pending() -> Pending {
        let client = ClientId::generate();
        records::pending(TxnId::generate(client.partition(), 0), client, AppId::generate(), Timestamp::from_millis(0))
    }

    #[test]
    fn terms_have_a_retention_only_for_a_client_with_its_own() {
        let terms = pending().terms;
        assert!(with_retention(terms.clone(), ClientRetention::default()).extras.is_none());
        let own = ClientRetention { result_ttl_s: 60.try_into().ok(), ..ClientRetention::default() };
        assert_eq!(with_retention(terms, own).extras.unwrap().retention, own);
    }

    #[test]
    fn a_transaction_of_another_app_is_not_found_in_any_state() {
        let opened = pending();
        let own_app = records::app(opened.app.clone(), opened.client.clone());
        let other_app = records::app(AppId::generate(), opened.client.clone());
        let completed = CompletedRecord {
            opened: opened.clone(),
            verified_at: opened.opened_at,
            passed: true,
            refused: None,
            registration: None,
            answer: AnswerDigest([1; 32]),
            outcome: Vault::new(&[vec![7; 32].into()]).unwrap().seal(b"owner", b"outcome"),
            address: None,
            is_polled: false,
        };
        let opened = Arc::new(opened);
        let states = [
            View::Pending(Arc::clone(&opened)),
            View::Completed(Box::new(completed)),
            View::Expired(opened),
            View::Unknown,
        ];
        let [pending, ended, expired, unknown] = states.clone().map(|view| check_owner(view, &own_app));
        assert!(
            matches!(pending, Ok(OpenOrCompleted::Pending(_))) && matches!(ended, Ok(OpenOrCompleted::Completed(_)))
        );
        assert!(
            matches!(expired, Err(ServiceError::TransactionExpired))
                && matches!(unknown, Err(ServiceError::TransactionNotFound))
        );
        for result in states.map(|view| check_owner(view, &other_app)) {
            assert!(matches!(result, Err(ServiceError::TransactionNotFound)));
        }
    }

    #[test]
    fn an_opening_that_breaks_an_invariant_is_refused() {
        let broken_invariant = |opening: OpenTransaction| check_opening(&opening).err().map(Broken::name);
        let own = Pending { client: "cl_1".parse().unwrap(), ..pending() };
        let own = Pending { id: TxnId::generate(own.client.partition(), 0), ..own };
        let other_partition = Partition::all().find(|partition| *partition != own.client.partition()).unwrap();
        assert_eq!(broken_invariant(opening(own.clone())), None);
        let guest = |event| Pending { event: Some(event), ..own.clone() };
        let event = EventId::generate(own.client.partition(), 0);
        assert_eq!(broken_invariant(OpenTransaction { pending_max: Some(1), ..opening(guest(event)) }), None);
        let scope = IdempotencyScope { partition: other_partition, digest: [0; 32] };
        let answer = Vault::new(&[vec![7; 32].into()]).unwrap().seal(b"owner", b"answer");
        let stored = IdempotentAnswer { scope, request: [0; 32], answer, until: own.expires_at };
        let mut without_claims = own.clone();
        without_claims.terms.claims = sakshi_domain::claims::ClaimSet::default();
        for (opening, name) in [
            (
                opening(Pending { id: TxnId::generate(other_partition, 0), ..own.clone() }),
                "a transaction is in the partition of its client",
            ),
            (
                opening(guest(EventId::generate(other_partition, 0))),
                "a guest's event is in the partition of its client",
            ),
            (
                OpenTransaction { idempotency: Some(stored), ..opening(own.clone()) },
                "a kept answer is in the partition of its client",
            ),
            (opening(Pending { expires_at: own.opened_at, ..own.clone() }), "a window ends after it began"),
            (OpenTransaction { cost: 2, ..opening(own.clone()) }, "a transaction costs its credits"),
            (opening(without_claims), "a transaction asks for claims"),
            (opening(guest(event)), "only a guest has no more than the scans of an event beside"),
        ] {
            assert_eq!(broken_invariant(opening), Some(name));
        }
        let other_client = records::app(own.app.clone(), ClientId::generate());
        assert_eq!(
            broken_by(|| drop(check_owner(View::Pending(Arc::new(own)), &other_client))),
            ["a transaction of an app is one of its client"]
        );
    }
}

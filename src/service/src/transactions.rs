//! Use cases of transactions: opening one for a caller or for a guest of an event, and looking at one.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::View;
use sakshi_domain::channel::Channel;
use sakshi_domain::event::Event;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Pending, Terms};
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, Sealed};
use serde::Serialize;

use crate::authentication::Caller;
use crate::error::ServiceError;
use crate::idempotency::{Answered, IdempotentRequest, written};
use crate::service::Service;

/// Its word in what an idempotency key is good for.
pub const OPERATION: &str = "init";

/// Opens a transaction on these terms and debits its credit, unless that was done before under the same key. `answer` makes the
/// answer to the caller; with a key it is kept in the step that debits.
///
/// # Errors
/// When it is not opened; nothing is debited then.
pub async fn open_transaction<A: Serialize>(
    service: &Service,
    caller: Caller,
    terms: Terms,
    once: Option<IdempotentRequest>,
    answer: impl FnOnce(&Pending, Timestamp) -> Result<A, ServiceError>,
) -> Result<Answered, ServiceError> {
    if let Some(once) = &once
        && let Some(json) = once.kept(service).await?
    {
        return Ok(Answered::Replayed(json));
    }
    caller.recheck().await?;

    let now = service.clock.now();
    let pending = Arc::new(Pending {
        id: service.transactions.new_id(&caller.client),
        client: caller.client,
        app: caller.app.app_id.clone(),
        event: None,
        opened_at: now,
        expires_at: now + service.rules.window,
        terms,
    });
    let Some(once) = once else {
        open(service, OpenTransaction { pending: Arc::clone(&pending), cost: CREDITS_PER_VERIFICATION, idempotency: None }).await?;
        return Ok(Answered::New(written(&answer(&pending, now)?)?));
    };
    // The answer is kept in the step that debits, so it must exist before.
    let json = written(&answer(&pending, now)?)?;
    let kept = once.keep(&service.vault, &json, now);
    match open(service, OpenTransaction { pending, cost: CREDITS_PER_VERIFICATION, idempotency: Some(kept) }).await? {
        None => Ok(Answered::New(json)),
        Some(sealed) => once.reveal(&service.vault, &sealed).map(Answered::Replayed),
    }
}

/// Opens the transaction of a guest at an event, at the organiser's cost; the store decides whether the event takes one.
///
/// # Errors
/// When it is not opened; nothing is debited then.
pub async fn open_for_guest(service: &Service, event: &Event, request_id: RequestId) -> Result<Arc<Pending>, ServiceError> {
    let now = service.clock.now();
    let terms = Terms {
        claims: event.terms.claims,
        channel: Channel::Web,
        language: event.terms.language,
        face_auth: true,
        webhook_url: None,
        request_id,
        extras: None,
    };
    let pending = Arc::new(Pending {
        id: service.transactions.new_id(&event.client),
        client: event.client.clone(),
        app: event.app.clone(),
        event: Some(event.id),
        opened_at: now,
        expires_at: now + service.rules.window,
        terms,
    });
    open(service, OpenTransaction { pending: Arc::clone(&pending), cost: CREDITS_PER_VERIFICATION, idempotency: None }).await?;
    Ok(pending)
}

/// Opens a transaction and debits its credits. The answer is there when an earlier request under the same key has got one.
///
/// # Errors
/// When it is not opened; nothing is debited then.
async fn open(service: &Service, opening: OpenTransaction) -> Result<Option<Sealed>, ServiceError> {
    let id = opening.pending.id;
    match service.transactions.open(opening).await? {
        OpenOutcome::Opened { .. } => {
            metrics::counter!("sakshi_transactions_opened_total").increment(1);
            tracing::info!(txn.id = %id, "transaction opened");
            Ok(None)
        }
        OpenOutcome::InsufficientCredits => Err(ServiceError::InsufficientCredits),
        OpenOutcome::Replayed(sealed) => Ok(Some(sealed)),
        OpenOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        OpenOutcome::EventRefused(refusal) => Err(refusal.into()),
        OpenOutcome::EventNotFound => Err(ServiceError::NotFound("event")),
    }
}

/// What an app may know of a transaction of its own.
#[derive(Debug)]
pub enum OwnTransaction {
    /// It waits for the person.
    Pending(Arc<Pending>),
    /// It has ended with an answer.
    Completed(Box<CompletedRecord>),
}

/// A transaction of this app as it is now.
///
/// # Errors
/// [`ServiceError::TransactionNotFound`] unless the app has such a transaction, [`ServiceError::TransactionExpired`] when its window
/// has passed.
pub async fn own_transaction(service: &Service, app: &App, id: TxnId) -> Result<OwnTransaction, ServiceError> {
    owned(service.transactions.look(id).await?, app)
}

/// The same, but a pending transaction is waited for: until it ends, for `wait` at most, or until this process ends.
///
/// # Errors
/// As [`own_transaction`], and [`ServiceError::Unauthorized`] when the caller's key is revoked meanwhile.
pub async fn await_outcome(service: &Service, caller: &Caller, id: TxnId, wait: Duration) -> Result<OwnTransaction, ServiceError> {
    let app = &caller.app;
    let found = own_transaction(service, app, id).await?;
    if wait.is_zero() || matches!(found, OwnTransaction::Completed(_)) {
        return Ok(found);
    }
    let changed = service.transactions.look_when_changed(id, wait);
    let found = tokio::select! {
        later = changed => owned(later?, app),
        () = service.drain.begun() => Ok(found),
        () = caller.until_revoked() => return Err(ServiceError::Unauthorized),
    };
    caller.recheck().await?;
    found
}

fn owned(view: View, app: &App) -> Result<OwnTransaction, ServiceError> {
    match view {
        View::Pending(pending) if pending.app == app.app_id => Ok(OwnTransaction::Pending(pending)),
        View::Completed(record) if record.opened.app == app.app_id => Ok(OwnTransaction::Completed(record)),
        View::Expired(opened) if opened.app == app.app_id => Err(ServiceError::TransactionExpired),
        _ => Err(ServiceError::TransactionNotFound),
    }
}

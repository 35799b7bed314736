//! `POST /cb/{txnId}/{capability}`: the identity app hands in its answer.
//!
//! Nobody authenticates here. Trust rests on the capability in the URL, the issuer's signature and
//! the transaction's being pending; a stranger's garbage ends nothing. The reply has the form of
//! the callback, XML or JSON, and its code is the HTTP status.

mod judge;
mod reply;

use std::sync::Arc;

use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_actors::Complete;
use sakshi_authority::callback::CallbackForm;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{CALLBACK_ARRIVAL_MAX, CALLBACK_INLINE_BYTES_MAX};
use sakshi_service::service::Service;
use sakshi_web::body_reader::{BodyError, BodyReader, ReceivedBody, declared_length};
use sakshi_web::budget::{CpuBudget, MemoryBudgets, OwnerPath};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use self::judge::{Asked, Judged, judge};
use self::reply::Reply;

/// Takes an answer.
///
/// Nothing of the body is read before the sender has shown that it knows the address of a
/// transaction that answers are still read for, and has not sent too much.
///
/// # Errors
/// 413 and 429; everything else is a reply in the form of the callback.
pub async fn receive(
    path: Path<(String, String)>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    (memory, cpu): (Data<MemoryBudgets>, Data<CpuBudget>),
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let address = rates.client_address(&request);
    rates.callbacks.take(&address)?;
    let (txn, capability) = path.into_inner();
    let said = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = said(CONTENT_TYPE);
    let unread = CallbackForm::announced(content_type, said(ACCEPT));
    let Some(id) = txn.parse().ok().filter(|id| service.authority.callbacks.is_genuine(*id, &capability)) else {
        return Ok(Reply::unknown().render(unread, &txn));
    };
    let asked = match service.transactions.glance(id).await {
        Ok(view) => Asked::of(view),
        Err(error) => Err(Reply::unavailable(&error)),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(reply) => return Ok(reply.render(unread, &txn)),
    };
    let (client, event) = asked.owners();
    let owners = OwnerPath::sender(address, client, event, id);
    let limit = service.rules.callback_bytes;
    let reader = BodyReader { budget: &memory.callbacks, limit, timeout: CALLBACK_ARRIVAL_MAX };
    let received = match reader.read(owners.clone(), declared_length(request.headers()), payload).await {
        Ok(received) => received,
        Err(BodyError::TooLarge) => return Err(ApiError::BodyTooLarge { limit }),
        Err(error) => return Ok(Reply::unread(error).render(unread, &txn)),
    };
    let known = asked.pending();
    let judged = match judged(&service, &cpu, owners, (id, asked), content_type, received).await {
        Ok(judged) => judged,
        Err(reply) => return Ok(reply.render(unread, &txn)),
    };
    let reply = match judged.answer {
        Ok(answer) => {
            let (replay_window, result_ttl) = (service.rules.replay_window, service.rules.result_ttl);
            let complete = Complete { answer, known, replay_window, result_ttl };
            Reply::completing(service.transactions.complete(id, complete).await)
        }
        Err(reply) => reply,
    };
    if let Some(code) = reply.refusal {
        metrics::counter!("sakshi_credentials_refused_total", "reason" => code).increment(1);
        tracing::info!(txn.id = %id, reason = code, "a credential was refused");
    }
    Ok(reply.render(judged.form, &txn))
}

/// Judges a body: a small one at once, a large one apart from this worker, which serves others too.
async fn judged(
    service: &Service,
    cpu: &CpuBudget,
    owners: OwnerPath,
    (id, asked): (TxnId, Asked),
    content_type: Option<&str>,
    ReceivedBody { bytes, permit }: ReceivedBody,
) -> Result<Judged, Reply> {
    let now = service.clock.now();
    if bytes.len() <= CALLBACK_INLINE_BYTES_MAX {
        return Ok(judge(&service.authority, (id, &asked), content_type, &bytes, now));
    }
    let (agreement, content_type) = (Arc::clone(&service.authority), content_type.map(str::to_owned));
    let work = cpu.run(owners, move || judge(&agreement, (id, &asked), content_type.as_deref(), &bytes, now));
    tokio::select! {
        judged = work => judged.map_err(Reply::uncomputed),
        () = permit.revoked() => Err(Reply::unread(BodyError::BudgetExhausted)),
    }
}

//! Single verifications (specification, "OVSE"): init, qr-intent and result. [`callback`] receives the answers of the
//! identity app.

mod callback;
pub(crate) mod list;

use std::time::Duration;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::ids::TxnId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::LONG_POLL_SECONDS_MAX;
use sakshi_service::evidence::evidence_file;
use sakshi_service::idempotency::CreationAnswer;
use sakshi_service::opened::OnOpened;
use sakshi_service::transactions::{
    self, OPERATION, OpenOrCompleted, await_outcome, note_poll, open_transaction, outcome_body,
};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::subject::note_transaction;
use sakshi_wire::ovse::{
    EvidenceFile, InitRequest, InitResponse, OvsePending, OvseResult, QrIntentRequest, QrIntentResponse,
};

pub(crate) use self::callback::receive;
use crate::poll::outcome_response;

/// Opens a transaction.
///
/// # Errors
/// 400, 401, 402, 422, 429 and 503 of the error table. Only a response of 200 costs a credit.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/init", tag = "OVSE", operation_id = "openTransaction",
    request_body = InitRequest,
    summary = "Open a verification",
    description = "Debits one credit. Depending on `channel`, send the person to `requestUrl`, show the QR code, or \
        launch the app.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = InitResponse, description = "Opened; one credit was debited."),
              (status = 400, description = "An unknown claim, an invalid channel, or another field that is not valid."),
              (status = 402, description = "Not enough credits."))
)]
pub(crate) async fn init(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    let idempotent = idempotency::idempotent_request(&request, &caller, OPERATION, &body.bytes)?;
    let init: InitRequest = body.object.into_request(service.request_context())?;
    let request_id = adopt_request_id(&request, init.request_id.clone());
    let (with_qr, terms) = (init.qr.0, init.terms(request_id, caller.app.evidence));
    // Only the sandbox has a listener: a simulated person, whom the name hint tells how to answer.
    let listener = request.app_data::<Data<OnOpened>>();
    let hint = listener.and_then(|_| terms.extras.as_ref()?.name_hint.clone());
    if let (Some(listener), Some(hint)) = (listener, &hint) {
        listener.0.check(hint).map_err(|sentence| ApiError::from(Invalid::one("name_hint", sentence)))?;
    }
    let creation = open_transaction(&service, caller, terms, with_qr, idempotent).await?;
    if let CreationAnswer::New { answer, .. } = &creation {
        note_transaction(&request, answer.txn_id);
        if let (Some(listener), Some(hint)) = (listener, hint) {
            listener.0.opened(&answer.intent_jwt, &hint);
        }
    }
    Ok(idempotency::creation_response(creation))
}

/// Signs the intent of a pending transaction again and encodes it for a QR code.
///
/// # Errors
/// 404 unless the app has such a transaction, 409 when it is completed, 410 when it has expired.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/qr-intent", tag = "OVSE", operation_id = "createQrIntent",
    request_body = QrIntentRequest,
    summary = "Create a QR code value",
    description = "Signs the intent of a pending transaction again and encodes it for a QR code. Render the value \
        unchanged.",
    responses((status = 200, body = QrIntentResponse, description = "The value of the QR code."),
              (status = 404, description = "The application has no such transaction."),
              (status = 409, description = "The transaction is already completed."),
              (status = 410, description = "The transaction has expired."))
)]
pub(crate) async fn qr_intent(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let qr_intent: QrIntentRequest = body.object.into_request(service.request_context())?;
    let id: TxnId = qr_intent.txn_id.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    Ok(HttpResponse::Ok().json(transactions::qr_intent(&service, &caller.app, id).await?))
}

/// Returns the body of the webhook once the transaction is completed.
///
/// # Errors
/// 404 unless the app has such a transaction, 410 when it has expired.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/result/{txnId}", tag = "OVSE", operation_id = "getResult",
    summary = "Get the result",
    description = "Returns the body of the webhook once the transaction is completed. Before that, returns a stub with \
        `pending: true`. A result is stored for 24 hours.",
    params(("txnId" = String, Path, format = "uuid", description = "The `txnId` of `openTransaction`."),
           ("wait" = Option<u32>, Query, minimum = 0, maximum = 30, description = "Seconds to wait for an outcome. \
               Default: 0.")),
    responses((status = 200, body = OvseResult, description = "The outcome, or a stub."),
              (status = 404, description = "The application has no such transaction, or its result was deleted."),
              (status = 410, description = "The transaction has expired."))
)]
pub(crate) async fn result(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let mut query = Query::parse(request.query_string());
    let wait = query.number(&["wait"], 0..=LONG_POLL_SECONDS_MAX, 0);
    query.finish()?;
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    match await_outcome(&service, &caller, id, Duration::from_secs(wait)).await? {
        OpenOrCompleted::Pending(_) => Ok(HttpResponse::Ok().json(OvsePending::new(id))),
        OpenOrCompleted::Completed(record) => {
            note_poll(&service, &record);
            let (_, json) = outcome_body(&service, *record, &caller.app)?;
            outcome_response(&request, &service, &caller, json)
        }
    }
}

/// Returns the evidence of a completed transaction.
///
/// # Errors
/// 404 unless the app has such a transaction with stored evidence, 410 when it has expired.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/result/{txnId}/evidence", tag = "OVSE", operation_id = "getEvidence",
    summary = "Get the evidence",
    description = "Returns the signed credential with its disclosures, the issuer's key, the proof of its status and \
        the times, in one sealed file, if the transaction was opened with `evidence`. Save the file: the service \
        deletes it together with the result. The file contains all shared data.",
    params(("txnId" = String, Path, format = "uuid", description = "The `txnId` of `openTransaction`.")),
    responses((status = 200, body = EvidenceFile, description = "The evidence."),
              (status = 404, description = "The application has no such transaction, or no evidence of it is stored."),
              (status = 410, description = "The transaction has expired."))
)]
pub(crate) async fn evidence(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    Query::parse(request.query_string()).finish()?;
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let file = evidence_file(&service, &caller.app, id).await?;
    outcome_response(&request, &service, &caller, serde_json::to_vec(&file).map_err(ServiceError::internal)?)
}

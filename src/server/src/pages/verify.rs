//! `GET /v/{txnId}`: the verify page (`requestUrl`), and the intent for an identity app that
//! follows a scanned `requestUrl` (specification, OVSE rules 1 and 2).

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::PAGE_SIGNATURE_COST;
use sakshi_domain::transaction::Pending;

use super::asked::{JWT, wants_intent};
use super::intents::PageIntents;
use super::notice::{Again, busy, ended};
use super::platform::Platform;
use super::render::private;
use super::standing::Standing;
use super::text::Texts;
use super::tongue::Tongue;
use super::waiting::waiting;
use crate::http::error::ApiError;
use crate::http::rate::Rates;
use crate::service::Service;

/// Shows how the transaction stands, or hands its intent to the identity app.
///
/// # Errors
/// Why there is no intent, for the identity app.
pub async fn verify(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    let standing = match rates.pages.take(&rates.address(&request)) {
        Ok(()) => Standing::of_path(&service, &path).await,
        Err(refusal) => Err(refusal),
    };
    if wants_intent(&request) {
        let standing = standing?;
        // Who gets none costs no signature.
        if matches!(standing, Standing::Waiting(_)) {
            rates.pages.take_more(&rates.address(&request), PAGE_SIGNATURE_COST)?;
        }
        return intent(&service, &standing);
    }
    let opened = standing.as_ref().ok().and_then(Standing::opened);
    let texts = opened.map_or_else(|| Texts::asked_for(&request), |opened| Texts::of(opened.terms.language));
    let tongue = Tongue::of(&request, texts);
    let sandbox = service.agreement.sandbox;
    let shown = match standing {
        Ok(Standing::Waiting(pending)) => shown_waiting(&service, &pending, tongue, &request, &rates).await,
        Ok(other) => Ok(ended(&other, tongue, request.path(), sandbox)),
        Err(error) => Err(error),
    };
    Ok(shown.unwrap_or_else(|error| busy(&error, tongue, request.path(), Again::ByItself, sandbox)))
}

/// The page with the intent that it shows at the moment, or with a fresh one, which costs the
/// address more than a page.
async fn shown_waiting(
    service: &Service,
    pending: &Pending,
    tongue: Tongue,
    request: &HttpRequest,
    rates: &Rates,
) -> Result<HttpResponse, ApiError> {
    let (intents, now) = (PageIntents::of(request), service.clock.now());
    let intent = match intents.current(pending.id, now) {
        Some(intent) => intent,
        None => {
            rates.pages.take_more(&rates.address(request), PAGE_SIGNATURE_COST)?;
            intents.sign(service, pending, now)?
        }
    };
    waiting(service, pending, &intent, tongue, Platform::of(request), asks_for_help(request)).await
}

fn intent(service: &Service, standing: &Standing) -> Result<HttpResponse, ApiError> {
    match standing {
        Standing::Waiting(pending) => hand_over(service, pending),
        Standing::Verified(_) | Standing::NotVerified(..) => Err(ApiError::AlreadyCompleted),
        Standing::Expired(_) => Err(ApiError::TransactionExpired),
        Standing::Unknown => Err(ApiError::TransactionNotFound),
    }
}

/// Answers with a freshly signed intent.
///
/// # Errors
/// An intent that cannot be signed.
pub(super) fn hand_over(service: &Service, pending: &Pending) -> Result<HttpResponse, ApiError> {
    let intent = service.agreement.intent(pending, service.clock.now()).map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(private(StatusCode::OK).content_type(JWT).body(intent))
}

fn asks_for_help(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "help=1")
}

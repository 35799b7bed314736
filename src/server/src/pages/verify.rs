//! `GET /v/{txnId}`: the verify page (`requestUrl`), and the intent for an identity app that
//! follows a scanned `requestUrl` (specification, OVSE rules 1 and 2).

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, RETRY_AFTER};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};

use super::notice::{busy, ended};
use super::platform::Platform;
use super::render::private;
use super::standing::Standing;
use super::waiting::waiting;
use crate::http::error::ApiError;
use crate::http::rate::Rates;
use crate::service::Service;

/// What the identity app asks for; browsers ask for HTML.
const JWT: &str = "application/jwt";

/// Shows how the transaction stands, or hands its intent to the identity app.
pub async fn verify(path: Path<String>, request: HttpRequest, service: Data<Service>, rates: Data<Rates>) -> HttpResponse {
    let standing = match rates.pages.take(&rates.address(&request)) {
        Ok(()) => Standing::of_path(&service, &path).await,
        Err(refusal) => Err(refusal),
    };
    let answer = if wants_intent(&request) {
        standing.and_then(|standing| intent(&service, &standing))
    } else {
        page(&request, &service, standing).await
    };
    answer.unwrap_or_else(|error| refused(&request, &service, &error))
}

async fn page(request: &HttpRequest, service: &Service, standing: Result<Standing, ApiError>) -> Result<HttpResponse, ApiError> {
    match standing? {
        Standing::Waiting(pending) => waiting(service, &pending, Platform::of(request), asks_for_help(request)).await,
        other => Ok(ended(&other, service.agreement.sandbox)),
    }
}

fn intent(service: &Service, standing: &Standing) -> Result<HttpResponse, ApiError> {
    match standing {
        Standing::Waiting(pending) => {
            let intent = service.agreement.intent(pending, service.clock.now()).map_err(|error| ApiError::Internal(error.to_string()))?;
            Ok(private(StatusCode::OK).content_type(JWT).body(intent))
        }
        Standing::Verified(_) | Standing::NotVerified(..) => Err(ApiError::AlreadyCompleted),
        Standing::Expired(_) => Err(ApiError::TransactionExpired),
        Standing::Unknown => Err(ApiError::TransactionNotFound),
    }
}

/// The page that asks for patience, or the word of the error table for the identity app.
fn refused(request: &HttpRequest, service: &Service, error: &ApiError) -> HttpResponse {
    if !wants_intent(request) {
        return busy(error, request.path(), service.agreement.sandbox);
    }
    let mut response = private(error.status_code());
    if let Some(seconds) = error.retry_after() {
        response.insert_header((RETRY_AFTER, seconds));
    }
    response.content_type("text/plain; charset=utf-8").body(error.code())
}

fn wants_intent(request: &HttpRequest) -> bool {
    let values = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JWT)))
}

fn asks_for_help(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "help=1")
}

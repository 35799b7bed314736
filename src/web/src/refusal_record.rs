//! Records refused requests of an app, so that its developers can look up an `errorId`.
//!
//! Accepted requests cost nothing. A refused request whose handler found no caller asks the key gate. The store is
//! written in the background. Refusals without an authenticated caller, or while the store is unavailable, are
//! not recorded.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, ResponseError as _, rt};
use sakshi_domain::limits::{REFUSAL_FIELD_CHARS_MAX, REFUSAL_FIELDS_MAX};
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::request_id::RequestId;
use sakshi_service::{Service, ServiceError};

use super::authenticated::identify;
use super::error::ApiError;
use super::rate_limit::RateLimits;
use super::routing::RouteMetrics;
use super::subject::Subject;

/// Maximum number of stored characters of a method.
const METHOD_CHARS_MAX: usize = 16;

/// Records the refusal of a request, unless the request has no app or the limit of its app is reached.
pub(crate) fn record(request: &HttpRequest, error: &ApiError, id: &RequestId) {
    let status = error.status_code();
    if !request.headers().contains_key("x-api-key")
        || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::SERVICE_UNAVAILABLE)
    {
        return;
    }
    let (Some(service), Some(rates)) =
        (request.app_data::<Data<Service>>().cloned(), request.app_data::<Data<RateLimits>>().cloned())
    else {
        return;
    };
    let refused = RefusedRequest {
        at: service.clock.now(),
        method: request.method().as_str().chars().take(METHOD_CHARS_MAX).collect(),
        route: request.app_data::<RouteMetrics>().map_or("unmatched", RouteMetrics::pattern).to_owned(),
        status: status.as_u16(),
        code: error.code().to_owned(),
        fields: invalid_field_names(error),
        request_id: id.clone(),
    };
    let (noted, request) = (Subject::from_request(request).app, request.clone());
    rt::spawn(async move {
        let app = match noted {
            Some(app) => app,
            None => match identify(&request).await {
                Ok(caller) => caller.app,
                Err(_) => return,
            },
        };
        let app = app.app_id.clone();
        if rates.refusals.take(&app).is_ok()
            && let Err(error) = service.store.keep_refusal(app, refused).await
        {
            tracing::warn!(error = %error, "a refused request could not be recorded");
        }
    });
}

/// Returns the names of the invalid fields, without their values.
fn invalid_field_names(error: &ApiError) -> Vec<String> {
    let ApiError::Service(ServiceError::Invalid(invalid)) = error else { return Vec::new() };
    let shorten = |name: &str| name.chars().take(REFUSAL_FIELD_CHARS_MAX).collect();
    invalid.fields().iter().take(REFUSAL_FIELDS_MAX).map(|problem| shorten(&problem.field)).collect()
}

//! Authentication of client backends. Handlers get a [`Caller`] only through these extractors, so no handler can forget
//! to authenticate. No body is read before its caller is known.

use std::rc::Rc;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::{Either, LocalBoxFuture, Ready, ready};
use sakshi_service::ServiceError;
use sakshi_service::authentication::{Caller, KeyGate};

use super::body::Body;
use super::error::ApiError;
use super::query::Query;
use super::rate_limit::RateLimits;
use super::subject::note_caller;

/// The holder of the key in `X-API-KEY`, for the app in `X-API-APP-ID`.
#[derive(Debug)]
pub struct Authenticated(pub Caller);

impl FromRequest for Authenticated {
    type Error = ApiError;
    type Future = Either<Ready<Result<Self, ApiError>>, LocalBoxFuture<'static, Result<Self, ApiError>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        match identify(request) {
            Either::Left(cached) => {
                Either::Left(ready(cached.into_inner().and_then(|caller| Self::count(request, caller))))
            }
            Either::Right(lookup) => {
                let request = request.clone();
                Either::Right(Box::pin(async move { Self::count(&request, lookup.await?) }))
            }
        }
    }
}

/// The caller of a request. It is ready at once if the gate has cached the pair of key and app.
type Identified = Either<Ready<Result<Caller, ApiError>>, LocalBoxFuture<'static, Result<Caller, ApiError>>>;

/// Finds the caller of a request, and notes the caller for the log. The request does not count for the client.
pub(crate) fn identify(request: &HttpRequest) -> Identified {
    let Some(gate) = request.app_data::<Rc<KeyGate>>() else {
        return Either::Left(ready(Err(ApiError::internal("no key gate is configured"))));
    };
    // A repeated header is refused: a proxy may have checked only one of the values.
    let header = |name: &str| {
        let mut values = request.headers().get_all(name);
        let text = values.next().and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
        text.filter(|_| values.next().is_none())
    };
    match (header("x-api-key"), header("x-api-app-id")) {
        (Some(key), Some(app)) => match gate.admit(key, app) {
            Either::Left(cached) => Either::Left(ready(check_caller(request, cached.into_inner()))),
            Either::Right(lookup) => {
                let request = request.clone();
                Either::Right(Box::pin(async move { check_caller(&request, lookup.await) }))
            }
        },
        _ => Either::Left(ready(check_caller(request, Err(ServiceError::Unauthorized)))),
    }
}

/// Checks the caller's address, and notes the caller for the log.
fn check_caller(request: &HttpRequest, caller: Result<Caller, ServiceError>) -> Result<Caller, ApiError> {
    let caller = caller.map_err(|error| charge_refusal(request, error.into()))?;
    refuse_other_address(request, &caller).map_err(|error| charge_refusal(request, error))?;
    note_caller(request, &caller.app);
    Ok(caller)
}

/// Returns the error for a refused caller. A request without a valid key is charged to the page limit of its address,
/// so it never uses up the limit of a client.
fn charge_refusal(request: &HttpRequest, error: ApiError) -> ApiError {
    let has_bad_key = matches!(error, ApiError::Service(ServiceError::Unauthorized) | ApiError::AddressNotAllowed);
    let rates = request.app_data::<Data<RateLimits>>().filter(|_| has_bad_key);
    rates.and_then(|rates| rates.pages.take(&rates.client_address(request)).err()).unwrap_or(error)
}

/// Refuses a caller whose key is not allowed from the address of the request.
///
/// # Errors
/// [`ApiError::AddressNotAllowed`] outside the networks of the key.
pub fn refuse_other_address(request: &HttpRequest, caller: &Caller) -> Result<(), ApiError> {
    let rates = request.app_data::<Data<RateLimits>>();
    let is_permitted = rates.is_none_or(|rates| caller.networks.permit(rates.host(request)));
    if is_permitted { Ok(()) } else { Err(ApiError::AddressNotAllowed) }
}

impl Authenticated {
    /// Counts the request for the client.
    fn count(request: &HttpRequest, caller: Caller) -> Result<Self, ApiError> {
        if let Some(rates) = request.app_data::<Data<RateLimits>>() {
            rates.clients.count(request, &caller.client, caller.limits.requests_per_second)?;
        }
        Ok(Self(caller))
    }
}

/// A caller and the JSON body of a request without a query.
#[derive(Debug)]
pub struct AuthenticatedBody {
    /// The caller.
    pub caller: Caller,
    /// The body.
    pub body: Body,
}

impl FromRequest for AuthenticatedBody {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Authenticated::from_request(request, payload);
        let query = Query::parse(request.query_string());
        let body = Body::from_request(request, payload);
        Box::pin(async move {
            let Authenticated(caller) = caller.await?;
            query.finish()?;
            let body = body.await?;
            // The body may have taken long to arrive.
            caller.recheck().await?;
            Ok(Self { caller, body })
        })
    }
}

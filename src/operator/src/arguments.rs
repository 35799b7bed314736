//! Extractors of this listener's handlers: the id in the path, the page of a list, and the body.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::web::{Data, Path};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::{AppId, ClientId, EventId, GrantId, KeyId, OperatorId, TxnId, UserId};
use sakshi_domain::request_id::RequestId;
use sakshi_service::ServiceError;
use sakshi_store::PageRequest;
use sakshi_web::body;
use sakshi_web::error::ApiError;
use sakshi_web::query::{next_page, parse_page};
use sakshi_wire::{Body, Describe, ReceivedObject};

use super::InternalDeps;

/// The resource that an id in a path identifies.
pub(super) trait Identifies: FromStr + Describe + 'static {
    /// Noun in the message of a 404, and in the document.
    const NOUN: &'static str;
    /// Example for the document.
    const EXAMPLE: &'static str;
}

/// Implements [`Identifies`] for types of ids, with noun and example.
macro_rules! identifies {
    ($($id:ty: $noun:literal, $example:literal;)+) => {
        $(impl Identifies for $id {
            const NOUN: &'static str = $noun;
            const EXAMPLE: &'static str = $example;
        })+
    };
}

identifies! {
    ClientId: "client", "cl_5f0c1d2e3b4a49788695a4b3c2d1e0f9";
    AppId: "app", "app_0c1d2e3b4a5f49788695a4b3c2d1e0f9";
    EventId: "event", "0fZbQ0000000000aB";
    GrantId: "grant request", "gr_1d2e3b4a5f0c49788695a4b3c2d1e0f9";
    KeyId: "key", "key_2e3b4a5f0c1d49788695a4b3c2d1e0f9";
    UserId: "user", "usr_5f0c1d2e3b4a49788695a4b3c2d1e0f9";
    OperatorId: "operator", "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9";
    TxnId: "transaction", "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    FlowId: "flow", "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    RequestId: "refused request", "order-42-try-1";
    ReportKind: "kind of report", "wealth-historical";
}

/// The id in the path. Malformed text gives a 404.
#[derive(Debug)]
pub(super) struct Id<T>(pub(super) T);

impl<T: Identifies> FromRequest for Id<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let text = Path::<String>::from_request(request, payload).into_inner().ok();
        ready(text.and_then(|text| text.parse().ok()).map(Self).ok_or(ServiceError::NotFound(T::NOUN).into()))
    }
}

/// The requested page of a list, and the path of the list.
#[derive(Debug)]
pub(super) struct Paged {
    pub(super) page: PageRequest,
    path: String,
}

impl Paged {
    /// Returns path and query of the next page of a list of `total` rows.
    pub(super) fn next(&self, total: u64) -> Option<String> {
        next_page(&self.path, self.page, total)
    }
}

impl FromRequest for Paged {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse_page(request.query_string()).map(|page| Self { page, path: request.path().to_owned() }))
    }
}

/// The request in the body.
#[derive(Debug)]
pub(super) struct RequestBody<T>(pub(super) T);

/// The body of an operation that a page of the console performs, in the extensions of the page's request.
pub(super) struct PageBody(pub(super) Option<ReceivedObject>);

impl<T: Body> FromRequest for RequestBody<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let deps = deps(request);
        let page_body = request.extensions_mut().get_mut::<PageBody>().and_then(|body| body.0.take());
        let body = body::Body::from_request(request, payload);
        Box::pin(async move {
            let deps = deps?;
            let object = match page_body {
                Some(object) => object,
                None => body.await?.object,
            };
            Ok(Self(object.into_request(deps.urls.at(deps.clock.now()))?))
        })
    }
}

/// Returns the handlers' dependencies.
pub(super) fn deps(request: &HttpRequest) -> Result<Data<InternalDeps>, ApiError> {
    request.app_data().cloned().ok_or_else(|| ApiError::internal("the internal routes are not configured"))
}

//! JSON bodies: the form is checked, and the size and the time of the arrival are bounded.
//!
//! What is in them is read field by field, by [`super::fields`].

use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::{Bytes, Data};
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt as _, stream};
use sakshi_domain::limits::{BODY_PROGRESS_WINDOW, SMALL_BODY_ARRIVAL_MAX};
use tokio::time::timeout;

use super::error::ApiError;
use super::fields::Fields;
use super::intake::{BodyFault, Intake, declared_length};
use crate::budget::{Memory, Owner, Owners};

/// Bytes of a JSON body that a scope accepts; put it into the scope's data.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit(pub usize);

/// Applies where no [`BodyLimit`] was set.
const LIMIT_DEFAULT: usize = 64 * 1_024;

/// A JSON object, and the bytes that it was read from.
#[derive(Debug)]
pub struct Body {
    /// Its fields, to be taken out one by one.
    pub fields: Fields,
    /// The bytes as received.
    pub bytes: Bytes,
}

impl FromRequest for Body {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let form = json_form(request.headers());
        let limit = request.app_data::<BodyLimit>().map_or(LIMIT_DEFAULT, |limit| limit.0);
        let payload = bounded(request, payload, limit);
        Box::pin(async move {
            form?;
            let bytes = payload.await?;
            Ok(Self { fields: Fields::of(&bytes)?, bytes })
        })
    }
}

/// The whole body, or 413 as soon as it is known to be larger than `limit`, or 408 when it does not come on.
pub fn bounded(request: &HttpRequest, payload: &mut Payload, limit: usize) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
    let declared = declared_length(request.headers());
    let payload = web::Payload::from_request(request, payload).into_inner();
    let request = request.clone();
    async move { arriving(&request, payload.map_err(|_| BodyFault::Broken), declared, limit).await.map_err(|fault| fault.refusal(limit)) }
}

async fn arriving(
    request: &HttpRequest,
    payload: Result<web::Payload, BodyFault>,
    declared: Option<usize>,
    limit: usize,
) -> Result<Bytes, BodyFault> {
    if declared.is_some_and(|length| length > limit) {
        return Err(BodyFault::TooLarge);
    }
    let mut payload = payload?;
    let first = match timeout(2 * BODY_PROGRESS_WINDOW, payload.next()).await {
        Ok(Some(chunk)) => chunk.map_err(|_| BodyFault::Broken)?,
        Ok(None) => return Ok(Bytes::new()),
        Err(_) => return Err(BodyFault::TooSlow),
    };
    // Most bodies come at once, and nobody can withhold the rest of them: they need not be counted.
    if declared == Some(first.len()) {
        return Ok(first);
    }
    let memory = request.app_data::<Data<Memory>>().ok_or(BodyFault::NoRoom)?;
    let intake = Intake { budget: &memory.requests, limit, patience: SMALL_BODY_ARRIVAL_MAX };
    let rest = stream::iter([Ok(first)]).chain(payload);
    let received = intake.receive(Owners::new([Owner::of_sender(request)]), declared, rest).await?;
    // What is read out of a small body is done with before anybody waits.
    Ok(received.bytes)
}

/// Whether the headers say that the body is JSON as it is.
///
/// # Errors
/// [`ApiError::UnsupportedMediaType`] when they say something else, or nothing.
pub fn json_form(headers: &HeaderMap) -> Result<(), ApiError> {
    let essence = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).and_then(|text| text.split(';').next());
    if !essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::UnsupportedMediaType("The Content-Type must be application/json."));
    }
    let plain = headers.get(header::CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    plain.then_some(()).ok_or(ApiError::UnsupportedMediaType("The body must not be compressed."))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use tokio::time::Instant;

    use super::*;

    async fn extract(request: TestRequest) -> Result<Body, ApiError> {
        let (request, mut payload) = request.app_data(BodyLimit(32)).app_data(Data::new(Memory::new())).to_http_parts();
        Body::from_request(&request, &mut payload).await
    }

    #[actix_rt::test]
    async fn another_content_type_is_a_415_and_a_large_body_a_413() {
        let json =
            |text: &'static str| TestRequest::post().insert_header(("content-type", "Application/JSON; charset=utf-8")).set_payload(text);
        let body = extract(json("{}")).await.unwrap();
        assert!(body.fields.finish(Some(())).is_ok() && &body.bytes[..] == b"{}");
        assert!(matches!(extract(TestRequest::post().set_payload("{}")).await, Err(ApiError::UnsupportedMediaType(_))));
        let zipped = json("{}").insert_header(("content-encoding", "gzip"));
        assert!(matches!(extract(zipped).await, Err(ApiError::UnsupportedMediaType(_))));
        let large = json("{\"x\": \"0123456789012345678901234567890123456789\"}");
        assert!(matches!(extract(large).await, Err(ApiError::BodyTooLarge { limit: 32 })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_on_is_a_408_after_the_second_window() {
        let request = TestRequest::post().insert_header(("content-type", "application/json"));
        let request = request.app_data(Data::new(Memory::new())).to_http_request();
        let begun = stream::iter([Ok(Bytes::from_static(b"{"))]).chain(stream::pending());
        let mut payload = Payload::from(begun.boxed_local());
        let began = Instant::now();
        assert!(matches!(Body::from_request(&request, &mut payload).await, Err(ApiError::BodyTooSlow)));
        assert_eq!(began.elapsed(), 2 * BODY_PROGRESS_WINDOW);
    }
}

//! JSON bodies: their media type, size and time of arrival. The wire crate reads their fields.

use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::web::{Bytes, Data};
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt as _, stream};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{BODY_PROGRESS_WINDOW, BODY_VALUES_MAX, SMALL_BODY_ARRIVAL_MAX};
use sakshi_service::budget::{MemoryBudgets, OwnerPath};
use sakshi_wire::json::{JsonError, JsonRefusal};
use sakshi_wire::{ReceivedObject, UnreadableBody};
use tokio::time::timeout;

use super::body_reader::{BodyError, BodyReader, declared_length};
use super::error::ApiError;
use crate::rate_limit::sender;

/// The maximum size of a JSON body in bytes, as app data of a scope.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit(pub usize);

/// Maximum size of a JSON body in bytes, in a scope without a [`BodyLimit`].
const LIMIT_DEFAULT: usize = 64 * 1_024;

/// A JSON object and its bytes as received.
#[derive(Debug)]
pub struct Body {
    /// The parsed object; the wire types read requests from it.
    pub object: ReceivedObject,
    /// The bytes as received.
    pub bytes: Bytes,
}

impl FromRequest for Body {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type = check_json(request.headers());
        let limit = request.app_data::<BodyLimit>().map_or(LIMIT_DEFAULT, |limit| limit.0);
        let body_bytes = read_bounded(request, payload, limit);
        Box::pin(async move {
            media_type?;
            let bytes = body_bytes.await?;
            Ok(Self { object: ReceivedObject::read(&bytes)?, bytes })
        })
    }
}

/// Converts the refusal of a body that is not a JSON object.
impl From<UnreadableBody> for ApiError {
    fn from(refusal: UnreadableBody) -> Self {
        match refusal {
            UnreadableBody::Empty => Self::MalformedBody("The body is empty.".to_owned()),
            UnreadableBody::NoObject => Invalid::one("body", "must be a JSON object").into(),
            UnreadableBody::Json(JsonError { refusal: JsonRefusal::TooManyValues, .. }) => {
                Self::MalformedBody(format!("The body must hold at most {BODY_VALUES_MAX} values."))
            }
            UnreadableBody::Json(JsonError { line, column, .. }) => Self::MalformedBody(format!(
                "The body is not JSON or is nested too deeply: line {line}, column {column}."
            )),
        }
    }
}

/// Reads the whole body.
///
/// # Errors
/// [`ApiError::BodyTooLarge`] as soon as the body exceeds `limit`. [`ApiError::BodyTooSlow`] when it makes no progress.
pub fn read_bounded(
    request: &HttpRequest,
    payload: &mut Payload,
    limit: usize,
) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
    let declared = declared_length(request.headers());
    let payload = web::Payload::from_request(request, payload).into_inner();
    let request = request.clone();
    async move {
        read_chunks(&request, payload.map_err(|_| BodyError::Broken), declared, limit)
            .await
            .map_err(|error| error.to_api_error(limit))
    }
}

/// Reads the chunks of a body. A body in one chunk, the usual case, needs no memory budget.
async fn read_chunks(
    request: &HttpRequest,
    payload: Result<web::Payload, BodyError>,
    declared: Option<usize>,
    limit: usize,
) -> Result<Bytes, BodyError> {
    if declared.is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge);
    }
    let mut payload = payload?;
    let first = match timeout(2 * BODY_PROGRESS_WINDOW, payload.next()).await {
        Ok(Some(chunk)) => chunk.map_err(|_| BodyError::Broken)?,
        Ok(None) => return Ok(Bytes::new()),
        Err(_) => return Err(BodyError::TooSlow),
    };
    // Most bodies arrive in one chunk. They are not charged to the budget: nothing of them is still to arrive.
    if declared == Some(first.len()) {
        return Ok(first);
    }
    let memory = request.app_data::<Data<MemoryBudgets>>().ok_or(BodyError::BudgetExhausted)?;
    let reader = BodyReader { budget: &memory.requests, limit, timeout: SMALL_BODY_ARRIVAL_MAX };
    let chunks = stream::iter([Ok(first)]).chain(payload);
    let received = reader.read(OwnerPath::new([sender(request)]), declared, chunks).await?;
    // A small body is parsed before the next await, so its permit can be released.
    Ok(received.bytes)
}

/// Checks that the headers announce uncompressed JSON. A body without a `Content-Type` counts as JSON, because the
/// specification does not require this header.
///
/// # Errors
/// [`ApiError::UnsupportedMediaType`] for another media type or a compressed body.
pub fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_json = |value: &HeaderValue| {
        let essence = value.to_str().ok().and_then(|text| text.split(';').next()).map(str::trim);
        essence.is_some_and(|essence| essence.is_empty() || essence.eq_ignore_ascii_case("application/json"))
    };
    if !headers.get(header::CONTENT_TYPE).is_none_or(is_json) {
        return Err(ApiError::UnsupportedMediaType(
            "Send JSON with Content-Type: application/json, or without a Content-Type.",
        ));
    }
    let is_plain =
        headers.get(header::CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_plain.then_some(()).ok_or(ApiError::UnsupportedMediaType("The body must not be compressed."))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use tokio::time::Instant;

    use super::*;

    async fn extract(request: TestRequest) -> Result<Body, ApiError> {
        let (request, mut payload) =
            request.app_data(BodyLimit(32)).app_data(Data::new(MemoryBudgets::default())).to_http_parts();
        Body::from_request(&request, &mut payload).await
    }

    #[actix_rt::test]
    async fn another_media_type_gets_415_and_a_large_body_413() {
        let json = |text: &'static str| {
            TestRequest::post().insert_header(("content-type", "Application/JSON; charset=utf-8")).set_payload(text)
        };
        let body = extract(json("{}")).await.unwrap();
        assert!(&body.bytes[..] == b"{}");
        assert!(extract(TestRequest::post().set_payload("{}")).await.is_ok(), "no Content-Type is JSON");
        let form =
            TestRequest::post().insert_header(("content-type", "application/x-www-form-urlencoded")).set_payload("{}");
        assert!(matches!(extract(form).await, Err(ApiError::UnsupportedMediaType(_))));
        let zipped = json("{}").insert_header(("content-encoding", "gzip"));
        assert!(matches!(extract(zipped).await, Err(ApiError::UnsupportedMediaType(_))));
        let large = json("{\"x\": \"0123456789012345678901234567890123456789\"}");
        assert!(matches!(extract(large).await, Err(ApiError::BodyTooLarge { limit: 32 })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_progress_gets_408_after_the_second_window() {
        let request = TestRequest::post().insert_header(("content-type", "application/json"));
        let request = request.app_data(Data::new(MemoryBudgets::default())).to_http_request();
        let unfinished = stream::iter([Ok(Bytes::from_static(b"{"))]).chain(stream::pending());
        let mut payload = Payload::from(unfinished.boxed_local());
        let started_at = Instant::now();
        assert!(matches!(Body::from_request(&request, &mut payload).await, Err(ApiError::BodyTooSlow)));
        assert_eq!(started_at.elapsed(), 2 * BODY_PROGRESS_WINDOW);
    }
}

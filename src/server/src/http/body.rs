//! JSON bodies: the form is checked, the size is bounded, and every problem names its field.
//!
//! What the fields mean is decided by the newtypes that a handler makes of them.

use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::invalid::Invalid;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::ApiError;

/// Bytes of a JSON body that a scope accepts; put it into the scope's data.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit(pub usize);

/// Applies where no [`BodyLimit`] was set.
const LIMIT_DEFAULT: usize = 64 * 1_024;

/// A JSON body, and the bytes that it was read from.
#[derive(Clone, Debug)]
pub struct Body<T> {
    /// The value.
    pub value: T,
    /// The bytes as received.
    pub bytes: Bytes,
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let form = json_form(request.headers());
        let limit = request.app_data::<BodyLimit>().map_or(LIMIT_DEFAULT, |limit| limit.0);
        let payload = bounded(request, payload, limit);
        Box::pin(async move {
            form?;
            let bytes = payload.await?;
            Ok(Self { value: parse(&bytes)?, bytes })
        })
    }
}

/// The whole body, or 413 as soon as it is known to be larger than `limit`.
pub fn bounded(request: &HttpRequest, payload: &mut Payload, limit: usize) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let payload = web::Payload::from_request(request, payload).into_inner();
    async move {
        if declared.is_some_and(|length| length > limit as u64) {
            return Err(ApiError::BodyTooLarge { limit });
        }
        let payload = payload.map_err(|_| unreadable())?;
        match payload.to_bytes_limited(limit).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) => Err(unreadable()),
            Err(_) => Err(ApiError::BodyTooLarge { limit }),
        }
    }
}

fn unreadable() -> ApiError {
    ApiError::MalformedBody("The body did not arrive whole.".to_owned())
}

fn json_form(headers: &HeaderMap) -> Result<(), ApiError> {
    let essence = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).and_then(|text| text.split(';').next());
    if !essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::UnsupportedMediaType("The Content-Type must be application/json."));
    }
    let plain = headers.get(header::CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    plain.then_some(()).ok_or(ApiError::UnsupportedMediaType("The body must not be compressed."))
}

/// Reads a JSON document, listing every unknown field beside the first field of a wrong type.
///
/// # Errors
/// [`ApiError::MalformedBody`] when it is not JSON, [`ApiError::Validation`] otherwise.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Serde would take an array for an object whose members come in the order of their declaration,
    // and name the type in Rust's words for anything else.
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|first| *first != b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return Err(Invalid::one("body", "must be a JSON object").into());
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let mut track = serde_path_to_error::Track::new();
    let mut invalid = Invalid::none();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let value: Result<T, serde_json::Error> = serde_ignored::deserialize(tracked, |path| {
        invalid.add(dotted(&path), "is not a field of this request");
    });
    let value = value.and_then(|value| json.end().map(|()| value));
    match value {
        Ok(value) => invalid.or_ok().map(|()| value).map_err(ApiError::from),
        Err(error) => Err(explain(&error, &track.path().to_string(), invalid)),
    }
}

fn explain(error: &serde_json::Error, path: &str, mut invalid: Invalid) -> ApiError {
    match error.classify() {
        Category::Data => {
            let text = error.to_string();
            let sentence = text.rsplit_once(" at line ").map_or(text.as_str(), |(sentence, _)| sentence);
            // What was found instead stays out of it: it may be personal.
            let sentence = sentence.rsplit_once(", expected ").map_or(sentence.to_owned(), |(_, expected)| format!("must be {expected}"));
            invalid.add(if matches!(path, "." | "") { "body" } else { path }, sentence);
            ApiError::Validation(invalid)
        }
        Category::Io | Category::Syntax | Category::Eof => {
            ApiError::MalformedBody(format!("The body is not JSON: line {}, column {}.", error.line(), error.column()))
        }
    }
}

/// `terms.claims[2]`, where serde_ignored would write `terms.claims.2`.
fn dotted(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", dotted(parent)),
        Path::Map { parent, key } => match dotted(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => dotted(parent),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Terms {
        #[serde(alias = "faceAuth")]
        face_auth: Option<bool>,
        guests: Option<Vec<Guest>>,
    }

    #[derive(Debug, Deserialize)]
    struct Guest {
        #[serde(rename = "age")]
        _age: Option<u8>,
    }

    fn problems(text: &str) -> Vec<(String, String)> {
        match parse::<Terms>(text.as_bytes()).unwrap_err() {
            ApiError::Validation(invalid) => invalid.fields().iter().map(|field| (field.field.clone(), field.message.clone())).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_unknown_fields_are_named_by_path() {
        let found = problems(r#"{"x": 1, "guests": [{}, {"name": "A"}], "y": null}"#);
        let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["x", "guests[1].name", "y"]);
    }

    #[test]
    fn a_wrong_type_is_named_by_path_together_with_unknown_fields() {
        let found = problems(r#"{"x": 1, "guests": [{"age": "old"}]}"#);
        assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("x", "guests[0].age"));
        assert_eq!(found[1].1, "must be u8", "what was found instead is not repeated");
    }

    #[test]
    fn the_same_field_in_both_spellings_is_refused_by_name() {
        assert!(parse::<Terms>(br#"{"faceAuth": true}"#).unwrap().face_auth.unwrap());
        let found = problems(r#"{"face_auth": true, "faceAuth": true}"#);
        assert!(found[0].1.contains("face_auth"), "{found:?}");
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for text in ["", "{", "{\"guests\": [}", "{} {}", "\u{0}", "nul"] {
            assert!(matches!(parse::<Terms>(text.as_bytes()), Err(ApiError::MalformedBody(_))), "{text}");
        }
        assert!(matches!(parse::<Terms>(&[b'{', b'"', 0xff, b'"', b'}']), Err(ApiError::MalformedBody(_))));
        assert!(matches!(parse::<Terms>("[".repeat(100_000).as_bytes()), Err(ApiError::Validation(_) | ApiError::MalformedBody(_))));
    }

    async fn extract(request: TestRequest) -> Result<Body<Terms>, ApiError> {
        let (request, mut payload) = request.app_data(BodyLimit(32)).to_http_parts();
        Body::<Terms>::from_request(&request, &mut payload).await
    }

    #[actix_web::test]
    async fn another_content_type_is_a_415_and_a_large_body_a_413() {
        let json =
            |text: &'static str| TestRequest::post().insert_header(("content-type", "Application/JSON; charset=utf-8")).set_payload(text);
        let body = extract(json("{}")).await.unwrap();
        assert!(body.value.guests.is_none() && &body.bytes[..] == b"{}");
        assert!(matches!(extract(TestRequest::post().set_payload("{}")).await, Err(ApiError::UnsupportedMediaType(_))));
        let zipped = json("{}").insert_header(("content-encoding", "gzip"));
        assert!(matches!(extract(zipped).await, Err(ApiError::UnsupportedMediaType(_))));
        let large = json("{\"x\": \"0123456789012345678901234567890123456789\"}");
        assert!(matches!(extract(large).await, Err(ApiError::BodyTooLarge { limit: 32 })));
    }
}

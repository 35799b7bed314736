//! An OpenAPI document as app data: an edge serves it, the portal shows that of the API as pages.

use actix_web::body::BoxBody;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde_json::Value;

/// The document, serialised as JSON.
#[derive(Clone, Debug)]
pub struct ApiDocument(Bytes);

impl ApiDocument {
    /// Serialises a document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self(document.to_string().into())
    }

    /// The JSON as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        // `new` has serialised it, so it parses.
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

impl Responder for ApiDocument {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().insert_header((CONTENT_TYPE, "application/json")).insert_header((CACHE_CONTROL, "no-cache")).body(self.0)
    }
}

//! An OpenAPI document as app data: an edge serves it, the portal shows that of the API as pages.

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde_json::Value;

use crate::compressed::Compressed;

/// The document, serialised as JSON.
#[derive(Clone, Debug)]
pub struct ApiDocument(Compressed);

impl ApiDocument {
    /// Serialises a document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self(Compressed::new(document.to_string()))
    }

    /// The JSON as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        // `new` has serialised it, so it parses.
        serde_json::from_slice(self.0.plain()).unwrap_or_default()
    }
}

impl Responder for ApiDocument {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        self.0.answer(request, "application/json", "no-cache")
    }
}

//! The API's OpenAPI document, as every edge has it at hand: it is served as it is, and shown as a page.

use actix_web::web::Bytes;
use serde_json::Value;

/// The document, as JSON.
#[derive(Clone, Debug)]
pub struct ApiDocument(Bytes);

impl ApiDocument {
    /// Of this document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self(document.to_string().into())
    }

    /// As it is served.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// To look things up in.
    #[must_use]
    pub fn value(&self) -> Value {
        // It was written as JSON when this was made.
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

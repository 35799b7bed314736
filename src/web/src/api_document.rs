//! The OpenAPI document as app data: the API serves it, the portal shows it as pages.

use actix_web::web::Bytes;
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

    /// The JSON.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The JSON as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        // `new` has serialised it, so it parses.
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

//! An OpenAPI document as app data: an edge serves it, the portal shows that of the API as pages.

use std::fmt;
use std::sync::{Arc, LazyLock};

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde_json::Value;

use crate::compressed::Compressed;

/// The document, serialised as JSON when somebody first asks for it. Clones share it.
#[derive(Clone)]
pub struct ApiDocument(Arc<LazyLock<Compressed, Box<dyn FnOnce() -> Compressed + Send>>>);

impl ApiDocument {
    /// The document that `describe` puts together.
    #[must_use]
    pub fn new(describe: impl FnOnce() -> Value + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(|| Compressed::new(describe().to_string())))))
    }

    /// The JSON as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        // `new` has serialised it, so it parses.
        serde_json::from_slice(self.0.plain()).unwrap_or_default()
    }
}

impl fmt::Debug for ApiDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiDocument")
    }
}

impl Responder for ApiDocument {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        self.0.answer(request, "application/json", "no-cache")
    }
}

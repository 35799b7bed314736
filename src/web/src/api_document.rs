//! An OpenAPI document as app data. Each edge serves its own; the portal shows the document of the API as pages.

use std::fmt;
use std::sync::{Arc, OnceLock};

use actix_web::body::BoxBody;
use actix_web::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, Responder};
use sakshi_wire::ORDER;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::compressed::Compressed;

/// The document, built and serialised as JSON at the first request. Clones share it.
#[derive(Clone)]
pub struct ApiDocument(Arc<Document>);

struct Document {
    describe: Box<dyn Fn() -> Value + Send + Sync>,
    text: OnceLock<Compressed>,
}

impl ApiDocument {
    /// Wraps a document; `describe` builds it.
    #[must_use]
    pub fn new(describe: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(Document { describe: Box::new(describe), text: OnceLock::new() }))
    }

    /// Builds the document. The member [`ORDER`] of each value holds its position.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut document = (self.0.describe)();
        unwrap_descriptions(&mut document);
        document
    }

    /// Returns the document as JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.compressed().plain()).unwrap_or_default()
    }

    fn compressed(&self) -> &Compressed {
        // Plain data always serialises.
        self.0.text.get_or_init(|| Compressed::new(serde_json::to_string(&Ordered(&self.value())).unwrap_or_default()))
    }
}

/// Puts each paragraph of a description on one line. Doc comments break lines in mid-sentence.
fn unwrap_descriptions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => *text = unwrap_paragraphs(text),
                    member => unwrap_descriptions(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        _ => {}
    }
}

/// Joins the lines of each paragraph. Lists keep their lines.
fn unwrap_paragraphs(text: &str) -> String {
    let is_list = |paragraph: &str| paragraph.lines().any(|line| line.starts_with(['-', '*', '|']));
    let unwrap = |paragraph: &str| if is_list(paragraph) { paragraph.to_owned() } else { paragraph.replace('\n', " ") };
    text.split("\n\n").map(unwrap).collect::<Vec<_>>().join("\n\n")
}

/// Serialises the members of objects in their [`ORDER`], and omits the member [`ORDER`].
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                serializer.collect_map(members_in_order(members).map(|(name, member)| (name, Ordered(member))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            plain => plain.serialize(serializer),
        }
    }
}

/// Returns the members of an object in their [`ORDER`]. Members without an order come last, by name.
pub fn members_in_order(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut ordered: Vec<_> = members.iter().filter(|(name, _)| *name != ORDER).collect();
    ordered.sort_by_key(|(_, member)| member.get(ORDER).and_then(Value::as_u64).unwrap_or(u64::MAX));
    ordered.into_iter()
}

/// Allows scripts of any origin to read a public response (Fetch, "CORS protocol").
#[must_use]
pub fn open_to_every_origin(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

impl fmt::Debug for ApiDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiDocument")
    }
}

impl Responder for ApiDocument {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        self.compressed().respond(request, "application/json", "no-cache")
    }
}

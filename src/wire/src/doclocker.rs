//! Documents that a person shares from the locker (specification, "Document locker payload").

use sakshi_domain::flow::request::doclocker::DocLockerRequest;
use sakshi_domain::flow::text::Text;
use sakshi_domain::limits::{DOCUMENTS_MAX, LABEL_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::consent::Consent;
use crate::fields::Place;
use crate::json::Json;
use crate::text::Bounded;

body! { request
    /// Which documents to fetch, with the person's consent.
    #[derive(Clone, PartialEq)]
    pub struct DocLockerInitRequest {
        /// The kinds of document, each once; 1 to 100 characters each.
        docs: DocumentKinds,
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

impl DocLockerInitRequest {
    /// The checked request, and its correlation id if it names one.
    #[must_use]
    pub fn order(self) -> (DocLockerRequest, Option<RequestId>) {
        (DocLockerRequest { docs: self.docs.0, consent: self.consent.0 }, self.request_id)
    }
}

/// The kinds of document to fetch, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DocumentKinds(pub Vec<Text>);

impl Field for DocumentKinds {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let mut known: Vec<String> = Vec::new();
        let items = place.list(value, 1, DOCUMENTS_MAX)?;
        let kinds = place.items(items, |place, item| {
            let text = place.text(item)?;
            if known.contains(&text) {
                return place.refuse("is given twice");
            }
            let kind = place.accept(Bounded::<LABEL_CHARS_MAX>::new(&text));
            known.push(text);
            kind.map(|kind| kind.0)
        });
        kinds.map(Self)
    }
}

impl Describe for DocumentKinds {
    fn schema() -> Value {
        let kind = json!({ "type": "string" });
        json!({ "type": "array", "items": kind, "minItems": 1, "maxItems": DOCUMENTS_MAX })
    }
}

//! PAN verification, which answers at once (specification, "Other shown endpoints").

use std::fmt;

use sakshi_domain::flow::dates::Day;
use sakshi_domain::limits::LABEL_CHARS_MAX;
use sakshi_domain::pan::{Pan, PanQuery, PanRefusal};
use sakshi_domain::request_id::RequestId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::consent::Consent;
use crate::fields::Place;
use crate::json::Json;
use crate::text::Bounded;

body! { request
    /// Which PAN, and what is to be compared with its record.
    #[derive(Clone, PartialEq)]
    pub struct PanRequest {
        /// Five letters, four digits and a letter, in either case.
        pan: PanText,
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// A name to compare with the one on record.
        name_as_per_pan: Option<ComparedName>,
        /// A date of birth to compare with the one on record.
        date_of_birth: Option<Day>,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

impl PanRequest {
    /// What is asked of the source.
    ///
    /// # Errors
    /// What is to be verified is no PAN, which is told only of a request that is in order otherwise.
    pub fn query(self) -> Result<PanQuery, PanRefusal> {
        let pan = Pan::parse(&self.pan.0)?;
        Ok(PanQuery { pan, consent: self.consent.0, name: self.name_as_per_pan.map(|name| name.0.0), date_of_birth: self.date_of_birth })
    }
}

/// What a client takes for a PAN. Personal: its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PanText(pub String);

impl Field for PanText {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.text(value).map(Self)
    }
}

impl Describe for PanText {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 10, "maxLength": 10, "example": "ABCPE1234F" })
    }
}

impl fmt::Debug for PanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PanText(redacted)")
    }
}

/// A name of 1 to 100 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ComparedName(pub Bounded<LABEL_CHARS_MAX>);

impl Field for ComparedName {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let text = place.text(value)?;
        let name = Bounded::new(&text).map_err(|_| format!("must be 1 to {LABEL_CHARS_MAX} characters"));
        place.accept(name).map(Self)
    }
}

impl Describe for ComparedName {
    fn schema() -> Value {
        Bounded::<LABEL_CHARS_MAX>::schema()
    }
}

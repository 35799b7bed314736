//! PAN verification, which answers at once (specification, "Other shown endpoints").

use std::fmt;

use sakshi_domain::flow::dates::Day;
use sakshi_domain::limits::LABEL_CHARS_MAX;
use sakshi_domain::pan::{MalformedPan, Pan, PanCategory, PanQuery, PanStatus, SeedingStatus};
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
    pub fn query(self) -> Result<PanQuery, MalformedPan> {
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

body! { answer
    /// What is known of a PAN.
    pub struct PanAnswer {
        /// Always true: the source has answered, whatever it says.
        success: bool,
        /// Always 200.
        status_code as "statusCode": u16,
        /// A sentence.
        message: String,
        /// The correlation id of the request.
        request_id: RequestId,
        /// What the source says.
        data: PanData,
    }
}

body! { answer
    /// What the source says of a PAN; null is what it did not say, or was not asked to compare.
    #[derive(Clone, PartialEq)]
    pub struct PanData {
        /// The number, in capitals.
        pan: Pan,
        /// Whether it is in use, known and not in use, or not known.
        status: PanStatus,
        /// Who holds it.
        category: Option<PanCategory>,
        /// Whether the name is the one on record.
        name_as_per_pan_match: Option<bool>,
        /// Whether the date of birth is the one on record.
        date_of_birth_match: Option<bool>,
        /// Whether it is linked with a national ID: `y`, `n`, or `na` where it need not be.
        nationalid_seeding_status: Option<SeedingStatus>,
    }
}

impl PanData {
    /// What is said of a PAN that its source does not know.
    #[must_use]
    pub const fn not_found(pan: Pan) -> Self {
        let status = PanStatus::NotFound;
        Self { pan, status, category: None, name_as_per_pan_match: None, date_of_birth_match: None, nationalid_seeding_status: None }
    }
}

impl PanAnswer {
    /// The answer of a source.
    #[must_use]
    pub fn new(request_id: RequestId, data: PanData) -> Self {
        let message = match data.status {
            PanStatus::Valid => "PAN verified",
            PanStatus::Invalid => "PAN is not in use",
            PanStatus::NotFound => "PAN not found",
        };
        Self { success: true, status_code: 200, message: message.to_owned(), request_id, data }
    }
}

impl Describe for Pan {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

//! Verifications that are answered at once: requests and answers of every kind in the table [`CHECKS`].
//!
//! [`CHECKS`]: sakshi_domain::checks::CHECKS

use std::fmt;

use sakshi_domain::checks::{
    Check, CheckQuery, CheckResult, CheckStatus, Compared, ComparedKind, DetailForm, NumberForm,
};
use sakshi_domain::flow::dates::Day;
use sakshi_domain::flow::text::Text;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::LABEL_CHARS_MAX;
use sakshi_domain::request_id::RequestId;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field as _, Properties, reference};
use crate::consent::{Consent, OptionalConsent};
use crate::fields::{Context, Fields, Sent};
use crate::json::Json;
use crate::text::{Always, Bounded};

/// A client's request. `Debug` shows nothing of it.
pub struct CheckRequest {
    /// The correlation id; it wins over the header `X-Request-ID`.
    pub request_id: Option<RequestId>,
    check: &'static Check,
    numbers: Vec<String>,
    consent: Option<Consent>,
    compared: Vec<Option<Text>>,
}

impl CheckRequest {
    /// Reads a request of this kind.
    ///
    /// # Errors
    /// Every field that is invalid, missing or unknown.
    pub fn read(check: &'static Check, sent: Sent, context: Context<'_>) -> Result<Self, Invalid> {
        sent.read_by(context, |fields| {
            let numbers: Vec<_> = check.numbers.iter().map(|form| number(fields, form)).collect();
            let consent = if check.needs_consent {
                Consent::take(fields, "consent").map(Some)
            } else {
                OptionalConsent::take(fields, "consent").map(|_| None)
            };
            let compared: Vec<_> = check.compared.iter().map(|known| comparison(fields, known)).collect();
            let request_id = fields.take("request_id");
            let (numbers, compared) =
                (numbers.into_iter().collect::<Option<_>>()?, compared.into_iter().collect::<Option<_>>()?);
            Some(Self { check, numbers, consent: consent?, compared, request_id: request_id? })
        })
    }

    /// Builds the query for the source.
    ///
    /// # Errors
    /// The number to verify has the wrong form. Only a request that is valid otherwise gets this error.
    pub fn query(self) -> Result<CheckQuery, &'static NumberForm> {
        let numbers = self.check.numbers.iter().zip(&self.numbers).map(|(form, text)| form.parse(text));
        let numbers = numbers.collect::<Result<_, _>>()?;
        Ok(CheckQuery {
            check: self.check,
            numbers,
            consent: self.consent.map(|consent| consent.0),
            compared: self.compared,
        })
    }
}

impl fmt::Debug for CheckRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckRequest({}, redacted)", self.check.name)
    }
}

fn number(fields: &mut Fields<'_>, form: &NumberForm) -> Option<String> {
    fields.read(form.field, |place, value| match value {
        None | Some(Json::Null) => place.refuse("is required"),
        Some(value) => place.text(value),
    })
}

fn comparison(fields: &mut Fields<'_>, known: &Compared) -> Option<Option<Text>> {
    fields.read(known.field, |place, value| match value {
        None | Some(Json::Null) => Some(None),
        Some(value) => place.parsed(value, |text| known.kind.parse(text)).map(Some),
    })
}

/// The record of the source.
#[derive(Debug, Serialize)]
pub struct CheckAnswer {
    success: bool,
    #[serde(rename = "statusCode")]
    status_code: u16,
    message: String,
    request_id: RequestId,
    data: CheckData,
}

impl CheckAnswer {
    /// Builds the answer from a source's result.
    #[must_use]
    pub fn new(request_id: RequestId, result: CheckResult) -> Self {
        Self { success: true, status_code: 200, message: result.message(), request_id, data: CheckData(result) }
    }
}

/// The record.
#[derive(Debug)]
struct CheckData(CheckResult);

impl Serialize for CheckData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckResult { check, numbers, status, details } = &self.0;
        let mut data = serializer.serialize_map(None)?;
        for (form, number) in check.numbers.iter().zip(numbers) {
            data.serialize_entry(form.field, number)?;
        }
        data.serialize_entry("status", status)?;
        for (known, value) in check.details.iter().zip(details) {
            data.serialize_entry(known.field, value)?;
        }
        data.end()
    }
}

/// Returns the schemas of a kind, with their names: the request, the answer and the answer's data.
#[must_use]
pub fn schemas(check: &Check) -> [(String, Value); 3] {
    let [request, answer, data] = ["Request", "Answer", "Data"].map(|part| format!("{}{part}", check.title));
    let envelope = answered(&data);
    [(request, asked(check)), (answer, envelope), (data, details(check))]
}

fn asked(check: &Check) -> Value {
    let mut object = Properties::new(false);
    for form in check.numbers {
        let schema = json!({ "type": "string", "pattern": form.pattern, "example": form.example });
        object.add(form.field, schema, &format!("{}, in either case.", capitalised(form.rule)), true);
    }
    if check.needs_consent {
        Consent::describe(&mut object, "consent", "", false);
    } else {
        OptionalConsent::describe(&mut object, "consent", "", false);
    }
    for known in check.compared {
        let (schema, what) = match known.kind {
            ComparedKind::Name => (Bounded::<LABEL_CHARS_MAX>::schema(), "name"),
            ComparedKind::Birth => (Day::schema(), "date of birth"),
        };
        object.add(known.field, schema, &format!("A {what} to compare with the one on record."), false);
    }
    Option::<RequestId>::describe(
        &mut object,
        "request_id",
        "The correlation id; it wins over the header `X-Request-ID`.",
        false,
    );
    object.into_schema("The number to verify, and values to compare with its record.")
}

fn answered(data: &str) -> Value {
    let mut object = Properties::new(true);
    Always::<true>::describe(&mut object, "success", "Always true: the source has answered.", false);
    u16::describe(&mut object, "statusCode", "Always 200.", false);
    String::describe(&mut object, "message", "A sentence.", false);
    RequestId::describe(&mut object, "request_id", "The correlation id of the request.", false);
    object.add("data", reference(data), "The record.", true);
    object.into_schema("The record of the source.")
}

fn details(check: &Check) -> Value {
    let mut object = Properties::new(true);
    for form in check.numbers {
        object.add(form.field, json!({ "type": "string" }), "The number, in capitals.", true);
    }
    object.add("status", CheckStatus::schema(), "`valid`, `invalid` (known, but not in use) or `not_found`.", true);
    for known in check.details {
        let schema = match known.form {
            DetailForm::Word(words) => json!({ "anyOf": [{ "type": "string", "enum": words }, { "type": "null" }] }),
            DetailForm::Text => json!({ "type": ["string", "null"] }),
            DetailForm::Match(_) => json!({ "type": ["boolean", "null"] }),
        };
        object.add(known.field, schema, known.about, true);
    }
    object.into_schema("The record. A field is null if the source has no value, or if nothing was sent to compare.")
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}

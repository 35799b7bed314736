//! Checks, which have an immediate response: requests and responses of every kind in the table [`CHECKS`].
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
use crate::fields::{Context, Fields, ReceivedObject};
use crate::json::Json;
use crate::text::{Always, Bounded};

/// No field of these bodies is skipped when a body is written.
const NEVER_SKIPPED: bool = false;

/// A client's request for a check. `Debug` hides its values.
pub struct CheckRequest {
    /// The correlation id. It overrides the header `X-Request-ID`.
    pub request_id: Option<RequestId>,
    check: &'static Check,
    /// The numbers to check, in the order of [`Check::numbers`].
    numbers: Vec<String>,
    consent: Option<Consent>,
    /// The values to compare with the record, in the order of [`Check::compared`].
    compared: Vec<Option<Text>>,
}

impl CheckRequest {
    /// Reads a request for this kind of check.
    ///
    /// # Errors
    /// [`Invalid`] with every field that is invalid, missing or unknown.
    pub fn read(check: &'static Check, received: ReceivedObject, context: Context<'_>) -> Result<Self, Invalid> {
        received.read_with(context, |fields| {
            let numbers: Vec<_> = check.numbers.iter().map(|form| read_number(fields, form)).collect();
            let consent = if check.needs_consent {
                Consent::take(fields, "consent").map(Some)
            } else {
                OptionalConsent::take(fields, "consent").map(|_| None)
            };
            let compared: Vec<_> = check.compared.iter().map(|compared| read_comparison(fields, compared)).collect();
            let request_id = fields.take("request_id");
            let (numbers, compared) =
                (numbers.into_iter().collect::<Option<_>>()?, compared.into_iter().collect::<Option<_>>()?);
            Some(Self { check, numbers, consent: consent?, compared, request_id: request_id? })
        })
    }

    /// Builds the query for the source.
    ///
    /// # Errors
    /// The form of the first malformed number. Every other field is valid then.
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

/// Reads a number to check, such as a PAN. It is required, but its form is checked later, by [`CheckRequest::query`].
fn read_number(fields: &mut Fields<'_>, form: &NumberForm) -> Option<String> {
    fields.read(form.field, |reader, value| match value {
        None | Some(Json::Null) => reader.refuse("is required"),
        Some(value) => reader.text(value),
    })
}

/// Reads a value to compare with the record; `Some(None)` if the request has none.
fn read_comparison(fields: &mut Fields<'_>, compared: &Compared) -> Option<Option<Text>> {
    fields.read(compared.field, |reader, value| match value {
        None | Some(Json::Null) => Some(None),
        Some(value) => reader.parsed(value, |text| compared.kind.parse(text)).map(Some),
    })
}

/// The response to a check.
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
    /// Builds the response from a source's result.
    #[must_use]
    pub fn new(request_id: RequestId, result: CheckResult) -> Self {
        Self { success: true, status_code: 200, message: result.message(), request_id, data: CheckData(result) }
    }
}

/// The source's record of the number.
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
        for (detail, value) in check.details.iter().zip(details) {
            data.serialize_entry(detail.field, value)?;
        }
        data.end()
    }
}

/// Returns the schemas of a kind, with their names: the request, the response and its `data`.
#[must_use]
pub fn schemas(check: &Check) -> [(String, Value); 3] {
    let [request, response, data] = ["Request", "Answer", "Data"].map(|part| format!("{}{part}", check.title));
    let response_schema = response_schema(&data);
    [(request, request_schema(check)), (response, response_schema), (data, data_schema(check))]
}

fn request_schema(check: &Check) -> Value {
    let mut object = Properties::of_request();
    for form in check.numbers {
        let schema = json!({ "type": "string", "pattern": form.pattern, "example": form.example });
        object.add_required(form.field, schema, &format!("{}. Upper or lower case.", capitalised(form.rule)));
    }
    if check.needs_consent {
        Consent::describe(&mut object, "consent", "", NEVER_SKIPPED);
    } else {
        OptionalConsent::describe(&mut object, "consent", "", NEVER_SKIPPED);
    }
    for compared in check.compared {
        let (schema, noun) = match compared.kind {
            ComparedKind::Name => (Bounded::<LABEL_CHARS_MAX>::schema(), "name"),
            ComparedKind::Birth => (Day::schema(), "date of birth"),
        };
        object.add_optional(compared.field, schema, &format!("A {noun} to compare with the {noun} on record."));
    }
    Option::<RequestId>::describe(
        &mut object,
        "request_id",
        "The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.",
        NEVER_SKIPPED,
    );
    object.into_schema("The number to verify, and values to compare with the source's record.")
}

/// Returns the schema of the response, whose `data` has the schema with this name.
fn response_schema(data_name: &str) -> Value {
    let mut object = Properties::of_response();
    Always::<true>::describe(
        &mut object,
        "success",
        "Always true: the source has responded. See `status` for the result.",
        NEVER_SKIPPED,
    );
    u16::describe(&mut object, "statusCode", "Always 200.", NEVER_SKIPPED);
    String::describe(
        &mut object,
        "message",
        "The result in words, such as `PAN verified`. Decide by `status`.",
        NEVER_SKIPPED,
    );
    RequestId::describe(&mut object, "request_id", "The correlation id of the request.", NEVER_SKIPPED);
    object.add_required("data", reference(data_name), "The source's record of the number.");
    object.into_schema("The result of a check.")
}

fn data_schema(check: &Check) -> Value {
    let mut object = Properties::of_response();
    for form in check.numbers {
        object.add_required(form.field, json!({ "type": "string" }), "The number in upper case.");
    }
    object.add_required(
        "status",
        CheckStatus::schema(),
        "`valid`, `invalid` (known to the source, but not in use) or `not_found`.",
    );
    for detail in check.details {
        let schema = match detail.form {
            DetailForm::Word(words) => json!({ "anyOf": [{ "type": "string", "enum": words }, { "type": "null" }] }),
            DetailForm::Text => json!({ "type": ["string", "null"] }),
            DetailForm::Match(_) => json!({ "type": ["boolean", "null"] }),
        };
        object.add_required(detail.field, schema, detail.about);
    }
    object.into_schema(
        "The source's record of the number. A field is null if the source has no value, or if the request had no value \
         to compare.",
    )
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}

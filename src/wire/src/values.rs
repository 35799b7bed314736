//! Types of the domain as fields of bodies: their readers and their schemas.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::event::{CreditBudget, DoorId, EventText, Limit, MaxGuests, RegistrationCode};
use sakshi_domain::flow::dates::{Day, LocalTime};
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::{AppId, ClientId, EventId, GrantId, KeyId, OperatorId, TxnId, UserId};
use sakshi_domain::language::Language;
use sakshi_domain::limits::{
    CLAIMS_MAX, EMAIL_CHARS_MAX, EVENT_BUDGET_MAX, EVENT_NAME_CHARS_MAX, FILE_CHARS_MAX, GUESTS_MAX,
    REQUEST_ID_CHARS_MAX, URL_CHARS_MAX,
};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::VerifiedClaims;
use sakshi_domain::user::Email;
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties, Schemas, choice, described, named, reference};
use crate::fields::FieldReader;
use crate::json::Json;

described! {
    bool: { "type": "boolean" }
    u16: { "type": "integer", "format": "int32", "minimum": 0 }
    u32: { "type": "integer", "format": "int32", "minimum": 0 }
    u64: { "type": "integer", "format": "int64", "minimum": 0 }
    i64: { "type": "integer", "format": "int64" }
    f64: { "type": "number", "format": "double" }
    String: { "type": "string" }
    Cow<'static, str>: { "type": "string" }
    Value: {}
    TxnId: { "type": "string", "format": "uuid" }
    FlowId: { "type": "string", "format": "uuid" }
    EventId: { "type": "string" }
    AppId: { "type": "string", "pattern": TEXT_ID }
    ClientId: { "type": "string", "pattern": TEXT_ID }
    KeyId: { "type": "string", "pattern": TEXT_ID }
    GrantId: { "type": "string", "pattern": TEXT_ID }
    OperatorId: { "type": "string", "pattern": TEXT_ID }
    UserId: { "type": "string", "pattern": TEXT_ID }
    Email: { "type": "string", "maxLength": EMAIL_CHARS_MAX, "pattern": EMAIL }
    RequestId: { "type": "string", "minLength": 1, "maxLength": REQUEST_ID_CHARS_MAX, "pattern": "^[!-~]+$" }
    HttpUrl: { "type": "string", "format": "uri", "maxLength": URL_CHARS_MAX }
    Timestamp: { "type": "string", "format": "date-time" }
    Day: { "type": "string", "format": "date" }
    Arc<VerifiedClaims>: { "type": "object", "propertyNames": { "type": "string" }, "additionalProperties": true }
    BTreeMap<String, Value>: { "type": "object", "propertyNames": { "type": "string" }, "additionalProperties": true }
    LocalTime: { "type": "string" }
    Text: { "type": "string" }
    ForeignId: { "type": "string" }
    Base64File: { "type": "string", "contentEncoding": "base64", "minLength": 4, "maxLength": FILE_CHARS_MAX,
        "pattern": BASE64 }
    EventText: { "type": "string", "minLength": 1, "maxLength": EVENT_NAME_CHARS_MAX, "pattern": not_blank(CONTROLS) }
    RegistrationCode: { "type": "string", "pattern": REGISTRATION_CODE }
    DoorId: { "type": "string" }
    TimeZone: { "type": "string", "example": "Asia/Kolkata" }
    MaxGuests: { "type": "integer", "format": "int64", "minimum": 1, "maximum": GUESTS_MAX }
    CreditBudget: { "type": "integer", "format": "int64", "minimum": 1, "maximum": EVENT_BUDGET_MAX }
}

/// Pattern of an id that is not a UUID.
const TEXT_ID: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Pattern of an e-mail address, strict enough to catch typing mistakes.
const EMAIL: &str = r#"^[^\s\u0000-\u001f\u007f-\u009f\ufeff<>"(),:;@]+@[^\s\u0000-\u001f\u007f-\u009f\ufeff<>"(),:;@.]+(\.[^\s\u0000-\u001f\u007f-\u009f\ufeff<>"(),:;@.]+)+$"#;

/// Pattern of a registration code: six letters and digits that are not confused with each other, with optional
/// separators.
const REGISTRATION_CODE: &str = "^[ -]*([2-9A-HJ-NP-Za-hj-np-z][ -]*){6}$";

/// Pattern of Base64 with padding, without stray bits in the last character.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

named! {
    Claim as "Claim": { "type": "string", "enum": Claim::ALL.map(Claim::name), "description": "The name of a claim in \
        this API." }
}

/// Control and invisible characters, for the brackets of a pattern.
pub(crate) const CONTROLS: &str = r"\u0000-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb";
/// Control characters other than line feeds, for the brackets of a pattern.
pub(crate) const CONTROLS_BUT_LINES: &str = r"\u0000-\u0009\u000b-\u001f\u007f-\u009f";
/// Control characters other than line ends and tabs, for the brackets of a pattern.
pub(crate) const CONTROLS_BUT_SPACING: &str = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f";

/// Returns the pattern of texts that are not blank and have none of the `excluded` characters.
pub(crate) fn not_blank(excluded: &str) -> String {
    format!(r"^[^{excluded}]*[^\s{excluded}][^{excluded}]*$")
}

/// Declares fields that are parsed from text.
macro_rules! parsed {
    ($($type:ty: $parse:expr;)+) => {
        $(impl Field for $type {
            fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
                reader.parsed(value, $parse)
            }
        })+
    };
}

parsed! {
    TxnId: str::parse;
    FlowId: str::parse;
    AppId: str::parse;
    ClientId: str::parse;
    KeyId: str::parse;
    Email: str::parse;
    ForeignId: str::parse;
    RequestId: Self::parse;
    EventText: Self::parse;
    RegistrationCode: str::parse;
    TimeZone: Self::parse;
    Text: Self::parse;
    Day: Self::parse;
    LocalTime: Self::parse;
}

impl Field for bool {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        if let Json::Flag(flag) = value { Some(flag) } else { reader.refuse("must be true or false") }
    }
}

impl Field for String {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.text(value)
    }
}

impl Field for Base64File {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let text = reader.text(value)?;
        reader.accept(Self::new(text.into_boxed_str()))
    }
}

/// Reads the URL of a webhook receiver.
impl Field for HttpUrl {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let context = reader.context?;
        reader.parsed(value, |url| context.urls.webhook(url))
    }
}

/// The error message for a malformed time.
pub const ISO_8601: &str =
    "must be an ISO 8601 time with an offset, such as 2026-12-31T18:30:00Z or 2027-01-01T00:00+05:30";

impl Field for Timestamp {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        if reader.context.is_some() {
            let time = if let Json::Text(text) = value { Self::parse_iso8601(&text) } else { None };
            return reader.accept(time.ok_or(ISO_8601));
        }
        reader.parsed(value, |text| Self::parse_iso8601(text).ok_or(ISO_8601))
    }
}

impl<const MAX: u32> Field for Limit<MAX>
where
    Self: Describe,
{
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        // Zero is out of bounds, so a value that is not a number gets the same error.
        let count = value.as_whole().unwrap_or(0);
        reader.accept(Self::new(count))
    }
}

/// Reads a language by name in any case, or by code as number or text. Default: English.
impl Field for Language {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        // Zero is not a code, so a value that is not a number gets the same error.
        reader.accept(match value {
            Json::Text(name) => Self::parse(&name),
            code => Self::from_code(code.as_whole().unwrap_or(0)),
        })
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self::default())
    }
}

impl Describe for Language {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        reference("Language")
    }

    fn collect(schemas: &mut Schemas) {
        let names: Vec<&str> = Self::all().filter_map(Self::accepted_name).collect();
        let about = "A language: its name in any case, or its code as number or text. Examples: `hindi`, `6`.";
        let names = json!({ "type": "string", "enum": names, "description": "The name of a language." });
        let codes = json!({ "type": "integer", "minimum": 1, "maximum": 23, "description": "The code of a \
            language in the identity app." });
        schemas.insert(
            "Language".to_owned(),
            choice("anyOf", about, &[reference("LanguageName"), reference("LanguageCode")]),
        );
        schemas.extend([("LanguageName".to_owned(), names), ("LanguageCode".to_owned(), codes)]);
    }

    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl Field for ClaimSet {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let Json::List(items) = value else { return reader.refuse("must be an array of the names of claims") };
        // A name that is not text is read as the empty text, which names no claim.
        let names: Vec<&str> = items.iter().map(|item| if let Json::Text(name) = item { name } else { "" }).collect();
        let claims = Self::parse(&names).map_err(|invalid| {
            for problem in invalid.fields() {
                reader.refuse_part::<()>(problem.field.trim_start_matches("claims").to_owned(), &*problem.message);
            }
        });
        claims.ok()
    }
}

impl Describe for ClaimSet {
    fn schema() -> Value {
        json!({ "type": "array", "items": Claim::schema(), "minItems": 1, "maxItems": CLAIMS_MAX, "uniqueItems": true })
    }

    fn collect(schemas: &mut Schemas) {
        Claim::collect(schemas);
    }
}

/// Reads a field that may be absent or null.
impl<T: Field> Field for Option<T> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        T::read(value, reader).map(Some)
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(None)
    }
}

impl<T: Describe> Describe for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        let mut schema = T::schema();
        if ["$ref", "enum"].iter().any(|keyword| schema.get(keyword).is_some()) {
            return json!({ "anyOf": [schema, { "type": "null" }] });
        }
        schema["type"] = json!([schema["type"], "null"]);
        schema
    }

    /// Omits null in a request, where it means the same as absence.
    fn describe(object: &mut Properties, name: &str, about: &str, may_be_skipped: bool) {
        let schema = if object.is_written_whole { Self::schema() } else { T::schema() };
        object.add(name, schema, about, object.is_written_whole && !may_be_skipped);
    }

    fn collect(schemas: &mut Schemas) {
        T::collect(schemas);
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Describe> Describe for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn collect(schemas: &mut Schemas) {
        T::collect(schemas);
    }
}

/// Implements fields for enums that are written as words.
macro_rules! words {
    ($($type:ty),+ $(,)?) => {
        $(impl Field for $type {
            fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
                reader.parsed(value, str::parse)
            }
        }

        impl Describe for $type {
            fn schema() -> Value {
                let words: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                json!({ "type": "string", "enum": words })
            }
        })+
    };
}

words! {
    sakshi_domain::consent::ConsentAnswer,
    sakshi_domain::delivery::AttemptPart,
    sakshi_domain::delivery::DeliveryOutcome,
    sakshi_domain::delivery::FailureReason,
    sakshi_domain::delivery::Sent,
    sakshi_domain::event::EventEntry,
    sakshi_domain::event::OnDuplicate,
    sakshi_domain::event::EventStatus,
    sakshi_domain::event::EventWarning,
    sakshi_domain::event::StatusReason,
    sakshi_domain::transaction::TransactionStatus,
    sakshi_domain::flow::api_type::ApiType,
    sakshi_domain::flow::report_kind::ReportKind,
    sakshi_domain::flow::statuses::SigningStatus,
    sakshi_domain::flow::statuses::WorkflowStatus,
    sakshi_domain::flow::statuses::LockerStatus,
    sakshi_domain::flow::statuses::ConsentStatus,
    sakshi_domain::flow::statuses::FiDataStatus,
    sakshi_domain::flow::statuses::DataType,
    sakshi_domain::flow::statuses::HistoricalStatus,
    sakshi_domain::checks::CheckStatus,
    sakshi_domain::operator::Role,
    sakshi_domain::user::UserRole,
    sakshi_domain::erasure::ErasureKind,
    sakshi_domain::client_transfer::RecordKind,
    sakshi_domain::client_transfer::ImportOutcome,
}

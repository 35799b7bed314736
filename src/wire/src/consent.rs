//! The consent fields (specification, "Consent fields"): required in requests that fetch personal data, optional in all
//! others.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::limits::CONSENT_TEXT_CHARS_MAX;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties};
use crate::fields::{FieldReader, Fields};
use crate::json::Json;
use crate::values::{CONTROLS_BUT_SPACING, not_blank};

/// `consent` and `consent_text`, both required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent(pub ConsentGiven);

impl Field for Consent {
    fn read(_: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("is read together with consent_text")
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let (consent, text) = (fields.text(name), fields.text("consent_text"));
        fields.accept(ConsentGiven::parse(consent.as_deref(), text.as_deref())).map(Self)
    }
}

impl Describe for Consent {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["Y"] })
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        describe_fields(object, true);
    }
}

/// Adds `consent` and `consent_text` to a request.
fn describe_fields(object: &mut Properties, is_required: bool) {
    object.add("consent", Consent::schema(), "`Y`: the person has agreed to `consent_text`.", is_required);
    let text = json!({ "type": "string", "minLength": 1, "maxLength": CONSENT_TEXT_CHARS_MAX,
        "pattern": not_blank(CONTROLS_BUT_SPACING) });
    object.add("consent_text", text, "The declaration that the person agreed to, as it was shown.", is_required);
}

impl Serialize for Consent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("consent", "Y")?;
        fields.serialize_entry("consent_text", self.0.text())?;
        fields.end()
    }
}

/// `consent` and `consent_text` of a request that does not require them. The digest of the text is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedConsent(pub Option<ConsentGiven>);

impl Field for RecordedConsent {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        Consent::read(value, reader).map(|Consent(given)| Self(Some(given)))
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let (consent, text) = (fields.text(name), fields.text("consent_text"));
        fields.accept(ConsentGiven::parse_optional(consent.as_deref(), text.as_deref())).map(Self)
    }
}

impl Describe for RecordedConsent {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        Consent::schema()
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        describe_fields(object, false);
    }

    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

impl Serialize for RecordedConsent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.clone().map(Consent).serialize(serializer)
    }
}

/// `consent` and `consent_text` of a request that does not require them. They are validated, but not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OptionalConsent;

impl Field for OptionalConsent {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        RecordedConsent::read(value, reader).map(|_| Self)
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        RecordedConsent::take(fields, name).map(|_| Self)
    }
}

impl Describe for OptionalConsent {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        Consent::schema()
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        describe_fields(object, false);
    }

    fn is_absent(&self) -> bool {
        true
    }
}

//! The consent fields of requests that fetch personal data (specification, "Consent fields").

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::limits::CONSENT_TEXT_CHARS_MAX;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties};
use crate::fields::{Fields, Place};
use crate::json::Json;
use crate::values::{CONTROLS_BUT_SPACING, not_blank};

/// `consent` and `consent_text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent(pub ConsentGiven);

impl Field for Consent {
    fn read(_: Json, place: &mut Place<'_>) -> Option<Self> {
        place.refuse("is read together with consent_text")
    }

    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let (consent, text) = (fields.text(name), fields.text("consent_text"));
        fields.agreed(ConsentGiven::parse(consent.as_deref(), text.as_deref())).map(Self)
    }
}

impl Describe for Consent {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["Y"] })
    }

    fn describe(object: &mut Properties, name: &str, _: &str, _: bool) {
        object.add(name, Self::schema(), "`Y`: the person has agreed to what `consent_text` says.", true);
        let text =
            json!({ "type": "string", "minLength": 1, "maxLength": CONSENT_TEXT_CHARS_MAX, "pattern": not_blank(CONTROLS_BUT_SPACING) });
        object.add("consent_text", text, "The declaration that the person was shown.", true);
    }
}

impl Serialize for Consent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry("consent", "Y")?;
        fields.serialize_entry("consent_text", self.0.text())?;
        fields.end()
    }
}

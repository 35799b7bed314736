//! Field types that carry their bounds, and field types that define the meaning of absence and null.

use std::fmt;
use std::ops::Deref;

use sakshi_domain::flow::text::Text;
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::limits::{LABEL_CHARS_MAX, URL_CHARS_MAX};
use sakshi_domain::unseen::is_unseen;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties, Schemas, described};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::values::{CONTROLS, CONTROLS_BUT_LINES, not_blank};

/// A text of 1 to `MOST` characters without control characters.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Words<const MOST: usize>(pub String);

/// A name or description: 1 to 100 characters without control characters. Surrounding blanks are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(pub Words<LABEL_CHARS_MAX>);

/// A text of 1 to `MOST` characters that is not blank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MOST: usize>(pub Text);

/// A client's own reference in a response: an empty string if the client sent none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference(pub Option<Text>);

/// The URL of a page for a person's browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PageAddress(pub HttpUrl);

/// A boolean whose default is `DEFAULT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Flag<const DEFAULT: bool>(pub bool);

/// A boolean field with a constant value, by which a client recognises the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Always<const VALUE: bool>;

/// A field in a second spelling, which the OpenAPI document omits: generated code would name both fields alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Undescribed<T>(pub T);

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

/// A list of `LEAST` to `MOST` entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct List<T, const LEAST: usize, const MOST: usize>(pub Vec<T>);

/// A list of up to `MOST` entries; empty if it is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OptionalList<T, const MOST: usize>(pub Vec<T>);

/// A field of a change. An absent field stays unchanged. Null is refused, unless the changed value may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Change<T>(pub Option<T>);

impl<const MOST: usize> Field for Words<MOST> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        let text = place.text(value)?;
        let is_valid = (1..=MOST).contains(&text.chars().count()) && !text.chars().any(is_unseen);
        if is_valid {
            Some(Self(text))
        } else {
            place.refuse(format!("must be 1 to {MOST} characters without control characters"))
        }
    }
}

impl<const MOST: usize> Describe for Words<MOST> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MOST, "pattern": format!("^[^{CONTROLS}]+$") })
    }
}

/// Hides the text, which may be personal data.
impl<const MOST: usize> fmt::Debug for Words<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({} bytes redacted)", self.0.len())
    }
}

impl Field for Label {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        let text = place.text(value)?;
        Words::read(Json::Text(text.trim().to_owned()), place).map(Self)
    }
}

impl Describe for Label {
    fn schema() -> Value {
        Words::<LABEL_CHARS_MAX>::schema()
    }
}

impl<const MOST: usize> Field for Bounded<MOST> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        place.parsed(value, Self::new)
    }
}

impl<const MOST: usize> Bounded<MOST> {
    /// Accepts a text.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.chars().count() > MOST {
            return Err(format!("must be 1 to {MOST} characters"));
        }
        Text::not_blank(text).map(Self)
    }
}

impl<const MOST: usize> Describe for Bounded<MOST> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MOST, "pattern": not_blank(CONTROLS_BUT_LINES) })
    }
}

impl From<Option<Text>> for Reference {
    fn from(text: Option<Text>) -> Self {
        Self(text.filter(|text| !text.as_str().is_empty()))
    }
}

impl Field for Reference {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        Text::read(value, place).map(|text| Self::from(Some(text)))
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(None))
    }
}

impl Describe for Reference {
    fn schema() -> Value {
        json!({ "type": "string", "default": "" })
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_ref().map_or("", Text::as_str))
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<Text>::deserialize(deserializer).map(Self::from)
    }
}

impl Field for PageAddress {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        let context = place.context?;
        place.parsed(value, |url| context.urls.page(url)).map(Self)
    }
}

described! { PageAddress: { "type": "string", "format": "uri", "maxLength": URL_CHARS_MAX } }

impl<const DEFAULT: bool> Field for Flag<DEFAULT> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        bool::read(value, place).map(Self)
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(DEFAULT))
    }
}

impl<const DEFAULT: bool> Describe for Flag<DEFAULT> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }

    fn is_absent(&self) -> bool {
        self.0 == DEFAULT
    }
}

impl<const VALUE: bool> Describe for Always<VALUE> {
    fn schema() -> Value {
        // Generators would turn a constant into an enum, and not every generator supports enums of booleans.
        json!({ "type": "boolean" })
    }
}

impl<const VALUE: bool> Serialize for Always<VALUE> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(VALUE)
    }
}

impl<'de, const VALUE: bool> Deserialize<'de> for Always<VALUE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_expected = bool::deserialize(deserializer)? == VALUE;
        is_expected.then_some(Self).ok_or_else(|| de::Error::custom(format_args!("is not {VALUE}")))
    }
}

impl<T: Describe> Describe for Undescribed<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        object.has_undescribed = true;
    }
}

impl<const LEAST: u64, const MOST: u64> Field for Whole<LEAST, MOST> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        let number = value.as_whole().filter(|number| (LEAST..=MOST).contains(number)).map(Self);
        place.accept(number.ok_or_else(|| format!("must be a whole number from {LEAST} to {MOST}")))
    }
}

impl<const LEAST: u64, const MOST: u64> Describe for Whole<LEAST, MOST> {
    fn schema() -> Value {
        let format = if i32::try_from(MOST).is_ok() { "int32" } else { "int64" };
        json!({ "type": "integer", "format": format, "minimum": LEAST, "maximum": MOST })
    }
}

impl<T: Field, const LEAST: usize, const MOST: usize> Field for List<T, LEAST, MOST> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        let items = place.list(value, LEAST, MOST)?;
        place.items(items, |place, item| T::read(item, place)).map(Self)
    }
}

impl<T: Describe, const LEAST: usize, const MOST: usize> Describe for List<T, LEAST, MOST> {
    fn schema() -> Value {
        let mut list = json!({ "type": "array", "items": T::schema(), "maxItems": MOST });
        if LEAST > 0 {
            list["minItems"] = LEAST.into();
        }
        list
    }

    fn collect(schemas: &mut Schemas) {
        T::collect(schemas);
    }
}

impl<T, const LEAST: usize, const MOST: usize> Deref for List<T, LEAST, MOST> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Field, const MOST: usize> Field for OptionalList<T, MOST> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        List::<T, 0, MOST>::read(value, place).map(|list| Self(list.0))
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

impl<T: Describe, const MOST: usize> Describe for OptionalList<T, MOST> {
    fn schema() -> Value {
        List::<T, 0, MOST>::schema()
    }

    /// Optional in a request, and always written in a response.
    fn describe(object: &mut Properties, name: &str, about: &str, may_be_skipped: bool) {
        if object.is_written_whole {
            object.add(name, Self::schema(), about, !may_be_skipped);
        } else {
            object.add(name, Self::schema(), about, false);
        }
    }

    fn collect(schemas: &mut Schemas) {
        T::collect(schemas);
    }
}

impl<T> Default for Change<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Field> Field for Change<T> {
    fn read(value: Json, place: &mut FieldReader<'_>) -> Option<Self> {
        T::read(value, place).map(|value| Self(Some(value)))
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(None))
    }

    fn null(place: &mut FieldReader<'_>) -> Option<Self> {
        if T::REQUIRED {
            return place.refuse("must not be null; leave it out to keep what is set");
        }
        T::null(place).map(|value| Self(Some(value)))
    }
}

impl<T: Describe> Describe for Change<T> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        T::schema()
    }

    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

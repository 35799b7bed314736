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

/// A text of 1 to `MAX` characters without control characters.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Words<const MAX: usize>(pub String);

/// A name or description: 1 to 100 characters without control characters. Surrounding blanks are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(pub Words<LABEL_CHARS_MAX>);

/// A text of at most `MAX` characters that is not blank. Unlike [`Words`], it may have line breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MAX: usize>(pub Text);

/// A client's own reference in a response: an empty string if the client sent none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference(pub Option<Text>);

/// The URL of a page of the client, to which a person's browser is sent.
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

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

/// A list of `MIN` to `MAX` entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

/// A list of up to `MAX` entries; empty if it is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OptionalList<T, const MAX: usize>(pub Vec<T>);

/// A field of a change. An absent field stays unchanged. Null is refused, unless the changed value may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Change<T>(pub Option<T>);

impl<const MAX: usize> Field for Words<MAX> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let text = reader.text(value)?;
        let is_valid = (1..=MAX).contains(&text.chars().count()) && !text.chars().any(is_unseen);
        if is_valid {
            Some(Self(text))
        } else {
            reader.refuse(format!("must be 1 to {MAX} characters without control characters"))
        }
    }
}

impl<const MAX: usize> Describe for Words<MAX> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MAX, "pattern": format!("^[^{CONTROLS}]+$") })
    }
}

/// Hides the text, which may be personal data.
impl<const MAX: usize> fmt::Debug for Words<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({} bytes redacted)", self.0.len())
    }
}

impl Label {
    /// Returns the text of the label.
    #[must_use]
    pub fn into_string(self) -> String {
        let Words(text) = self.0;
        text
    }
}

impl Field for Label {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let text = reader.text(value)?;
        Words::read(Json::Text(text.trim().to_owned()), reader).map(Self)
    }
}

impl Describe for Label {
    fn schema() -> Value {
        Words::<LABEL_CHARS_MAX>::schema()
    }
}

impl<const MAX: usize> Field for Bounded<MAX> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, Self::new)
    }
}

impl<const MAX: usize> Bounded<MAX> {
    /// Accepts a text.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.chars().count() > MAX {
            return Err(format!("must be 1 to {MAX} characters"));
        }
        Text::not_blank(text).map(Self)
    }
}

impl<const MAX: usize> Describe for Bounded<MAX> {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MAX, "pattern": not_blank(CONTROLS_BUT_LINES) })
    }
}

impl From<Option<Text>> for Reference {
    fn from(text: Option<Text>) -> Self {
        Self(text.filter(|text| !text.as_str().is_empty()))
    }
}

impl Field for Reference {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        Text::read(value, reader).map(|text| Self::from(Some(text)))
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
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let context = reader.context?;
        reader.parsed(value, |url| context.urls.page(url)).map(Self)
    }
}

described! { PageAddress: { "type": "string", "format": "uri", "maxLength": URL_CHARS_MAX } }

impl<const DEFAULT: bool> Field for Flag<DEFAULT> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        bool::read(value, reader).map(Self)
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

impl<const MIN: u64, const MAX: u64> Field for Whole<MIN, MAX> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let number = value.as_whole().filter(|number| (MIN..=MAX).contains(number)).map(Self);
        reader.accept(number.ok_or_else(|| format!("must be a whole number from {MIN} to {MAX}")))
    }
}

impl<const MIN: u64, const MAX: u64> Describe for Whole<MIN, MAX> {
    fn schema() -> Value {
        let format = if i32::try_from(MAX).is_ok() { "int32" } else { "int64" };
        json!({ "type": "integer", "format": format, "minimum": MIN, "maximum": MAX })
    }
}

impl<T: Field, const MIN: usize, const MAX: usize> Field for List<T, MIN, MAX> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let items = reader.list(value, MIN, MAX)?;
        reader.items(items, |reader, item| T::read(item, reader)).map(Self)
    }
}

impl<T: Describe, const MIN: usize, const MAX: usize> Describe for List<T, MIN, MAX> {
    fn schema() -> Value {
        let mut list = json!({ "type": "array", "items": T::schema(), "maxItems": MAX });
        if MIN > 0 {
            list["minItems"] = MIN.into();
        }
        list
    }

    fn collect(schemas: &mut Schemas) {
        T::collect(schemas);
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for List<T, MIN, MAX> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Field, const MAX: usize> Field for OptionalList<T, MAX> {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        List::<T, 0, MAX>::read(value, reader).map(|list| Self(list.0))
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

impl<T: Describe, const MAX: usize> Describe for OptionalList<T, MAX> {
    fn schema() -> Value {
        List::<T, 0, MAX>::schema()
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
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        T::read(value, reader).map(|value| Self(Some(value)))
    }

    fn absent(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(None))
    }

    fn null(reader: &mut FieldReader<'_>) -> Option<Self> {
        if T::REQUIRED {
            return reader.refuse("must not be null; leave it out to keep what is set");
        }
        T::null(reader).map(|value| Self(Some(value)))
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

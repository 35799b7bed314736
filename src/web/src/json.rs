//! A JSON document as it was sent: nothing is merged, dropped or converted, so that whoever reads it
//! can say what is wrong with each part.
//!
//! serde_json reads it, with its bound on nesting, and with one on the number of values, so that a
//! body cannot become a tree much larger than itself. What the parts mean is decided elsewhere.

use sakshi_domain::limits::BODY_VALUES_MAX;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

use super::error::ApiError;

/// A value. Members that are sent twice are kept twice.
#[derive(Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Flag(bool),
    /// A number without fraction and exponent.
    Whole(i128),
    /// Any other number.
    Fraction,
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole document.
    ///
    /// # Errors
    /// [`ApiError::MalformedBody`], which says where the reading ended.
    pub fn read(bytes: &[u8]) -> Result<Self, ApiError> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let left = Cell::new(BODY_VALUES_MAX);
        let read = Reader { left: &left }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        read.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            ApiError::MalformedBody(match left.get() {
                0 => format!("The body must hold at most {BODY_VALUES_MAX} values."),
                _ => format!("The body is not JSON, or is nested too deeply: line {line}, column {column}."),
            })
        })
    }
}

/// What kind of value it is; the value may be personal.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Flag(_) => "boolean",
            Self::Whole(_) | Self::Fraction => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        })
    }
}

/// Reads values, one of those that are left for each.
#[derive(Clone, Copy)]
struct Reader<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| Error::custom("too many values"))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Whole(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Whole(number.into()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Fraction)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            object.push((name, members.next_value_seed(self)?));
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_it_was_sent() {
        let read = Json::read(br#" {"a": [1, -2, 1.0, 1e3, 18446744073709551615], "a": null, "b": {"c": "\u00e9", "d": true}} "#).unwrap();
        let numbers = [Json::Whole(1), Json::Whole(-2), Json::Fraction, Json::Fraction, Json::Whole(u64::MAX.into())];
        let inner = vec![("c".to_owned(), Json::Text("é".to_owned())), ("d".to_owned(), Json::Flag(true))];
        let members = [("a", Json::List(numbers.to_vec())), ("a", Json::Null), ("b", Json::Object(inner))];
        assert_eq!(read, Json::Object(members.map(|(name, value)| (name.to_owned(), value)).to_vec()));
    }

    #[test]
    fn what_is_not_json_is_malformed_wherever_it_breaks() {
        let deep = "[".repeat(100_000);
        let deep_object = "{\"a\":".repeat(100_000);
        for text in [
            "",
            " ",
            "{",
            "{\"guests\": [}",
            "{} {}",
            "\u{0}",
            "nul",
            "1x",
            "[{]",
            "[1,]",
            "{\"a\":1,}",
            "'a'",
            "NaN",
            "01",
            &deep,
            &deep_object,
        ] {
            assert!(matches!(Json::read(text.as_bytes()), Err(ApiError::MalformedBody(_))), "{text:.20}");
        }
        assert!(matches!(Json::read(&[b'{', b'"', 0xff, b'"', b'}']), Err(ApiError::MalformedBody(_))));
        let Err(ApiError::MalformedBody(sentence)) = Json::read(b"{\n  1x") else { panic!() };
        assert_eq!(sentence, "The body is not JSON, or is nested too deeply: line 2, column 3.");
    }

    #[test]
    fn a_value_is_never_shown() {
        assert_eq!(format!("{:?}", Json::read(br#"{"name": "Asha"}"#).unwrap()), "object");
    }

    #[test]
    fn a_body_of_very_many_values_is_refused_before_it_fills_the_memory() {
        let list = |values: usize| format!("[0{}]", ",0".repeat(values - 2));
        assert!(Json::read(list(BODY_VALUES_MAX).as_bytes()).is_ok());
        let Err(ApiError::MalformedBody(sentence)) = Json::read(list(BODY_VALUES_MAX + 1).as_bytes()) else { panic!() };
        assert_eq!(sentence, "The body must hold at most 10000 values.");
    }
}

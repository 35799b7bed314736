//! A JSON tree of bounded size that owns its texts, so that a file of ten megabytes is copied out
//! of the body once and then only moved.
//!
//! Members of an object are kept as they came, repeated ones too: who reads the object says so.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{REPORT_BYTES_MAX, REPORT_VALUES_MAX};

/// A JSON value.
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(Box<str>),
    List(Vec<Json>),
    Object(Vec<(Box<str>, Json)>),
}

/// Reads a whole document.
///
/// # Errors
/// A sentence that repeats nothing of the document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Json, String> {
    if bytes.len() > REPORT_BYTES_MAX {
        return Err(format!("must be at most {REPORT_BYTES_MAX} bytes"));
    }
    let left = Cell::new(REPORT_VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let tree = Tree { left: &left }.deserialize(&mut reader).and_then(|tree| reader.end().map(|()| tree));
    tree.map_err(|error| match left.get() {
        0 => format!("must hold at most {REPORT_VALUES_MAX} values"),
        _ => format!("is not JSON: line {}, column {}", error.line(), error.column()),
    })
}

impl Json {
    /// The value as a free-form part of a payload.
    ///
    /// # Errors
    /// When it nests deeper than `depth` or an object in it repeats a member.
    pub(crate) fn into_value(self, depth: usize) -> Result<Value, &'static str> {
        let below = || depth.checked_sub(1).ok_or("nests too deeply");
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(bool),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::String(text.into()),
            Self::List(items) => {
                let depth = below()?;
                Value::Array(items.into_iter().map(|item| item.into_value(depth)).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let depth = below()?;
                let mut map = Map::new();
                for (name, value) in members {
                    if map.insert(name.into(), value.into_value(depth)?).is_some() {
                        return Err("repeats a member");
                    }
                }
                Value::Object(map)
            }
        })
    }
}

/// Builds a tree, one value of the budget for each node.
#[derive(Clone, Copy)]
struct Tree<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| de::Error::custom("too many values"))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Json, E> {
        Ok(Json::Bool(bool))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Box<str>>()? {
            members.push((name, map.next_value_seed(self)?));
        }
        Ok(Json::Object(members))
    }
}

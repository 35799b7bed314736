//! Strict reader of untrusted JSON. Depth and number of values are bounded: a small text can become a tree many times
//! its size.
//!
//! Reading a [`Value`] refuses a name that occurs twice in one object, because two readers could disagree on its value.
//! A [`Json`] keeps both members, so that the caller can report the problem.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value exactly as it was sent. Texts are owned: a file of megabytes is copied out of the body once and then
/// only moved.
#[derive(Clone, Default, PartialEq)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Flag(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

/// The reason why a text is refused as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonRefusal {
    /// The text is not JSON.
    Malformed,
    /// The JSON nests too deeply.
    TooDeep,
    /// The JSON holds too many values.
    TooManyValues,
    /// A name occurs twice in an object.
    RepeatedName,
}

/// The reason for a refusal, and its position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The reason.
    pub refusal: JsonRefusal,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// The number of values that may still be read. Texts that belong together share one number.
#[derive(Debug)]
pub struct ValuesLeft(Cell<usize>);

impl ValuesLeft {
    /// Allows this many values.
    #[must_use]
    pub const fn new(values: usize) -> Self {
        Self(Cell::new(values))
    }
}

/// A representation of JSON into which [`read`] reads a text: [`Json`] keeps repeated names, [`Value`] refuses them.
pub trait Tree: From<Value> + From<Vec<Self>> {
    /// The members of an object.
    type Members: Default;

    /// Returns true if the object refuses the name because it already has such a member.
    fn repeats(members: &Self::Members, name: &str) -> bool;

    /// Adds a member.
    fn insert(members: &mut Self::Members, name: String, value: Self);

    /// Builds the object of these members.
    fn object(members: Self::Members) -> Self;
}

/// Reads one JSON text. Its objects and arrays may nest at most `depth_max` deep, and never deeper than 127.
///
/// # Errors
/// [`JsonError`] with the reason and its position.
pub fn read<T: Tree>(text: &[u8], depth_max: usize, values_left: &ValuesLeft) -> Result<T, JsonError> {
    let refusal = Cell::new(JsonRefusal::Malformed);
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let reader = Reader { depth_left: depth_max, refusal: &refusal, values_left: &values_left.0, tree: PhantomData };
    let value = reader.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| JsonError { refusal: refusal.get(), line: error.line(), column: error.column() })
}

/// Reads one JSON object in which no name occurs twice.
///
/// # Errors
/// [`JsonRefusal`] with the reason.
pub fn read_object(text: &[u8], depth_max: usize, values_left: &ValuesLeft) -> Result<Map<String, Value>, JsonRefusal> {
    match read(text, depth_max, values_left) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(JsonRefusal::Malformed),
        Err(error) => Err(error.refusal),
    }
}

impl Json {
    /// Returns the value as a whole number from zero: `5` and `5.0` are equal.
    #[must_use]
    pub fn as_whole(&self) -> Option<u64> {
        /// The limit below which a float represents every whole number exactly.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        let Self::Number(number) = self else { return None };
        let from_float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=EXACT_MAX).contains(float));
        // A whole number within these bounds is not changed by the conversion.
        number.as_u64().or_else(|| from_float().map(|float| float as u64))
    }

    /// Converts the value to a free-form part of a body.
    ///
    /// # Errors
    /// A message, if the value nests deeper than `depth` or an object repeats a name.
    pub fn into_value(self, depth: usize) -> Result<Value, &'static str> {
        let inner_depth = || depth.checked_sub(1).ok_or("nests too deeply");
        Ok(match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => Value::Bool(flag),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::String(text),
            Self::List(items) => {
                let depth = inner_depth()?;
                Value::Array(items.into_iter().map(|item| item.into_value(depth)).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let depth = inner_depth()?;
                let mut object = Map::new();
                for (name, value) in members {
                    if object.insert(name, value.into_value(depth)?).is_some() {
                        return Err("repeats a member");
                    }
                }
                Value::Object(object)
            }
        })
    }
}

/// Shows the type of the value only; the value may be personal data.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Flag(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        })
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Flag(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

impl From<Vec<Self>> for Json {
    fn from(items: Vec<Self>) -> Self {
        Self::List(items)
    }
}

impl Tree for Json {
    type Members = Vec<(String, Self)>;

    fn repeats(_: &Self::Members, _: &str) -> bool {
        false
    }

    fn insert(members: &mut Self::Members, name: String, value: Self) {
        members.push((name, value));
    }

    fn object(members: Self::Members) -> Self {
        Self::Object(members)
    }
}

impl Tree for Value {
    type Members = Map<String, Self>;

    fn repeats(members: &Self::Members, name: &str) -> bool {
        members.contains_key(name)
    }

    fn insert(members: &mut Self::Members, name: String, value: Self) {
        members.insert(name, value);
    }

    fn object(members: Self::Members) -> Self {
        Self::Object(members)
    }
}

/// Reads a value with everything in it, as a serde visitor.
struct Reader<'a, T> {
    /// Levels to which the value may still nest.
    depth_left: usize,
    /// The reason for an error, because a serde error carries only a text.
    refusal: &'a Cell<JsonRefusal>,
    /// Values that may still be read.
    values_left: &'a Cell<usize>,
    tree: PhantomData<T>,
}

impl<T> Clone for Reader<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Reader<'_, T> {}

impl<T> Reader<'_, T> {
    /// Records the reason, and returns an error that stops the reading.
    fn refuse<E: Error>(self, refusal: JsonRefusal) -> E {
        self.refusal.set(refusal);
        E::custom("refused")
    }

    /// Returns the reader for the items of an array or object, one level deeper.
    fn nested<E: Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(self.refuse(JsonRefusal::TooDeep)),
        }
    }
}

impl<'de, T: Tree> DeserializeSeed<'de> for Reader<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        let values_left =
            self.values_left.get().checked_sub(1).ok_or_else(|| self.refuse(JsonRefusal::TooManyValues))?;
        self.values_left.set(values_left);
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Tree> Visitor<'de> for Reader<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(Value::Null.into())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(Value::Bool(flag).into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(Value::from(number).into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(Value::from(number).into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(Value::from(number).into())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(Value::from(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<T, A::Error> {
        let inner = self.nested()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<T, A::Error> {
        let inner = self.nested()?;
        let mut object = T::Members::default();
        while let Some(name) = members.next_key::<String>()? {
            if T::repeats(&object, &name) {
                return Err(self.refuse(JsonRefusal::RepeatedName));
            }
            let value = members.next_value_seed(inner)?;
            T::insert(&mut object, name, value);
        }
        Ok(T::object(object))
    }
}

#[cfg(test)]
mod tests;

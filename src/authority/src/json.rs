//! JSON from strangers, read strictly: a name that occurs twice in one object is refused (two
//! readers could disagree on which one counts), and so are nesting beyond a bound and more values
//! than a bound, because a small text can become a tree many times its size.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a text is not accepted as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonRefusal {
    Malformed,
    TooDeep,
    TooManyValues,
    RepeatedName,
}

/// The values that may still be read, of one text or of several that belong together.
#[derive(Debug)]
pub(crate) struct ValuesLeft(Cell<usize>);

impl ValuesLeft {
    pub(crate) const fn new(values: usize) -> Self {
        Self(Cell::new(values))
    }
}

/// Reads one JSON text whose objects and arrays nest at most `depth` deep.
pub(crate) fn parse(text: &[u8], depth: usize, left: &ValuesLeft) -> Result<Value, JsonRefusal> {
    let fault = Cell::new(JsonRefusal::Malformed);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth, fault: &fault, left: &left.0 }.deserialize(&mut reader).map_err(|_| fault.get())?;
    reader.end().map_err(|_| JsonRefusal::Malformed)?;
    Ok(value)
}

/// Reads one JSON object.
pub(crate) fn parse_object(text: &[u8], depth: usize, left: &ValuesLeft) -> Result<Map<String, Value>, JsonRefusal> {
    match parse(text, depth, left)? {
        Value::Object(object) => Ok(object),
        _ => Err(JsonRefusal::Malformed),
    }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    fault: &'a Cell<JsonRefusal>,
    left: &'a Cell<usize>,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(&self, fault: JsonRefusal) -> E {
        self.fault.set(fault);
        E::custom("refused")
    }

    fn nested<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => Err(self.refuse(JsonRefusal::TooDeep)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| self.refuse(JsonRefusal::TooManyValues))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let inner = self.nested()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(inner)? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.nested()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(self.refuse::<A::Error>(JsonRefusal::RepeatedName)));
            }
            object.insert(name, members.next_value_seed(inner)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8], depth: usize) -> Result<Value, JsonRefusal> {
        super::parse(text, depth, &ValuesLeft::new(1_000))
    }

    #[test]
    fn a_repeated_name_is_refused_wherever_it_is_even_when_escaped() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(parse(text.as_bytes(), 16), Err(JsonRefusal::RepeatedName), "{text}");
        }
        assert!(parse(br#"[{"a":1},{"a":1}]"#, 16).is_ok());
    }

    #[test]
    fn nesting_is_accepted_up_to_the_bound_and_not_beyond() {
        assert!(parse(b"[[[1]]]", 3).is_ok());
        assert_eq!(parse(br#"[[{"a":[1]}]]"#, 3), Err(JsonRefusal::TooDeep));
        assert_eq!(parse("[".repeat(100_000).as_bytes(), 16), Err(JsonRefusal::TooDeep));
    }

    #[test]
    fn what_is_not_one_json_text_is_refused() {
        for text in ["", "{", "{} {}", "nul", "{'a':1}", "\u{feff}{}", "1e999"] {
            assert_eq!(parse(text.as_bytes(), 16), Err(JsonRefusal::Malformed), "{text}");
        }
        assert_eq!(parse(b"\"\xff\"", 16), Err(JsonRefusal::Malformed));
        assert_eq!(parse_object(b"[]", 16, &ValuesLeft::new(9)), Err(JsonRefusal::Malformed));
    }

    #[test]
    fn more_values_than_are_left_are_refused_over_all_texts_that_belong_together() {
        let left = ValuesLeft::new(7);
        assert!(super::parse(br#"{"a":[1,{}]}"#, 16, &left).is_ok(), "four of them");
        assert_eq!(super::parse(br#"[1,2,3]"#, 16, &left), Err(JsonRefusal::TooManyValues));
        let many = format!("[{}]", r#"{"":0},"#.repeat(600_000));
        assert_eq!(parse(many.as_bytes(), 16), Err(JsonRefusal::TooManyValues));
    }
}

//! Reading what Redis answers, and writing what it is asked.

use std::str::FromStr;

use redis::Value;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::vault::Sealed;

/// An answer or a record that breaks what the scripts promise.
pub(super) fn unreadable(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} cannot be read"))
}

/// A field and its value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// The fields of an answer, taken one after the other.
pub(super) struct Fields {
    what: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl Fields {
    /// The fields of a list.
    pub(super) fn of(what: &'static str, value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(values) => Ok(Self { what, values: values.into_iter() }),
            // A newer protocol tells maps from lists.
            Value::Map(pairs) => {
                let values: Vec<Value> = pairs.into_iter().flat_map(|(key, value)| [key, value]).collect();
                Ok(Self { what, values: values.into_iter() })
            }
            _ => Err(unreadable(what)),
        }
    }

    /// The same, of an answer that may be none.
    pub(super) fn maybe(what: &'static str, value: Value) -> Result<Option<Self>, StoreError> {
        if value == Value::Nil { Ok(None) } else { Self::of(what, value).map(Some) }
    }

    /// Whatever comes next.
    pub(super) fn value(&mut self) -> Result<Value, StoreError> {
        self.values.next().ok_or_else(|| unreadable(self.what))
    }

    /// A field that may be missing or empty.
    pub(super) fn optional(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.value()?;
        Ok(bytes(self.what, value)?.filter(|bytes| !bytes.is_empty()))
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.optional()?.ok_or_else(|| unreadable(self.what))
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, StoreError> {
        self.optional()?.map(|bytes| String::from_utf8(bytes).map_err(|_| unreadable(self.what))).transpose()
    }

    /// Text that may be empty.
    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        Ok(self.optional_text()?.unwrap_or_default())
    }

    pub(super) fn optional_parsed<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        self.optional_text()?.map(|text| text.parse().map_err(|_| unreadable(self.what))).transpose()
    }

    pub(super) fn parsed<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.optional_parsed()?.ok_or_else(|| unreadable(self.what))
    }

    pub(super) fn optional_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_parsed()?.map(Timestamp::from_millis))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.parsed().map(Timestamp::from_millis)
    }

    pub(super) fn optional_sealed(&mut self) -> Result<Option<Sealed>, StoreError> {
        self.optional()?.map(|bytes| Sealed::from_bytes(&bytes).ok_or_else(|| unreadable(self.what))).transpose()
    }

    pub(super) fn sealed(&mut self) -> Result<Sealed, StoreError> {
        self.optional_sealed()?.ok_or_else(|| unreadable(self.what))
    }

    /// Exactly as many bytes as are asked for.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.bytes()?.try_into().map_err(|_| unreadable(self.what))
    }

    /// A list within the list.
    pub(super) fn fields(&mut self) -> Result<Self, StoreError> {
        Self::of(self.what, self.value()?)
    }

    /// What is left, item by item.
    pub(super) fn rest(self) -> impl Iterator<Item = Value> {
        self.values
    }

    /// What is left, two by two.
    pub(super) fn pairs(mut self) -> Result<Vec<Pair>, StoreError> {
        let mut pairs = Vec::with_capacity(self.values.len() / 2);
        while self.values.len() > 0 {
            pairs.push((self.bytes()?, self.bytes()?));
        }
        Ok(pairs)
    }
}

/// The bytes of a value; `None` for none.
pub(super) fn bytes(what: &'static str, value: Value) -> Result<Option<Vec<u8>>, StoreError> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Okay => Ok(Some(b"OK".to_vec())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
        _ => Err(unreadable(what)),
    }
}

/// The text of a value; `None` for none.
pub(super) fn text(what: &'static str, value: Value) -> Result<Option<String>, StoreError> {
    bytes(what, value)?.map(|bytes| String::from_utf8(bytes).map_err(|_| unreadable(what))).transpose()
}

/// A number that is there.
pub(super) fn number<T: FromStr>(what: &'static str, value: Value) -> Result<T, StoreError> {
    text(what, value)?.and_then(|text| text.parse().ok()).ok_or_else(|| unreadable(what))
}

/// What can stand among the arguments of a script.
pub(super) trait Argument {
    fn argument(self) -> Vec<u8>;
}

impl Argument for Vec<u8> {
    fn argument(self) -> Vec<u8> {
        self
    }
}

impl Argument for String {
    fn argument(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl Argument for &str {
    fn argument(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl Argument for &[u8] {
    fn argument(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<const N: usize> Argument for &[u8; N] {
    fn argument(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Argument for bool {
    fn argument(self) -> Vec<u8> {
        vec![if self { b'1' } else { b'0' }]
    }
}

macro_rules! number_arguments {
    ($($number:ty),+) => {
        $(impl Argument for $number {
            fn argument(self) -> Vec<u8> {
                self.to_string().into_bytes()
            }
        })+
    };
}

number_arguments!(i64, u64, u32, u16, usize);

impl Argument for Timestamp {
    fn argument(self) -> Vec<u8> {
        self.millis().argument()
    }
}

/// Milliseconds.
impl Argument for std::time::Duration {
    fn argument(self) -> Vec<u8> {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX).argument()
    }
}

/// Nothing is empty.
impl<T: Argument> Argument for Option<T> {
    fn argument(self) -> Vec<u8> {
        self.map_or_else(Vec::new, Argument::argument)
    }
}

/// The arguments of a script after the moment.
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::redis::answer::Argument::argument($value)),*]
    };
}
pub(super) use arguments;

//! Reading replies of Redis.

use std::str::FromStr;

use redis::Value;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::vault::Sealed;

/// A reply or a record that is not what the scripts write.
pub(crate) fn unreadable(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} cannot be read"))
}

/// A field and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The fields of a reply, read one after the other.
pub(crate) struct Fields {
    what: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl Fields {
    /// The fields of a list.
    pub(crate) fn of(what: &'static str, value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(values) => Ok(Self { what, values: values.into_iter() }),
            // RESP3 has maps besides lists.
            Value::Map(pairs) => {
                let values: Vec<Value> = pairs.into_iter().flat_map(|(key, value)| [key, value]).collect();
                Ok(Self { what, values: values.into_iter() })
            }
            _ => Err(unreadable(what)),
        }
    }

    /// The same for a reply that may be nil.
    pub(crate) fn maybe(what: &'static str, value: Value) -> Result<Option<Self>, StoreError> {
        if value == Value::Nil { Ok(None) } else { Self::of(what, value).map(Some) }
    }

    /// The next field.
    pub(crate) fn value(&mut self) -> Result<Value, StoreError> {
        self.values.next().ok_or_else(|| unreadable(self.what))
    }

    /// A field that may be missing or empty.
    pub(crate) fn optional(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.value()?;
        Ok(bytes(self.what, value)?.filter(|bytes| !bytes.is_empty()))
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.optional()?.ok_or_else(|| unreadable(self.what))
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, StoreError> {
        self.optional()?.map(|bytes| String::from_utf8(bytes).map_err(|_| unreadable(self.what))).transpose()
    }

    /// Text that may be empty.
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        Ok(self.optional_text()?.unwrap_or_default())
    }

    pub(crate) fn optional_parsed<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        self.optional_text()?.map(|text| text.parse().map_err(|_| unreadable(self.what))).transpose()
    }

    pub(crate) fn parsed<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.optional_parsed()?.ok_or_else(|| unreadable(self.what))
    }

    pub(crate) fn optional_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_parsed()?.map(Timestamp::from_millis))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.parsed().map(Timestamp::from_millis)
    }

    pub(crate) fn optional_sealed(&mut self) -> Result<Option<Sealed>, StoreError> {
        self.optional()?.map(|bytes| Sealed::from_bytes(&bytes).ok_or_else(|| unreadable(self.what))).transpose()
    }

    pub(crate) fn sealed(&mut self) -> Result<Sealed, StoreError> {
        self.optional_sealed()?.ok_or_else(|| unreadable(self.what))
    }

    /// Exactly `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.bytes()?.try_into().map_err(|_| unreadable(self.what))
    }

    /// A list within the list.
    pub(crate) fn fields(&mut self) -> Result<Self, StoreError> {
        Self::of(self.what, self.value()?)
    }

    /// The remaining values.
    pub(crate) fn rest(self) -> impl Iterator<Item = Value> {
        self.values
    }

    /// The remaining fields in pairs.
    pub(crate) fn pairs(mut self) -> Result<Vec<Pair>, StoreError> {
        let mut pairs = Vec::with_capacity(self.values.len() / 2);
        while self.values.len() > 0 {
            pairs.push((self.bytes()?, self.bytes()?));
        }
        Ok(pairs)
    }
}

/// The bytes of a value; `None` for nil.
pub(crate) fn bytes(what: &'static str, value: Value) -> Result<Option<Vec<u8>>, StoreError> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Okay => Ok(Some(b"OK".to_vec())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
        _ => Err(unreadable(what)),
    }
}

/// The text of a value; `None` for nil.
pub(crate) fn text(what: &'static str, value: Value) -> Result<Option<String>, StoreError> {
    bytes(what, value)?.map(|bytes| String::from_utf8(bytes).map_err(|_| unreadable(what))).transpose()
}

/// A number, which must not be missing.
pub(crate) fn number<T: FromStr>(what: &'static str, value: Value) -> Result<T, StoreError> {
    text(what, value)?.and_then(|text| text.parse().ok()).ok_or_else(|| unreadable(what))
}

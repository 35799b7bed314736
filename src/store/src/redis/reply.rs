//! Parsing of Redis replies.

use std::str::FromStr;

use redis::Value;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;

/// A reply, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// Name of the reply, for errors.
    name: &'static str,
    value: Value,
}

impl Reply {
    pub(crate) const fn new(name: &'static str, value: Value) -> Self {
        Self { name, value }
    }

    /// Returns true if the reply has no value.
    pub(crate) fn is_nil(&self) -> bool {
        self.value == Value::Nil
    }

    /// Returns the reply's bytes; `None` for nil and for an empty reply.
    pub(crate) fn bytes(self) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = match self.value {
            Value::Nil => return Ok(None),
            Value::BulkString(bytes) => bytes,
            Value::SimpleString(text) => text.into_bytes(),
            Value::Okay => b"OK".to_vec(),
            Value::Int(number) => number.to_string().into_bytes(),
            _ => return Err(StoreError::unreadable(self.name)),
        };
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Returns the reply's text; `None` for nil and for an empty reply.
    pub(crate) fn text(self) -> Result<Option<String>, StoreError> {
        let name = self.name;
        self.bytes()?.map(|bytes| String::from_utf8(bytes).map_err(|_| StoreError::unreadable(name))).transpose()
    }

    /// Parses the reply's text; `None` for nil and for an empty reply.
    pub(crate) fn optional_parsed<T: FromStr>(self) -> Result<Option<T>, StoreError> {
        let name = self.name;
        self.text()?.map(|text| text.parse().map_err(|_| StoreError::unreadable(name))).transpose()
    }

    /// Parses the reply's text.
    pub(crate) fn parsed<T: FromStr>(self) -> Result<T, StoreError> {
        let name = self.name;
        self.optional_parsed()?.ok_or_else(|| StoreError::unreadable(name))
    }

    /// Returns true if the reply is 1.
    pub(crate) fn succeeded(self) -> Result<bool, StoreError> {
        Ok(self.parsed::<i64>()? == 1)
    }

    /// Returns the fields of a list.
    pub(crate) fn fields(self) -> Result<Fields, StoreError> {
        let values = match self.value {
            Value::Array(values) => values,
            // RESP3 has maps besides lists.
            Value::Map(pairs) => pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(),
            _ => return Err(StoreError::unreadable(self.name)),
        };
        Ok(Fields { name: self.name, values: values.into_iter() })
    }
}

/// A field and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The fields of a reply, read one after the other.
pub(crate) struct Fields {
    name: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    /// Returns the error for an unexpected field.
    pub(crate) fn unreadable(&self) -> StoreError {
        StoreError::unreadable(self.name)
    }

    /// Returns the next field.
    pub(crate) fn value(&mut self) -> Result<Reply, StoreError> {
        self.values.next().map(|value| Reply::new(self.name, value)).ok_or_else(|| self.unreadable())
    }

    /// Returns the bytes of the next field; `None` for nil and for an empty field.
    pub(crate) fn optional(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.value()?.bytes()
    }

    /// Returns the bytes of the next field, which must not be empty.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.optional()?.ok_or_else(|| self.unreadable())
    }

    pub(crate) fn optional_parsed<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        self.value()?.optional_parsed()
    }

    pub(crate) fn parsed<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.value()?.parsed()
    }

    pub(crate) fn optional_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_parsed()?.map(Timestamp::from_millis))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.parsed().map(Timestamp::from_millis)
    }

    /// Returns the remaining fields.
    pub(crate) fn remaining(self) -> impl ExactSizeIterator<Item = Reply> {
        let name = self.name;
        self.values.map(move |value| Reply::new(name, value))
    }

    /// Returns the remaining fields, each parsed by `parse`.
    pub(crate) fn parse_all<T>(self, mut parse: impl FnMut(Vec<u8>) -> Option<T>) -> Result<Vec<T>, StoreError> {
        let name = self.name;
        self.remaining()
            .map(|field| field.bytes()?.and_then(&mut parse).ok_or_else(|| StoreError::unreadable(name)))
            .collect()
    }

    /// Returns the remaining fields in pairs.
    pub(crate) fn pairs(mut self) -> Result<Vec<Pair>, StoreError> {
        let mut pairs = Vec::with_capacity(self.values.len() / 2);
        while self.values.len() > 0 {
            pairs.push((self.bytes()?, self.bytes()?));
        }
        Ok(pairs)
    }
}

//! The whole content of a store, as digests by key.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};

use crate::embedded::database::statements::Database;
use crate::engine::embedded::{answer, keys};
use crate::engine::{Answer, Form, Key, Query, Value};
use crate::records::ALL;
use crate::records::installation::SWEPT;

/// The digests of all keys that have a value.
pub(super) type Content = BTreeMap<KeyName, Digest>;
/// The kind, the place and the id of a key.
pub(super) type KeyName = (&'static str, u8, Vec<u8>);
/// The digest of a value.
type Digest = [u8; 32];

/// Every key that the store has had so far.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<KeyName, Key>);

fn key_name(key: &Key) -> KeyName {
    (key.table.name, key.place.number(), key.id.clone())
}

impl Keys {
    /// Adds the current keys of a store.
    pub(super) fn add_current(&mut self, db: &Database) -> rusqlite::Result<()> {
        for table in ALL {
            self.0.extend(keys(db, table)?.into_iter().map(|key| (key_name(&key), key)));
        }
        Ok(())
    }

    /// Returns the content under these keys and under all current keys. Values are looked up by key, through an index;
    /// keys are also found by scanning their table. Both must agree.
    pub(super) fn content(&self, db: &Database) -> rusqlite::Result<Content> {
        let mut content = Content::new();
        for (name, key) in &self.0 {
            content.extend(digest(db, key)?.map(|digest| (name.clone(), digest)));
        }
        for table in ALL {
            for key in keys(db, table)? {
                // A key that only the scan finds gets a digest that no value has.
                content.entry(key_name(&key)).or_insert(if self.0.contains_key(&key_name(&key)) {
                    [0; 32]
                } else {
                    [1; 32]
                });
            }
        }
        Ok(content)
    }
}

/// Returns true for the content of a new store.
pub(super) fn is_new(content: &Content) -> bool {
    content.keys().all(|(table, ..)| *table == SWEPT.name)
}

/// Returns the digest of the value of a key, if it has one.
fn digest(db: &Database, key: &Key) -> rusqlite::Result<Option<Digest>> {
    let query = match key.table.form {
        Form::Record => Query::Record(key.clone()),
        Form::List => Query::entries(key.clone(), 1, 1_000_000),
        Form::Index => Query::page(key.clone(), 0, 1_000_000),
    };
    let mut context = Context::new(&SHA256);
    match answer(db, &query)? {
        Answer::Record(None) | Answer::Number(_) => return Ok(None),
        Answer::Record(Some(record)) => {
            context.update(&record.version.to_be_bytes());
            if let Answer::Number(end) = answer(db, &Query::End(key.clone()))? {
                context.update(&end.to_be_bytes());
            }
            for (field, value) in record.fields {
                context.update(field.as_bytes());
                add_value(&mut context, &value);
            }
        }
        Answer::Entries(entries) if entries.is_empty() => return Ok(None),
        Answer::Entries(entries) => entries.iter().for_each(|entry| {
            context.update(&entry.len().to_be_bytes());
            entry.iter().for_each(|value| add_value(&mut context, value));
        }),
        Answer::Members(members) if members.is_empty() => return Ok(None),
        Answer::Members(members) => members.iter().for_each(|(member, score)| {
            add_value(&mut context, &member.as_slice().into());
            context.update(&score.to_be_bytes());
        }),
    }
    Ok(context.finish().as_ref().try_into().ok())
}

/// Adds a value with its length to a digest.
fn add_value(context: &mut Context, value: &Value) {
    let bytes = match value {
        Value::Integer(number) => return context.update(&number.to_be_bytes()),
        Value::Text(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
    };
    context.update(&bytes.len().to_be_bytes());
    context.update(bytes);
}

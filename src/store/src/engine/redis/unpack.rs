//! Parsing of the scripts' replies.

use sakshi_domain::time::Timestamp;

use crate::engine::{Answer, Applied, Batch, ColumnKind, Query, Record, Table, Value};
use crate::error::StoreError;
use crate::redis::reply::{Fields, Reply};

/// Parses the fields of a hash; `None` for a missing record.
fn record(table: &'static Table, fields: Fields) -> Result<Option<Record>, StoreError> {
    let (mut record, mut parts) = (Record::default(), fields.remaining());
    while let (Some(name), Some(part)) = (parts.next(), parts.next()) {
        add_field(&mut record, table, &name.text()?.unwrap_or_default(), part)?;
    }
    Ok((record.version > 0).then_some(record))
}

/// Parses the version and the values of these fields; `None` for a missing record.
fn fields(table: &'static Table, names: &[&str], values: Fields) -> Result<Option<Record>, StoreError> {
    let mut record = Record::default();
    for (name, value) in std::iter::once(&"version").chain(names).zip(values.remaining()) {
        if !value.is_nil() {
            add_field(&mut record, table, name, value)?;
        }
    }
    Ok((record.version > 0).then_some(record))
}

/// Adds a field of a hash to a record. Fields that the kind does not have are ignored.
fn add_field(record: &mut Record, table: &'static Table, name: &str, part: Reply) -> Result<(), StoreError> {
    if name == "version" {
        record.version = part.parsed()?;
    } else if let Some(column) = table.column(name) {
        record.fields.insert(column.name, value(column.kind, part.bytes()?.unwrap_or_default())?);
    }
    Ok(())
}

/// Parses the value of a field of this type.
fn value(kind: ColumnKind, bytes: Vec<u8>) -> Result<Value, StoreError> {
    let unreadable = || StoreError::unreadable("a field");
    Ok(match kind {
        ColumnKind::Integer => {
            let text = std::str::from_utf8(&bytes).ok();
            Value::Integer(text.and_then(|text| text.parse().ok()).ok_or_else(unreadable)?)
        }
        ColumnKind::Text => Value::Text(String::from_utf8(bytes).map_err(|_| unreadable())?),
        ColumnKind::Bytes | ColumnKind::Sealed(_) => Value::Bytes(bytes),
    })
}

/// Parses the reply to a batch: 0 and the results, or the number of the failed guard, from 1, and its record. `now` is
/// the time of the call; the reply to a retry has the time of the first application.
pub(super) fn parse_applied(batch: &Batch, reply: Reply, now: Timestamp) -> Result<Applied, StoreError> {
    let mut reply = reply.fields()?;
    match reply.parsed::<usize>()? {
        0 => {
            let results = reply.value()?.fields()?.remaining().map(Reply::parsed).collect::<Result<_, _>>()?;
            let first_time = reply.remaining().next().map(Reply::parsed).transpose()?;
            Ok(Applied::Done { results, now: first_time.map_or(now, Timestamp::from_millis) })
        }
        guard => {
            let condition = batch.guards.get(guard - 1).ok_or_else(|| reply.unreadable())?;
            let record = record(condition.key().table, reply.value()?.fields()?)?;
            Ok(Applied::Refused { guard: guard - 1, record, now })
        }
    }
}

/// Parses the reply to a query.
pub(super) fn parse_answer(query: &Query, reply: Reply) -> Result<Answer, StoreError> {
    Ok(match query {
        Query::Record(key) => Answer::Record(record(key.table, reply.fields()?)?),
        Query::Fields(key, names) => Answer::Record(fields(key.table, names, reply.fields()?)?),
        Query::Entries { list, .. } => Answer::Entries(reply.fields()?.parse_all(|packed| entry(list.table, &packed))?),
        Query::End(_) | Query::Length(_) | Query::Count(..) => Answer::Number(reply.parsed()?),
        Query::Members { .. } | Query::Last(_) => {
            let (mut members, mut parts) = (Vec::new(), reply.fields()?.remaining());
            while let (Some(member), Some(score)) = (parts.next(), parts.next()) {
                members.push((member.bytes()?.unwrap_or_default(), score.parsed()?));
            }
            Answer::Members(members)
        }
    })
}

/// Parses an entry as the scripts store it: a MessagePack array of texts, one for each field; `None` for other bytes.
fn entry(table: &Table, packed: &[u8]) -> Option<Vec<Value>> {
    let (length, mut rest) = match packed.split_first()? {
        (fixarray @ 0x90..=0x9f, rest) => (usize::from(fixarray & 0x0f), rest),
        (0xdc, rest) => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
        _ => return None,
    };
    let mut values = Vec::with_capacity(length);
    for column in table.fields.iter().take(length) {
        let (size, text) = match rest.split_first()? {
            (fixstr @ 0xa0..=0xbf, text) => (usize::from(fixstr & 0x1f), text),
            (0xd9, text) => (usize::from(*text.first()?), text.get(1..)?),
            (0xda, text) => (usize::from(u16::from_be_bytes(text.get(..2)?.try_into().ok()?)), text.get(2..)?),
            (0xdb, text) => {
                (usize::try_from(u32::from_be_bytes(text.get(..4)?.try_into().ok()?)).ok()?, text.get(4..)?)
            }
            _ => return None,
        };
        values.push(value(column.kind, text.get(..size)?.to_vec()).ok()?);
        rest = text.get(size..)?;
    }
    Some(values)
}

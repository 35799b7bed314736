//! Clients, apps and API keys. Several batches create one object, in an order that allows a repetition after a crash:
//! first the list, whose readers skip ids without a record; then the id of a key; last the record, which makes the
//! object valid.

use std::time::Duration;

use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, Client, KeyDigest};
use sakshi_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::{Batch, Guard, Key, Op, Operand, Record, ScoredMember};
use crate::error::StoreError;
use crate::records::{client, tenancy};
use crate::tenancy::{KeyEnd, join_environments, parse_environments, parse_networks};

/// Low bits of a score, which order the members created within one millisecond. Scores have 53 bits, and times until
/// the year 9999 leave 5 of them.
const ORDER_BITS: u32 = 5;

/// Fields with their new values.
pub(crate) type Changes = Vec<(&'static str, Operand)>;

/// Builds the batch that changes the record `before`, or writes a new one. It is refused if the record has changed,
/// appeared or disappeared since it was read.
pub(crate) fn write_record(key: Key, before: Option<&Record>, fields: Changes) -> Batch {
    let (guard, op) = match before {
        Some(before) => (Guard::Version(key.clone(), before.version), Op::Set(key, fields)),
        None => (Guard::Absent(key.clone()), Op::Put(key, fields)),
    };
    Batch::new(vec![guard], vec![op])
}

/// Returns the operand that sets this value, or clears the field without a value.
pub(crate) fn or_nothing(value: Option<impl Into<Operand>>) -> Operand {
    value.map_or(Operand::Nothing, Into::into)
}

/// Builds the batches that create a client; `imported_at` is the time of an import.
pub(crate) fn create_client(client: &Client, imported_at: Option<Timestamp>) -> [Batch; 2] {
    let Client { client_id, name, created_at, .. } = client;
    let member = Op::Index(client::key_of_clients(), client_id.as_str().as_bytes().to_vec(), (*created_at).into());
    let fields = vec![
        ("name", name.as_str().into()),
        ("created_at", (*created_at).into()),
        ("balance", 0.into()),
        ("imported_at", or_nothing(imported_at)),
    ];
    [Batch::new(vec![], vec![member]), write_record(client::key_of_client(client_id), None, fields)]
}

/// Encodes a value as JSON; `None` for the default, which is not stored.
fn json_unless_default<T: Serialize + Default + PartialEq>(value: &T) -> Option<String> {
    (*value != T::default()).then(|| serde_json::to_string(value).ok()).flatten()
}

/// Decodes a field that is stored as JSON; an empty field has the default.
fn json_field<T: DeserializeOwned + Default>(record: &Record, field: &'static str) -> Result<T, StoreError> {
    if !record.has(field) {
        return Ok(T::default());
    }
    serde_json::from_str(record.text(field)).map_err(|_| StoreError::unreadable(field))
}

/// Returns the fields of a client that operators set.
pub(crate) fn client_fields(client: &Client) -> Changes {
    let Client { name, suspended_at, limits, brand, portal_key_sign_in, .. } = client;
    vec![
        ("name", name.as_str().into()),
        ("suspended_at", or_nothing(*suspended_at)),
        ("limits", or_nothing(json_unless_default(limits))),
        ("brand", or_nothing(json_unless_default(brand))),
        ("key_sign_in_refused", or_nothing((!portal_key_sign_in).then_some(1))),
    ]
}

/// Decodes the client in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_client(client_id: ClientId, record: &Record) -> Result<Client, StoreError> {
    let created_at = Timestamp::from_millis(record.integer("created_at"));
    let (limits, brand) = (json_field(record, "limits")?, json_field(record, "brand")?);
    Ok(Client {
        client_id,
        name: record.text("name").to_owned(),
        created_at,
        suspended_at: record.time("suspended_at"),
        limits,
        brand,
        portal_key_sign_in: !record.has("key_sign_in_refused"),
    })
}

/// Builds the batch that adds ids with their creation times to a list of a client, which has `listed` as members. The
/// list is ordered by creation time and then by arrival. `None` if it has all ids already.
pub(crate) fn add_to_list<'a>(
    index: Key,
    listed: &[ScoredMember],
    created: impl IntoIterator<Item = (&'a str, Timestamp)>,
) -> Option<Batch> {
    let (mut members, mut ops) = (listed.to_vec(), Vec::new());
    for (id, created_at) in created {
        if members.iter().any(|(member, _)| member == id.as_bytes()) {
            continue;
        }
        let first_score = created_at.millis().saturating_mul(1 << ORDER_BITS);
        let in_same_millisecond =
            members.iter().filter(|(_, score)| score >> ORDER_BITS == created_at.millis()).count();
        let score = first_score | i64::try_from(in_same_millisecond).unwrap_or(i64::MAX).min((1 << ORDER_BITS) - 1);
        members.push((id.into(), score));
        ops.push(Op::Index(index.clone(), id.into(), score.into()));
    }
    // Members are never removed, so a list with as many members as were read is unchanged.
    let guard = Guard::Fewer(index, listed.len() as u64 + 1);
    (!ops.is_empty()).then(|| Batch::new(vec![guard], ops))
}

/// Builds the batch that writes a sealed app, over the record `before` if it exists.
pub(crate) fn put_app(app: &App, sealed: Vec<u8>, before: Option<&Record>) -> Batch {
    let fields = vec![("client", app.client_id.as_str().into()), ("record", Operand::from(sealed))];
    write_record(tenancy::key_of_app(&app.app_id), before, fields)
}

/// Builds the batch that writes the digest of an API key under its id.
pub(crate) fn index_key(id: &KeyId, digest: &KeyDigest) -> Batch {
    write_record(tenancy::key_of_api_key_id(id), None, vec![("digest", digest.0[..].into())])
}

/// Builds the batch that writes an API key, over the record `before` if it exists.
pub(crate) fn put_key(key: &ApiKeyRecord, digest: &KeyDigest, before: Option<&Record>) -> Batch {
    write_record(tenancy::key_of_api_key(digest), before, key_fields(key))
}

/// Returns the fields of an API key.
pub(crate) fn key_fields(key: &ApiKeyRecord) -> Changes {
    let ApiKeyRecord { key_id, client_id, label, environments, networks, created_at, expires_at, revoked_at } = key;
    vec![
        ("key_id", key_id.as_str().into()),
        ("client", client_id.as_str().into()),
        ("label", label.as_str().into()),
        ("environments", join_environments(environments).into()),
        ("networks", networks.texts().collect::<Vec<_>>().join(" ").into()),
        ("created_at", (*created_at).into()),
        ("expires_at", or_nothing(*expires_at)),
        ("revoked_at", or_nothing(*revoked_at)),
    ]
}

/// Decodes the API key in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_key(record: &Record) -> Result<ApiKeyRecord, StoreError> {
    Ok(ApiKeyRecord {
        key_id: record.parsed("key_id")?,
        client_id: record.parsed("client")?,
        label: record.text("label").to_owned(),
        environments: parse_environments(record.text("environments"))?,
        networks: parse_networks(record.text("networks"))?,
        created_at: Timestamp::from_millis(record.integer("created_at")),
        expires_at: record.time("expires_at"),
        revoked_at: record.time("revoked_at"),
    })
}

/// Builds the batch that records the use of an API key at the time `at`. It is refused if a use was recorded within the
/// interval before. `last_use` is the last recorded use that the caller knows.
#[must_use]
pub(crate) fn note_use(digest: &KeyDigest, last_use: Option<Timestamp>, at: Timestamp, interval: Duration) -> Batch {
    let key = tenancy::key_of_api_key(digest);
    let guard = match last_use {
        Some(_) => Guard::AtMost(key.clone(), "used_at", (at - interval).millis()),
        None => Guard::Unset(key.clone(), "used_at"),
    };
    Batch::even_when_full(vec![guard], vec![Op::Set(key, vec![("used_at", at.into())])])
}

#[must_use]
pub(crate) fn retire(key: ApiKeyRecord, end: KeyEnd) -> ApiKeyRecord {
    match end {
        KeyEnd::Revoked(at) => ApiKeyRecord { revoked_at: key.revoked_at.or(Some(at)), ..key },
        KeyEnd::Expires(at) => ApiKeyRecord { expires_at: key.expires_at.into_iter().chain([at]).min(), ..key },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_members_are_unique_and_ordered_by_creation_time_then_by_arrival() {
        let (index, at) = (tenancy::key_of_apps(&ClientId::generate()), Timestamp::from_millis);
        let added = |listed: &[ScoredMember], created: &[(&'static str, i64)]| {
            let batch = add_to_list(index.clone(), listed, created.iter().map(|(id, millis)| (*id, at(*millis))));
            let member = |op| match op {
                Op::Index(_, member, Operand::Value(crate::engine::Value::Integer(score))) => (member, score),
                other => panic!("{other:?}"),
            };
            batch.map(|batch| batch.ops.into_iter().map(member).collect::<Vec<_>>()).unwrap_or_default()
        };
        let mut listed = added(&[], &[("late", 9), ("b", 5), ("a", 5), ("b", 5)]);
        listed.extend(added(&listed, &[("b", 4), ("0", 5), ("early", -1)]));
        listed.sort_by_key(|(_, score)| *score);
        let ids: Vec<&str> = listed.iter().map(|(id, _)| std::str::from_utf8(id).unwrap()).collect();
        assert_eq!(ids, ["early", "b", "a", "0", "late"]);
        assert_eq!(add_to_list(index.clone(), &listed, [("a", at(7))]), None);
        let end_of_time = Timestamp::parse_iso8601("9999-12-31T23:59:59.999Z").unwrap();
        let last = add_to_list(index, &[], [("last", end_of_time)]).unwrap();
        assert!(matches!(last.ops[0], Op::Index(_, _,
                Operand::Value(crate::engine::Value::Integer(score))) if score < 1 << 53));
    }
}

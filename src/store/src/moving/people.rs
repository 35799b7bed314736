//! Clients with their ledgers, apps and keys, and operators with what they have done.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::limits::REFUSAL_TTL;
use sakshi_domain::tenancy::KeyDigest;

use super::source::{Pieces, Sink, hash, number, optional_number, parsed, text};
use super::{Content, MovedKey};
use crate::error::StoreError;
use crate::redis::keys;
use crate::sessions::SessionDigest;

pub(super) fn each(connection: &Connection, now: i64, sink: Sink<'_>) -> Result<(), StoreError> {
    clients(connection, sink)?;
    sessions(connection, sink)?;
    refusals(connection, now, sink)?;
    operators(connection, sink)?;
    audit_log(connection, sink)
}

fn clients(connection: &Connection, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut listed = BTreeMap::new();
    let sql = "SELECT row, client_id, name, created_at, balance, entries, imported_at, suspended_at, limits, \
         (SELECT count(*) FROM events e WHERE e.client = clients.row AND e.closing = 0) FROM clients ORDER BY created_at, row";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (place, id): (i64, ClientId) = (row.get(0)?, parsed(row, 1)?);
        let events: i64 = row.get(9)?;
        let fields = [
            ("n", Some(row.get::<_, String>(2)?.into_bytes())),
            ("t", optional_number(row, 3)?),
            ("b", optional_number(row, 4)?),
            ("s", optional_number(row, 5)?),
            ("m", optional_number(row, 6)?),
            ("z", optional_number(row, 7)?),
            ("q", row.get::<_, Option<String>>(8)?.map(String::into_bytes)),
            ("i", Some(events).filter(|events| *events > 0).map(number)),
        ];
        sink(hash("clients", keys::client(id.partition(), &id), fields, None))?;
        listed.insert(id.as_str().as_bytes().to_vec(), row.get(3)?);
        ledger(connection, place, &id, sink)?;
        apps(connection, place, &id, sink)?;
        api_keys(connection, place, &id, sink)?;
    }
    sorted("clients", keys::clients(), listed, None, sink)
}

/// A sorted set; an empty one is no key.
pub(super) fn sorted(
    kind: &'static str,
    name: Vec<u8>,
    members: BTreeMap<Vec<u8>, i64>,
    expires_at: Option<i64>,
    sink: Sink<'_>,
) -> Result<(), StoreError> {
    if members.is_empty() { Ok(()) } else { sink(MovedKey { kind, name, content: Content::Sorted(members), expires_at }) }
}

fn ledger(connection: &Connection, client: i64, id: &ClientId, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut pieces = Pieces::of("ledgers", keys::ledger(id.partition(), id), None);
    let mut references = BTreeMap::new();
    let sql = "SELECT seq, kind, amount, balance_after, at, reference FROM ledger WHERE client = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([client])?;
    while let Some(row) = rows.next()? {
        let kind = match row.get::<_, i64>(1)? {
            0 => 'g',
            1 => 'd',
            2 => 'a',
            _ => return Err(StoreError::unreadable("a ledger entry")),
        };
        let reference = match row.get_ref(5)? {
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes.to_vec(),
            _ => return Err(StoreError::unreadable("a ledger entry")),
        };
        let (seq, amount, after, at): (i64, i64, i64, i64) = (row.get(0)?, row.get(2)?, row.get(3)?, row.get(4)?);
        pieces.push([format!("{kind} {amount} {after} {at} ").as_bytes(), &reference].concat(), sink)?;
        if kind != 'd' {
            references.insert([&[kind as u8], reference.as_slice()].concat(), number(seq));
        }
    }
    pieces.end(sink)?;
    fields("ledgers", keys::references(id), references, sink)
}

/// A hash of many fields; an empty one is no key.
fn fields(kind: &'static str, name: Vec<u8>, fields: BTreeMap<Vec<u8>, Vec<u8>>, sink: Sink<'_>) -> Result<(), StoreError> {
    if fields.is_empty() { Ok(()) } else { sink(MovedKey { kind, name, content: Content::Hash(fields), expires_at: None }) }
}

/// A place in a list of a client: when it was created, and the number of arrival.
fn place(row: &Row<'_>, created_at: usize, listed: &BTreeMap<Vec<u8>, Vec<u8>>) -> rusqlite::Result<Vec<u8>> {
    Ok(format!("{} {}", row.get::<_, i64>(created_at)?, listed.len()).into_bytes())
}

fn apps(connection: &Connection, client: i64, id: &ClientId, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut listed = BTreeMap::new();
    let mut statement = connection.prepare_cached("SELECT app_id, created_at, record, urls FROM apps WHERE client = ?1 ORDER BY row")?;
    let mut rows = statement.query([client])?;
    while let Some(row) = rows.next()? {
        let app: AppId = parsed(row, 0)?;
        let partition = number(id.partition().number().into());
        let found = [("p", Some(partition)), ("r", row.get(2)?), ("w", row.get(3)?)];
        sink(hash("apps", keys::app(&app), found, None))?;
        listed.insert(app.as_str().as_bytes().to_vec(), place(row, 1, &listed)?);
    }
    fields("apps", keys::apps_of_client(id), listed, sink)
}

fn api_keys(connection: &Connection, client: i64, id: &ClientId, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut listed = BTreeMap::new();
    let sql = "SELECT key_id, digest, label, environments, created_at, expires_at, revoked_at FROM keys WHERE client = ?1 ORDER BY row";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([client])?;
    while let Some(row) = rows.next()? {
        let key: KeyId = parsed(row, 0)?;
        let digest = keys::key_digest(&KeyDigest(row.get(1)?));
        let found = [
            ("i", Some(key.as_str().as_bytes().to_vec())),
            ("c", Some(id.as_str().as_bytes().to_vec())),
            ("l", Some(row.get::<_, String>(2)?.into_bytes())),
            ("e", Some(row.get::<_, String>(3)?.into_bytes())),
            ("t", optional_number(row, 4)?),
            ("x", optional_number(row, 5)?),
            ("v", optional_number(row, 6)?),
        ];
        sink(hash("keys", keys::key(&digest), found, None))?;
        sink(text("keys", keys::key_name(&key), digest.into_bytes(), None))?;
        listed.insert(key.as_str().as_bytes().to_vec(), place(row, 4, &listed)?);
    }
    fields("keys", keys::keys_of_client(id), listed, sink)
}

fn sessions(connection: &Connection, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT digest, idle_until, ends_at, box FROM sessions")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let found = [("u", optional_number(row, 1)?), ("x", optional_number(row, 2)?), ("s", row.get(3)?)];
        sink(hash("sessions", keys::session(&SessionDigest(row.get(0)?)), found, row.get(1)?))?;
    }
    Ok(())
}

fn refusals(connection: &Connection, now: i64, sink: Sink<'_>) -> Result<(), StoreError> {
    let lasting = i64::try_from(REFUSAL_TTL.as_millis()).unwrap_or(i64::MAX);
    let mut by_app: BTreeMap<String, BTreeMap<Vec<u8>, i64>> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT app, at, box FROM refusals WHERE at > ?1")?;
    let mut rows = statement.query(params![now - lasting])?;
    while let Some(row) = rows.next()? {
        by_app.entry(row.get(0)?).or_default().insert(row.get(2)?, row.get(1)?);
    }
    for (app, kept) in by_app {
        let app: AppId = app.parse().map_err(|_| StoreError::unreadable("an app"))?;
        let until = kept.values().max().map(|newest| newest + lasting);
        sorted("refused requests", keys::refusals(&app), kept, until, sink)?;
    }
    Ok(())
}

fn operators(connection: &Connection, sink: Sink<'_>) -> Result<(), StoreError> {
    let (mut all, mut revoked) = (BTreeMap::new(), BTreeMap::new());
    let mut statement = connection.prepare("SELECT operator_id, token, box, revoked_at FROM operators")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id = row.get::<_, String>(0)?.into_bytes();
        all.insert(id.clone(), [row.get::<_, Vec<u8>>(1)?, row.get(2)?].concat());
        revoked.extend(optional_number(row, 3)?.map(|at| (id, at)));
    }
    fields("operators", keys::operators(), all, sink)?;
    fields("operators", keys::revoked_operators(), revoked, sink)
}

fn audit_log(connection: &Connection, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut pieces = Pieces::of("audit log", keys::audit_log(), None);
    let mut statement = connection.prepare("SELECT number, previous, hash, box FROM audit_log ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.to_be_bytes();
        let (previous, own, sealed): (Vec<u8>, Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?, row.get(3)?);
        pieces.push([&number[..], &previous, &own, &sealed].concat(), sink)?;
    }
    pieces.end(sink)
}

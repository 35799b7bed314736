//! Clients with their ledgers, apps and keys, operators with what they have done, sessions and refused requests.

use redis::cmd;
use rusqlite::params;
use rusqlite::types::Value;
use sakshi_domain::ids::{AppId, ClientId, OperatorId};

use super::super::target::pairs;
use super::file::NewStore;
use super::origin::{Origin, Record, parts};
use crate::error::StoreError;
use crate::redis::keys;
use crate::sealing::open_operator;

/// Bytes of a token's digest, before the sealed record of an operator.
const TOKEN: usize = 32;

fn unreadable() -> StoreError {
    StoreError::unreadable("a key of the origin")
}

fn text(bytes: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| unreadable())
}

pub(super) async fn clients(origin: &Origin, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    for (id, _) in origin.members(&keys::clients()).await? {
        let id: ClientId = text(&id)?.parse().map_err(|_| unreadable())?;
        let client = origin.hashes(vec![keys::client(id.partition(), &id)]).await?.pop().ok_or_else(unreadable)?;
        let name = id.clone();
        store
            .write(move |rows| {
                rows.put(
                    "INSERT INTO clients (client_id, name, created_at, balance, entries, imported_at, suspended_at, limits) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        name.as_str(),
                        client.text("n"),
                        client.number("t"),
                        client.number("b").unwrap_or(0),
                        client.number("s").unwrap_or(0),
                        client.number("m"),
                        client.number("z"),
                        client.text("q")
                    ],
                )
            })
            .await?;
        ledger(origin, store, &id).await?;
        apps(origin, store, &id).await?;
        api_keys(origin, store, &id).await?;
        told(1);
    }
    Ok(())
}

async fn ledger(origin: &Origin, store: &NewStore, id: &ClientId) -> Result<(), StoreError> {
    let (list, mut from) = (keys::ledger(id.partition(), id), 0);
    loop {
        let entries = origin.entries(&list, from).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let (first, id) = (from, id.clone());
        from += entries.len();
        store
            .write(move |rows| {
                for (seq, entry) in (first + 1..).zip(entries) {
                    let mut parts = entry.splitn(5, |byte| *byte == b' ');
                    let [Some(kind), Some(amount), Some(after), Some(at), Some(reference)] = [(); 5].map(|()| parts.next()) else {
                        return Err(unreadable());
                    };
                    let (kind, reference) = match kind {
                        b"g" => (0, Value::Text(text(reference)?)),
                        b"d" => (1, Value::Blob(reference.to_vec())),
                        b"a" => (2, Value::Text(text(reference)?)),
                        _ => return Err(unreadable()),
                    };
                    rows.put(
                        "INSERT INTO ledger (client, seq, kind, amount, balance_after, at, reference) \
                         VALUES ((SELECT row FROM clients WHERE client_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7)",
                        params![
                            id.as_str(),
                            i64::try_from(seq).unwrap_or(i64::MAX),
                            kind,
                            text(amount)?,
                            text(after)?,
                            text(at)?,
                            reference
                        ],
                    )?;
                }
                Ok(())
            })
            .await?;
    }
}

/// The ids of a list of a client with when each was created, in the order of their places.
async fn listed(origin: &Origin, name: &[u8]) -> Result<Vec<(Vec<u8>, i64)>, StoreError> {
    let mut listed = Vec::new();
    for (id, place) in pairs(origin.read(cmd("HGETALL").arg(name)).await?)? {
        let place = text(&place)?;
        let (created_at, place) = place.split_once(' ').ok_or_else(unreadable)?;
        let (created_at, place): (i64, u64) = (created_at.parse().map_err(|_| unreadable())?, place.parse().map_err(|_| unreadable())?);
        listed.push((place, id, created_at));
    }
    listed.sort_unstable();
    Ok(listed.into_iter().map(|(_, id, created_at)| (id, created_at)).collect())
}

async fn apps(origin: &Origin, store: &NewStore, client: &ClientId) -> Result<(), StoreError> {
    let listed = listed(origin, &keys::apps_of_client(client)).await?;
    let mut found = Vec::new();
    for (id, created_at) in listed {
        let id: AppId = text(&id)?.parse().map_err(|_| unreadable())?;
        found.extend(origin.hashes(vec![keys::app(&id)]).await?.pop().map(|app| (id, created_at, app)));
    }
    let client = client.clone();
    store
        .write(move |rows| {
            for (id, created_at, app) in found {
                rows.put(
                    "INSERT INTO apps (app_id, client, created_at, record, urls) \
                     VALUES (?1, (SELECT row FROM clients WHERE client_id = ?2), ?3, ?4, ?5)",
                    params![id.as_str(), client.as_str(), created_at, app.bytes("r"), app.bytes("w")],
                )?;
            }
            Ok(())
        })
        .await
}

async fn api_keys(origin: &Origin, store: &NewStore, client: &ClientId) -> Result<(), StoreError> {
    let mut found = Vec::new();
    for (id, _) in listed(origin, &keys::keys_of_client(client)).await? {
        let digest = origin.read(cmd("GET").arg([b"kid:", id.as_slice()].concat())).await?.text()?.ok_or_else(unreadable)?;
        found.extend(origin.hashes(vec![keys::key(&digest)]).await?);
    }
    let client = client.clone();
    store
        .write(move |rows| {
            for key in found {
                let digest = keys::parse_digest(parts(&key.name).1).ok_or_else(unreadable)?;
                rows.put(
                    "INSERT INTO keys (key_id, digest, client, label, environments, created_at, expires_at, revoked_at) \
                     VALUES (?1, ?2, (SELECT row FROM clients WHERE client_id = ?3), ?4, ?5, ?6, ?7, ?8)",
                    params![
                        key.text("i"),
                        digest.0,
                        client.as_str(),
                        key.text("l"),
                        key.text("e"),
                        key.number("t"),
                        key.number("x"),
                        key.number("v")
                    ],
                )?;
            }
            Ok(())
        })
        .await
}

pub(super) async fn operators(origin: &Origin, store: &NewStore) -> Result<(), StoreError> {
    let all = pairs(origin.read(cmd("HGETALL").arg(keys::operators())).await?)?;
    let revoked = pairs(origin.read(cmd("HGETALL").arg(keys::revoked_operators())).await?)?;
    let mut found = Vec::new();
    for (id, record) in all {
        let (token, sealed) = record.split_at_checked(TOKEN).ok_or_else(unreadable)?;
        let name: OperatorId = text(&id)?.parse().map_err(|_| unreadable())?;
        let created_at = open_operator(&origin.shared.vault, &name, sealed)?.created_at.millis();
        let revoked_at = revoked.get(&id).map(|at| text(at)).transpose()?;
        found.push((name, token.to_vec(), created_at, revoked_at, sealed.to_vec()));
    }
    store
        .write(move |rows| {
            for (id, token, created_at, revoked_at, sealed) in found {
                rows.put(
                    "INSERT INTO operators (operator_id, token, created_at, revoked_at, box) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id.as_str(), token, created_at, revoked_at, sealed],
                )?;
            }
            Ok(())
        })
        .await?;
    audit_log(origin, store).await
}

async fn audit_log(origin: &Origin, store: &NewStore) -> Result<(), StoreError> {
    let mut from = 0;
    loop {
        let entries = origin.entries(&keys::audit_log(), from).await?;
        if entries.is_empty() {
            return Ok(());
        }
        from += entries.len();
        store
            .write(move |rows| {
                for entry in entries {
                    // The number, the hash before, its own hash, and what is sealed.
                    let (number, rest) = entry.split_first_chunk::<8>().ok_or_else(unreadable)?;
                    let (previous, rest) = rest.split_first_chunk::<32>().ok_or_else(unreadable)?;
                    let (hash, sealed) = rest.split_first_chunk::<32>().ok_or_else(unreadable)?;
                    rows.put(
                        "INSERT INTO audit_log (number, previous, hash, box) VALUES (?1, ?2, ?3, ?4)",
                        params![i64::from_be_bytes(*number), previous, hash, sealed],
                    )?;
                }
                Ok(())
            })
            .await?;
    }
}

pub(super) async fn sessions(
    origin: &Origin,
    names: Vec<Vec<Vec<u8>>>,
    store: &NewStore,
    told: &mut impl FnMut(usize),
) -> Result<(), StoreError> {
    for names in names {
        told(names.len());
        let found: Vec<Record> = origin.hashes(names).await?;
        store
            .write(move |rows| {
                for session in found {
                    let digest = keys::parse_digest(parts(&session.name).1).ok_or_else(unreadable)?;
                    rows.put(
                        "INSERT INTO sessions (digest, idle_until, ends_at, box) VALUES (?1, ?2, ?3, ?4)",
                        params![digest.0, session.number("u"), session.number("x"), session.bytes("s")],
                    )?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn refusals(
    origin: &Origin,
    names: Vec<Vec<Vec<u8>>>,
    store: &NewStore,
    told: &mut impl FnMut(usize),
) -> Result<(), StoreError> {
    for name in names.into_iter().flatten() {
        told(1);
        let (app, members) = (parts(&name).1.to_owned(), origin.members(&name).await?);
        store
            .write(move |rows| {
                for (sealed, at) in members {
                    rows.put("INSERT INTO refusals (app, at, box) VALUES (?1, ?2, ?3)", params![app, at, sealed])?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

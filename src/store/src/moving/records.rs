//! Transactions, events with their guests, flows with their reports, kept answers and credentials.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, params};
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, Partition, TxnId};

use super::outbox::Delivery;
use super::people::sorted;
use super::source::{Entries, Pieces, Sink, hash, number, optional_number, parsed, text};
use super::{Content, MovedKey};
use crate::error::StoreError;
use crate::redis::keys;
use crate::upkeep::Retention;

fn millis(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn transactions(connection: &Connection, retention: Retention, entries: &Entries, sink: Sink<'_>) -> Result<(), StoreError> {
    let sql = "SELECT t.id, c.client_id, t.app, e.id, t.opened_at, t.expires_at, t.terms, coalesce(d.origin, t.origin), \
         r.verified_at, r.passed, r.refused, r.answer, CASE WHEN r.registration IS NULL THEN r.outcome ELSE g.outcome END, r.until, \
         d.address, d.id, d.claimed_at, d.outcome, d.status, d.duration_ms \
         FROM transactions t JOIN clients c ON c.row = t.client LEFT JOIN events e ON e.row = t.event LEFT JOIN results r ON r.txn = t.row \
         LEFT JOIN registrations g ON g.row = r.registration LEFT JOIN deliveries d ON d.txn = t.row ORDER BY t.row";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id = TxnId::from_bytes(row.get(0)?);
        let event: Option<[u8; 12]> = row.get(3)?;
        let (expires_at, until): (i64, Option<i64>) = (row.get(5)?, row.get(13)?);
        let delivery = Delivery::read(row, 15, entries)?;
        // It stays until its delivery has ended.
        let waits = delivery.as_ref().is_some_and(Delivery::waits);
        let end = until.unwrap_or_else(|| expires_at.saturating_add(millis(retention.expired)));
        let verified: Option<i64> = row.get(8)?;
        let mut found = vec![
            ("c", Some(row.get::<_, String>(1)?.into_bytes())),
            ("a", Some(row.get::<_, String>(2)?.into_bytes())),
            ("e", event.map(|event| EventId::from_bytes(event).to_string().into_bytes())),
            ("o", optional_number(row, 4)?),
            ("x", optional_number(row, 5)?),
            ("s", row.get(6)?),
            ("g", row.get::<_, Option<String>>(7)?.map(String::into_bytes)),
            // No node has a copy of it.
            ("m", verified.is_none().then(Vec::new)),
            ("v", verified.map(number)),
            ("p", optional_number(row, 9)?),
            ("f", optional_number(row, 10)?),
            ("d", row.get(11)?),
            ("r", verified.is_some().then(|| row.get(12)).transpose()?),
            ("u", until.map(number)),
            ("h", row.get(14)?),
        ];
        found.extend(delivery.into_iter().flat_map(Delivery::fields));
        let fields = found.into_iter().filter_map(|(field, value)| Some((field.as_bytes().to_vec(), value?))).collect();
        let expires_at = (!waits).then_some(end);
        sink(MovedKey { kind: "transactions", name: keys::transaction(id), content: Content::Hash(fields), expires_at })?;
    }
    Ok(())
}

/// The events of an app: by creation, and by when they go.
#[derive(Default)]
struct Lists {
    created: BTreeMap<Vec<u8>, i64>,
    ends: BTreeMap<Vec<u8>, i64>,
}

pub(super) fn events(connection: &Connection, retention: Retention, now: i64, sink: Sink<'_>) -> Result<(), StoreError> {
    let sql = "SELECT e.row, e.id, c.client_id, e.app, e.created_at, e.is_active, e.expires_at, e.max_guests, e.registrations, e.scans, \
         e.abandoned, e.settled_at, e.origin, e.webhook, e.terms, e.keep_ms FROM events e JOIN clients c ON c.row = e.client \
         WHERE e.closing = 0 ORDER BY c.client_id, e.created_at, e.row";
    let (mut numbers, mut lists): (HashMap<String, u64>, HashMap<AppId, (Partition, Lists)>) = (HashMap::new(), HashMap::new());
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (place, id): (i64, EventId) = (row.get(0)?, EventId::from_bytes(row.get(1)?));
        let (client, app): (ClientId, AppId) = (parsed(row, 2)?, parsed(row, 3)?);
        let (partition, expires_at): (Partition, i64) = (id.partition(), row.get(6)?);
        let order = numbers.entry(client.as_str().to_owned()).or_default();
        *order += 1;
        let order = format!("{order:012}");
        let mut waiting = BTreeMap::new();
        let waits = "SELECT id, expires_at FROM transactions WHERE event = ?1 AND completed = 0 AND expires_at > ?2";
        let mut scans = connection.prepare_cached(waits)?;
        let mut scans = scans.query(params![place, row.get::<_, i64>(11)?])?;
        while let Some(scan) = scans.next()? {
            waiting.insert(scan.get::<_, Vec<u8>>(0)?, scan.get(1)?);
        }
        let keep = row.get::<_, Option<i64>>(15)?.unwrap_or(i64::MAX).min(millis(retention.events));
        let last = waiting.values().max().map_or(0, |last: &i64| last.saturating_add(millis(retention.expired)));
        let gone_at = expires_at.saturating_add(keep).max(last);
        if gone_at <= now {
            continue;
        }
        let found = [
            ("c", Some(client.as_str().as_bytes().to_vec())),
            ("a", Some(app.as_str().as_bytes().to_vec())),
            ("t", optional_number(row, 4)?),
            ("i", Some(order.clone().into_bytes())),
            ("s", row.get(14)?),
            ("y", optional_number(row, 5)?),
            ("x", Some(number(expires_at))),
            ("m", optional_number(row, 7)?),
            ("r", optional_number(row, 8)?),
            ("n", optional_number(row, 9)?),
            ("b", optional_number(row, 10)?),
            ("o", row.get::<_, Option<String>>(12)?.map(String::into_bytes)),
            ("h", row.get(13)?),
        ];
        let [event, registrations, scans] = keys::event(partition, Some(id));
        sink(hash("events", event, found, Some(gone_at)))?;
        sorted("events", scans, waiting, Some(gone_at), sink)?;
        guests(connection, place, registrations, gone_at, sink)?;
        let (_, listed) = lists.entry(app).or_insert_with(|| (partition, Lists::default()));
        let member = [order.as_bytes(), id.to_string().as_bytes()].concat();
        listed.created.insert(member.clone(), row.get(4)?);
        listed.ends.insert(member, gone_at);
    }
    for (app, (partition, Lists { created, ends })) in lists {
        let until = ends.values().max().copied();
        let [events_of_app, ends_of_app] = keys::events_of_app(partition, &app);
        sorted("events", events_of_app, created, until, sink)?;
        sorted("events", ends_of_app, ends, until, sink)?;
        // A list of events is found by the partition of its app, also where there is no record of the app.
        if !connection.prepare_cached("SELECT 1 FROM apps WHERE app_id = ?1")?.exists([app.as_str()])? {
            sink(hash("apps", keys::app(&app), [("p", Some(number(partition.number().into())))], None))?;
        }
    }
    Ok(())
}

fn guests(connection: &Connection, event: i64, name: Vec<u8>, gone_at: i64, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut pieces = Pieces::of("guests", name, Some(gone_at));
    let mut statement = connection.prepare_cached("SELECT txn, verified_at, outcome FROM registrations WHERE event = ?1 ORDER BY seq")?;
    let mut rows = statement.query([event])?;
    while let Some(row) = rows.next()? {
        let (txn, at, outcome): (Vec<u8>, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        pieces.push([&txn, number(at).as_slice(), b" ", &outcome].concat(), sink)?;
    }
    pieces.end(sink)
}

/// The flows of a partition whose invitation is open, by when it ends, and until when the last of them is kept.
struct Lapsing {
    partition: Partition,
    flows: BTreeMap<Vec<u8>, i64>,
    last: i64,
}

pub(super) fn flows(connection: &Connection, entries: &Entries, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut lapsing: BTreeMap<u8, Lapsing> = BTreeMap::new();
    let sql = "SELECT row, id, app, standing, version, until, latest, lapses_at FROM flows ORDER BY row";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (place, id, until): (i64, _, i64) = (row.get(0)?, FlowId::from_bytes(row.get(1)?), row.get(5)?);
        let mut fields: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::from([
            (b"a".to_vec(), row.get::<_, String>(2)?.into_bytes()),
            (b"s".to_vec(), row.get(3)?),
            (b"z".to_vec(), number(row.get(4)?)),
            (b"u".to_vec(), number(until)),
        ]);
        fields.extend(row.get::<_, Option<Vec<u8>>>(6)?.map(|latest| (b"l".to_vec(), latest)));
        let named = |kind: &[u8], name: Vec<u8>| [kind, &name].concat();
        let mut fetches = connection.prepare_cached("SELECT name, standing FROM fetches WHERE flow = ?1")?;
        let mut fetches = fetches.query([place])?;
        while let Some(fetch) = fetches.next()? {
            fields.insert(named(b"d", fetch.get(0)?), fetch.get(1)?);
        }
        let mut webhooks =
            connection.prepare_cached("SELECT p.name, d.tells FROM reports p JOIN deliveries d ON d.report = p.row WHERE p.flow = ?1")?;
        let mut webhooks = webhooks.query([id.as_bytes()])?;
        while let Some(webhook) = webhooks.next()? {
            fields.insert(named(b"w", webhook.get(0)?), webhook.get::<_, Option<String>>(1)?.unwrap_or_default().into_bytes());
        }
        sink(MovedKey { kind: "flows", name: keys::flow(id), content: Content::Hash(fields), expires_at: Some(until) })?;
        if let Some(at) = row.get::<_, Option<i64>>(7)? {
            let of_partition = lapsing.entry(id.partition().number()).or_insert_with(|| Lapsing {
                partition: id.partition(),
                flows: BTreeMap::new(),
                last: 0,
            });
            of_partition.flows.insert(id.as_bytes().to_vec(), at);
            of_partition.last = until.max(of_partition.last);
        }
    }
    for Lapsing { partition, flows, last } in lapsing.into_values() {
        sorted("flows", keys::lapsing(partition), flows, Some(last), sink)?;
    }
    reports(connection, entries, sink)
}

fn reports(connection: &Connection, entries: &Entries, sink: Sink<'_>) -> Result<(), StoreError> {
    let sql = "SELECT p.flow, p.name, p.until, p.payload, d.origin, d.address, d.queued_at, d.id, d.claimed_at, d.outcome, d.status, \
         d.duration_ms FROM reports p LEFT JOIN deliveries d ON d.report = p.row ORDER BY p.row";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (flow, name, until): (_, _, i64) = (FlowId::from_bytes(row.get(0)?), DedupDigest(row.get(1)?), row.get(2)?);
        let delivery = Delivery::read(row, 7, entries)?;
        let waits = delivery.as_ref().is_some_and(Delivery::waits);
        let mut found = vec![
            ("r", Some(row.get(3)?)),
            ("u", Some(number(until))),
            ("g", row.get::<_, Option<String>>(4)?.map(String::into_bytes)),
            ("h", row.get(5)?),
            ("v", optional_number(row, 6)?),
        ];
        found.extend(delivery.into_iter().flat_map(Delivery::fields));
        let fields = found.into_iter().filter_map(|(field, value)| Some((field.as_bytes().to_vec(), value?))).collect();
        let expires_at = (!waits).then_some(until);
        sink(MovedKey { kind: "reports of flows", name: keys::report(flow, name), content: Content::Hash(fields), expires_at })?;
    }
    Ok(())
}

/// The partition that an id of any kind begins with.
fn partition_of(id: &[u8]) -> Result<Partition, StoreError> {
    let number = id.first().map(|byte| byte >> 2);
    keys::partitions().find(|partition| Some(partition.number()) == number).ok_or_else(|| StoreError::unreadable("an id"))
}

pub(super) fn others(connection: &Connection, sink: Sink<'_>) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT scope, request, subject, until, answer FROM idempotency")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (scope, subject, until): ([u8; 32], Vec<u8>, i64) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let name = keys::idempotency(partition_of(&subject)?, Some(&scope));
        let found = [("s", Some(subject)), ("q", row.get(1)?), ("a", row.get(4)?), ("u", Some(number(until)))];
        sink(hash("kept answers", name, found, Some(until)))?;
    }
    let mut statement = connection.prepare("SELECT digest, txn, until FROM credentials")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (txn, until): (Vec<u8>, i64) = (row.get(1)?, row.get(2)?);
        // As a call would have written it that no node repeats.
        let memory = [&txn, [0; 16].as_slice(), b"0", &number(until)].concat();
        sink(text("credentials", keys::credential(&row.get(0)?), memory, Some(until)))?;
    }
    let mut statement = connection.prepare("SELECT name, flow, until FROM webhook_names")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let flow: Vec<u8> = row.get(1)?;
        let name = keys::webhook(partition_of(&flow)?, DedupDigest(row.get(0)?));
        sink(text("names of webhooks", name, flow, Some(row.get(2)?)))?;
    }
    let mut statement = connection.prepare("SELECT since, kid FROM intent_key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let chosen = format!("{} {}", row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
        sink(text("intent key", keys::intent_key(), chosen.into_bytes(), None))?;
    }
    Ok(())
}

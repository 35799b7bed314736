//! Transactions, events with their guests, flows with their reports, kept answers and credentials.

use std::collections::{BTreeSet, HashMap};

use redis::cmd;
use rusqlite::params;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::ids::{EventId, Partition, TxnId};

use super::file::{NewStore, Rows};
use super::origin::{BATCH, Origin, Record, parts};
use super::same::{PLACE, Settled};
use crate::error::StoreError;
use crate::redis::{delivery_id, keys};
use crate::sealing::{open_event, open_of_flow};

/// Names in pieces.
type Pieces = Vec<Vec<Vec<u8>>>;

fn unreadable() -> StoreError {
    StoreError::unreadable("a key of the origin")
}

/// The events of the apps, in their order.
pub(super) async fn events(origin: &Origin, lists: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<Settled, StoreError> {
    let mut settled = Settled::default();
    for list in lists.into_iter().flatten() {
        let listed = origin.members(&list).await?.into_iter().map(|(member, _)| member);
        let ids: Vec<EventId> = listed
            .map(|member| {
                let id = member.get(PLACE..).and_then(|id| std::str::from_utf8(id).ok());
                id.and_then(|id| id.parse().ok()).ok_or_else(unreadable)
            })
            .collect::<Result<_, _>>()?;
        let mut place = 0;
        for ids in ids.chunks(BATCH) {
            let names = ids.iter().map(|id| keys::event(id.partition(), Some(*id))[0].clone()).collect();
            for event in origin.hashes(names).await? {
                settled.events.insert(parts(&event.name).1.to_owned());
                one_event(origin, event, place, store, &mut settled).await?;
                place += 1;
                told(1);
            }
        }
    }
    Ok(settled)
}

async fn one_event(origin: &Origin, event: Record, place: i64, store: &NewStore, settled: &mut Settled) -> Result<(), StoreError> {
    let id: EventId = event.id()?;
    let [_, registrations, waiting] = keys::event(id.partition(), Some(id));
    let scans = origin.members(&waiting).await?;
    // A scan whose transaction is gone was abandoned; whoever counts them would have noticed by now.
    let names = scans.iter().map(|(scan, _)| {
        let id = scan.as_slice().try_into().map(TxnId::from_bytes).map_err(|_| unreadable());
        id.map(|id| cmd("EXISTS").arg(keys::transaction(id)).to_owned())
    });
    let there = origin.read_all(names.collect::<Result<Vec<_>, _>>()?.into_iter()).await?;
    let (mut gone, mut first) = (BTreeSet::new(), None::<i64>);
    for ((scan, ends), there) in scans.into_iter().zip(there) {
        if there.succeeded()? {
            first = Some(first.map_or(ends, |first| first.min(ends)));
        } else {
            gone.insert(scan);
        }
    }
    // Those that wait end later than this, and the others were counted.
    let settled_at = first.map_or_else(|| SystemClock.now().millis(), |first| first - 1);
    let abandoned = event.number("b").unwrap_or(0) + i64::try_from(gone.len()).unwrap_or(i64::MAX);
    let terms = open_event(&origin.shared.vault, id, event.bytes("s").ok_or_else(unreadable)?)?;
    let keep = terms.retention.own_registrations().map(|keep| i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
    if !gone.is_empty() {
        settled.abandoned.insert(id.to_string(), gone);
    }
    store
        .write(move |rows| {
            rows.put(
                "INSERT INTO events (id, client, app, created_at, is_active, expires_at, max_guests, registrations, scans, abandoned, \
                 settled_at, origin, webhook, terms, keep_ms, place) VALUES (?1, (SELECT row FROM clients WHERE client_id = ?2), \
                 ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
                params![
                    id.as_bytes(),
                    event.text("c"),
                    event.text("a"),
                    event.number("t"),
                    event.number("y"),
                    event.number("x"),
                    event.number("m"),
                    event.number("r").unwrap_or(0),
                    event.number("n").unwrap_or(0),
                    abandoned,
                    settled_at,
                    event.text("o"),
                    event.bytes("h"),
                    event.bytes("s"),
                    keep,
                    place
                ],
            )
        })
        .await?;
    guests(origin, id, &registrations, store).await
}

async fn guests(origin: &Origin, event: EventId, list: &[u8], store: &NewStore) -> Result<(), StoreError> {
    let mut from = 0;
    loop {
        let entries = origin.entries(list, from).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let first = from + 1;
        from += entries.len();
        store
            .write(move |rows| {
                for (seq, entry) in (first..).zip(entries) {
                    let (txn, rest) = entry.split_first_chunk::<16>().ok_or_else(unreadable)?;
                    let blank = rest.iter().position(|byte| *byte == b' ').ok_or_else(unreadable)?;
                    let at = std::str::from_utf8(&rest[..blank]).map_err(|_| unreadable())?;
                    rows.put(
                        "INSERT INTO registrations (event, seq, txn, verified_at, outcome) \
                         VALUES ((SELECT row FROM events WHERE id = ?1), ?2, ?3, ?4, ?5)",
                        params![event.as_bytes(), i64::try_from(seq).unwrap_or(i64::MAX), txn, at, &rest[blank + 1..]],
                    )?;
                    rows.put("INSERT OR REPLACE INTO temp.guests (txn, row) VALUES (?1, ?2)", params![txn, rows.last()])?;
                }
                Ok(())
            })
            .await?;
    }
}

pub(super) async fn transactions(origin: &Origin, names: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    for names in names {
        told(names.len());
        let found = origin.hashes(names).await?;
        store.write(move |rows| found.iter().try_for_each(|transaction| one_transaction(rows, transaction))).await?;
    }
    Ok(())
}

fn one_transaction(rows: &Rows, found: &Record) -> Result<(), StoreError> {
    let id: TxnId = found.id()?;
    let event = found.text("e").map(str::parse::<EventId>).transpose().map_err(|_| unreadable())?;
    let verified_at = found.number("v");
    // That of a guest is its event's.
    let own = if event.is_some() { None } else { found.text("g") };
    rows.put(
        "INSERT INTO transactions (id, client, app, opened_at, expires_at, completed, origin, terms, event) VALUES \
         (?1, (SELECT row FROM clients WHERE client_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, (SELECT row FROM events WHERE id = ?9))",
        params![
            id.as_bytes(),
            found.text("c"),
            found.text("a"),
            found.number("o"),
            found.number("x"),
            verified_at.is_some(),
            own,
            found.bytes("s"),
            event.map(|event| event.as_bytes().to_vec())
        ],
    )?;
    let row = rows.last();
    if verified_at.is_some() {
        let is_guest = event.is_some() && found.number("p") == Some(1);
        let registration =
            if is_guest { rows.find("SELECT row FROM temp.guests WHERE txn = ?1", [id.as_bytes().as_slice()])? } else { None };
        let outcome = if registration.is_some() { Some([].as_slice()) } else { found.bytes("r") };
        rows.put(
            "INSERT INTO results (txn, verified_at, until, passed, answer, outcome, refused, registration) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![row, verified_at, found.number("u"), found.number("p"), found.bytes("d"), outcome, found.number("f"), registration],
        )?;
    }
    delivery(rows, found, id.partition(), Some(row), None)
}

/// The delivery of a transaction or a report, if it has one. Its id stays, because ids are in the order of all deliveries.
fn delivery(rows: &Rows, found: &Record, partition: Partition, txn: Option<i64>, report: Option<i64>) -> Result<(), StoreError> {
    let Some(entry) = found.text("i") else { return Ok(()) };
    let DeliveryId(id) = delivery_id::of_entry(partition, entry.as_bytes())?;
    let queued_at = if report.is_some() { found.number("v") } else { Some(delivery_id::queued_at(entry)?.millis()) };
    rows.put(
        "INSERT INTO deliveries (id, txn, report, origin, queued_at, claimed_at, outcome, status, duration_ms, address, tells) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT tells FROM temp.tellings WHERE report = ?11))",
        params![
            i64::try_from(id).map_err(|_| unreadable())?,
            txn,
            report,
            found.text("g"),
            queued_at,
            found.number("k"),
            found.text("w"),
            found.number("n"),
            found.number("l"),
            found.bytes("h"),
            found.name
        ],
    )
}

pub(super) async fn flows(origin: &Origin, names: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    let mut lapsing: HashMap<Vec<u8>, i64> = HashMap::new();
    for partition in keys::partitions() {
        lapsing.extend(origin.members(&keys::lapsing(partition)).await?);
    }
    for names in names {
        told(names.len());
        let mut ready = Vec::new();
        for flow in origin.hashes(names).await? {
            let id: FlowId = flow.id()?;
            let state: FlowState = open_of_flow(&origin.shared.vault, id, flow.bytes("s").ok_or_else(unreadable)?)?;
            ready.push((id, state.header().client.clone(), lapsing.get(id.as_bytes().as_slice()).copied(), flow));
        }
        store
            .write(move |rows| {
                for (id, client, lapses_at, flow) in ready {
                    rows.put(
                        "INSERT INTO flows (id, client, app, version, until, lapses_at, latest, standing) \
                         VALUES (?1, (SELECT row FROM clients WHERE client_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8)",
                        params![
                            id.as_bytes(),
                            client.as_str(),
                            flow.text("a"),
                            flow.number("z").unwrap_or(0),
                            flow.number("u"),
                            lapses_at,
                            flow.bytes("l"),
                            flow.bytes("s")
                        ],
                    )?;
                    let row = rows.last();
                    for (name, standing) in flow.named(b'd') {
                        rows.put("INSERT INTO fetches (flow, name, standing) VALUES (?1, ?2, ?3)", params![row, name, standing])?;
                    }
                    for (name, tells) in flow.named(b'w') {
                        let report = keys::report(id, DedupDigest(name.try_into().map_err(|_| unreadable())?));
                        let tells = std::str::from_utf8(tells).map_err(|_| unreadable())?;
                        rows.put("INSERT INTO temp.tellings (report, tells) VALUES (?1, nullif(?2, ''))", params![report, tells])?;
                    }
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn reports(origin: &Origin, names: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    for name in names.into_iter().flatten() {
        told(1);
        // Each may hold a document.
        let Some(report) = origin.hashes(vec![name]).await?.pop() else { continue };
        let (flow, name) = parts(&report.name).1.split_once(':').ok_or_else(unreadable)?;
        let flow: FlowId = flow.parse().map_err(|_| unreadable())?;
        let name = keys::parse_bytes(name).ok_or_else(unreadable)?;
        store
            .write(move |rows| {
                rows.put(
                    "INSERT INTO reports (flow, name, until, payload) VALUES (?1, ?2, ?3, ?4)",
                    params![flow.as_bytes(), name, report.number("u"), report.bytes("r")],
                )?;
                delivery(rows, &report, flow.partition(), None, Some(rows.last()))
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn kept_answers(origin: &Origin, names: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    for names in names {
        told(names.len());
        let found = origin.hashes(names).await?;
        store
            .write(move |rows| {
                for answer in found {
                    let scope = keys::parse_digest(parts(&answer.name).1).ok_or_else(unreadable)?;
                    rows.put(
                        "INSERT INTO idempotency (scope, request, subject, until, answer) VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![scope.0, answer.bytes("q"), answer.bytes("s"), answer.number("u"), answer.bytes("a")],
                    )?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn credentials(origin: &Origin, names: Pieces, store: &NewStore, told: &mut impl FnMut(usize)) -> Result<(), StoreError> {
    for names in names {
        told(names.len());
        let found = origin.read_all(names.iter().map(|name| cmd("GET").arg(name).to_owned())).await?;
        let mut memories = Vec::with_capacity(names.len());
        for (name, memory) in names.into_iter().zip(found) {
            memories.extend(memory.bytes()?.map(|memory| (name, memory)));
        }
        store
            .write(move |rows| {
                for (name, memory) in memories {
                    let digest = keys::parse_digest(parts(&name).1).ok_or_else(unreadable)?;
                    // The transaction, the call, a digit, and the end.
                    let (txn, until) = (memory.get(..16), memory.get(33..).and_then(|until| std::str::from_utf8(until).ok()));
                    rows.put("INSERT INTO credentials (digest, txn, until) VALUES (?1, ?2, ?3)", params![digest.0, txn, until])?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn webhook_names(
    origin: &Origin,
    names: Pieces,
    store: &NewStore,
    told: &mut impl FnMut(usize),
) -> Result<(), StoreError> {
    for names in names {
        told(names.len());
        let commands = names.iter().flat_map(|name| [cmd("GET").arg(name).to_owned(), cmd("PEXPIRETIME").arg(name).to_owned()]);
        let mut found = origin.read_all(commands).await?.into_iter();
        let mut ready = Vec::with_capacity(names.len());
        for name in names {
            let (Some(flow), Some(until)) = (found.next(), found.next()) else { return Err(unreadable()) };
            let until: i64 = until.parsed()?;
            ready.extend(flow.bytes()?.map(|flow| (name, flow, until)));
        }
        store
            .write(move |rows| {
                for (name, flow, until) in ready {
                    let digest = keys::parse_bytes(parts(&name).1).ok_or_else(unreadable)?;
                    rows.put("INSERT INTO webhook_names (name, flow, until) VALUES (?1, ?2, ?3)", params![digest, flow, until])?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(())
}

//! Erasing in small steps, so that other writes go on between them. What is large is searched by a reader.
//!
//! The writer overwrites what it deletes (`secure_delete`), and at the end the log is emptied: nothing of it is in the files then.

use std::collections::HashSet;

use rusqlite::params;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};

use super::credits::account;
use super::database::statements::Database;
use super::guests;
use super::rows::{parsed, time};
use super::store::EmbeddedStore;
use super::upkeep::{REMOVE, REMOVE_REPORT};
use crate::erasure::{Erased, Erasure, nothing_of};
use crate::error::{StoreError, StoreFuture};

/// Transactions, or flows, of one step.
const STEP: i64 = 100;
/// Guests of one step: each may have shared a photo.
const GUESTS: i64 = 16;
/// Kept answers that are looked at in one step.
const ANSWERS: i64 = 5_000;

const TRANSACTION: &str = "SELECT t.row, t.event, t.completed, t.expires_at, r.registration FROM transactions t \
     LEFT JOIN results r ON r.txn = t.row WHERE t.id = ?1";
const ABANDONED: &str = "UPDATE events SET abandoned = abandoned + 1 WHERE row = ?1";
/// What is there of a guest who was erased is always as long, and nothing else is so short.
const BLANK: &str = "UPDATE registrations SET outcome = ?2 WHERE row = ?1 AND length(outcome) <> length(?2)";
pub(crate) const REGISTRATION: &str = "SELECT row FROM registrations WHERE txn = ?1";
const EVENT: &str = "SELECT row FROM events WHERE id = ?1";
const CLOSE: &str = "UPDATE events SET closing = 1 WHERE row = ?1 AND closing = 0";
pub(crate) const OF_EVENT: &str = "SELECT row, id FROM transactions WHERE event = ?1 LIMIT ?2";
const GUESTS_OF_EVENT: &str = "DELETE FROM registrations WHERE row IN (SELECT row FROM registrations WHERE event = ?1 LIMIT ?2)";
const REMOVE_EVENT: &str = "DELETE FROM events WHERE row = ?1";
pub(crate) const EVENTS_OF_APP: &str = "SELECT id FROM events WHERE app = ?1";
pub(crate) const OF_APP: &str = "SELECT row, id FROM transactions WHERE app = ?1 AND row > ?2 ORDER BY row LIMIT ?3";
pub(crate) const FLOWS_OF_APP: &str = "SELECT row, id FROM flows WHERE app = ?1 AND row > ?2 ORDER BY row LIMIT ?3";
const FLOW: &str = "DELETE FROM flows WHERE id = ?1";
const FETCHES: &str = "DELETE FROM fetches WHERE flow IN (SELECT row FROM flows WHERE id = ?1)";
const REPORTS: &str = "SELECT row FROM reports WHERE flow = ?1";
const REFUSALS: &str = "DELETE FROM refusals WHERE app = ?1";
const APPS: &str = "SELECT app_id FROM apps WHERE client = ?1";
const KEPT: &str = "SELECT row, subject FROM idempotency WHERE row > ?1 ORDER BY row LIMIT ?2";
const REMOVE_ANSWER: &str = "DELETE FROM idempotency WHERE row = ?1";

/// The ids of what was erased: kept answers may tell of it.
type Ids = HashSet<Vec<u8>>;

impl Erasure for EmbeddedStore {
    fn erase(&self, subject: ErasureSubject) -> StoreFuture<Erased> {
        let store = self.clone();
        Box::pin(async move {
            let mut ids = Ids::new();
            let mut erased = match subject {
                ErasureSubject::Transaction(id) => store.erase_transaction(id, &mut ids).await?,
                ErasureSubject::Flow(id) => store.erase_flows(vec![id], &mut ids).await?,
                ErasureSubject::Event(id) => store.erase_event(id, &mut ids).await?,
                ErasureSubject::App(id) => store.erase_app(id, &mut ids).await?,
                ErasureSubject::Client(id) => store.erase_client(id, &mut ids).await?,
            };
            erased.answers = store.erase_answers(ids).await?;
            store.empty_log().await?;
            Ok(erased)
        })
    }
}

impl EmbeddedStore {
    async fn erase_transaction(&self, id: TxnId, ids: &mut Ids) -> Result<Erased, StoreError> {
        ids.insert(id.as_bytes().to_vec());
        let blank = nothing_of(self.vault(), id);
        let known = self.read(move |db| db.any(TRANSACTION, [id.as_bytes()])).await?;
        // The transaction may be gone long before its event is.
        let left = if known { None } else { self.read(move |db| db.first(REGISTRATION, [id.as_bytes()], |row| row.get(0))).await? };
        self.write(0, move |db| {
            let removed = remove(db, id)?;
            let registrations = match left.or(removed.registration) {
                Some(row) => db.change(BLANK, params![row, blank.as_bytes()])?,
                None => 0,
            };
            Ok(Erased { transactions: removed.transactions, registrations, ..Erased::default() })
        })
        .await
    }

    async fn erase_event(&self, id: EventId, ids: &mut Ids) -> Result<Erased, StoreError> {
        ids.insert(id.as_bytes().to_vec());
        let mut erased = Erased::default();
        let closed = self.write(0, move |db| {
            let Some(row) = db.first(EVENT, [id.as_bytes()], |row| row.get::<_, i64>(0))? else { return Ok(None) };
            db.change(CLOSE, [row])?;
            Ok(Some(row))
        });
        let Some(event) = closed.await? else { return Ok(erased) };
        // Whoever has begun cannot be registered any more once the transactions are gone.
        loop {
            let gone = self.write(0, move |db| {
                let found: Vec<TxnId> = db.all(OF_EVENT, params![event, STEP], |row| row.get(1).map(TxnId::from_bytes))?;
                found.iter().try_for_each(|id| remove(db, *id).map(drop))?;
                Ok(found)
            });
            let gone = gone.await?;
            if gone.is_empty() {
                break;
            }
            erased.transactions += gone.len() as u64;
            ids.extend(gone.iter().map(|id| id.as_bytes().to_vec()));
        }
        loop {
            let gone = self.write(0, move |db| db.change(GUESTS_OF_EVENT, params![event, GUESTS])).await?;
            if gone == 0 {
                break;
            }
            erased.registrations += gone;
        }
        erased.events = self.write(0, move |db| db.change(REMOVE_EVENT, [event])).await?;
        Ok(erased)
    }

    async fn erase_app(&self, app: AppId, ids: &mut Ids) -> Result<Erased, StoreError> {
        let mut erased = Erased::default();
        let asked = app.clone();
        let events = self.read(move |db| db.all(EVENTS_OF_APP, [asked.as_str()], |row| row.get(0).map(EventId::from_bytes)));
        for event in events.await? {
            erased += self.erase_event(event, ids).await?;
        }
        let mut after = 0;
        while let Some((last, found)) = self.page_of(OF_APP, &app, after, TxnId::from_bytes).await? {
            ids.extend(found.iter().map(|id| id.as_bytes().to_vec()));
            let removal = self.write(0, move |db| found.iter().try_fold(0, |sum, id| Ok(sum + remove(db, *id)?.transactions)));
            erased.transactions += removal.await?;
            after = last;
        }
        let mut after = 0;
        while let Some((last, found)) = self.page_of(FLOWS_OF_APP, &app, after, FlowId::from_bytes).await? {
            erased += self.erase_flows(found, ids).await?;
            after = last;
        }
        erased.refusals = self.write(0, move |db| db.change(REFUSALS, [app.as_str()])).await?;
        Ok(erased)
    }

    async fn erase_client(&self, client: ClientId, ids: &mut Ids) -> Result<Erased, StoreError> {
        let apps = self.read(move |db| match account(db, &client)? {
            Some(account) => db.all(APPS, [account.row], |row| parsed::<AppId>(row, 0)),
            None => Ok(vec![]),
        });
        let mut erased = Erased::default();
        for app in apps.await? {
            erased += self.erase_app(app, ids).await?;
        }
        Ok(erased)
    }

    async fn erase_flows(&self, flows: Vec<FlowId>, ids: &mut Ids) -> Result<Erased, StoreError> {
        ids.extend(flows.iter().map(|id| id.as_bytes().to_vec()));
        let flows = self.write(0, move |db| {
            let mut gone = 0;
            for id in &flows {
                let reports: Vec<i64> = db.all(REPORTS, [id.as_bytes()], |row| row.get(0))?;
                for report in &reports {
                    for sql in REMOVE_REPORT {
                        db.change(sql, [report])?;
                    }
                }
                db.change(FETCHES, [id.as_bytes()])?;
                gone += db.change(FLOW, [id.as_bytes()])?;
            }
            Ok(gone)
        });
        Ok(Erased { flows: flows.await?, ..Erased::default() })
    }

    /// The next rows of an app, with the last of them; `None` after the last ones.
    async fn page_of<T: Send + 'static>(
        &self,
        sql: &'static str,
        app: &AppId,
        after: i64,
        id: fn([u8; 16]) -> T,
    ) -> Result<Option<(i64, Vec<T>)>, StoreError> {
        let app = app.clone();
        let found =
            self.read(move |db| db.all(sql, params![app.as_str(), after, STEP], |row| Ok((row.get::<_, i64>(0)?, id(row.get(1)?)))));
        let (rows, ids): (Vec<i64>, Vec<T>) = found.await?.into_iter().unzip();
        Ok(rows.last().map(|last| (*last, ids)))
    }

    async fn erase_answers(&self, ids: Ids) -> Result<u64, StoreError> {
        let (mut erased, mut after) = (0, 0);
        loop {
            let found =
                self.read(move |db| db.all(KEPT, params![after, ANSWERS], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))));
            let found = found.await?;
            let Some((last, _)) = found.last() else { return Ok(erased) };
            after = *last;
            let rows: Vec<i64> = found.iter().filter(|(_, subject)| ids.contains(subject)).map(|(row, _)| *row).collect();
            if !rows.is_empty() {
                let removal = self.write(0, move |db| rows.iter().try_fold(0, |sum, row| Ok(sum + db.change(REMOVE_ANSWER, [row])?)));
                erased += removal.await?;
            }
        }
    }
}

struct Removed {
    transactions: u64,
    /// The row of its guest's registration.
    registration: Option<i64>,
}

/// Removes a transaction with its webhook. A scan that waits counts as abandoned.
fn remove(db: &Database, id: TxnId) -> rusqlite::Result<Removed> {
    let found = db.first(TRANSACTION, [id.as_bytes()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, bool>(2)?, time(row, 3)?, row.get(4)?))
    })?;
    let Some((row, event, is_completed, expires_at, registration)) = found else {
        return Ok(Removed { transactions: 0, registration: None });
    };
    if let Some(event) = event.filter(|_| !is_completed) {
        let now = db.now();
        guests::settle(db, event, now)?;
        if now < expires_at {
            db.change(ABANDONED, [event])?;
        }
    }
    for sql in REMOVE {
        db.change(sql, [row])?;
    }
    Ok(Removed { transactions: 1, registration })
}

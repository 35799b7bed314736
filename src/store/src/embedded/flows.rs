//! Flows: their rows, those of the fetches under them, and the reports of both.
//!
//! Reading and writing are two steps here, with the domain's decision on the caller's side between
//! them: sealing a signed document takes longer than the writer may be kept from others.

use std::sync::Arc;

use rusqlite::{Row, params};
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;

use super::idempotency::{Repetition, keep, repetition};
use super::job::Session;
use super::ledger::{account, signed, unsigned};
use super::{EmbeddedStore, deliveries, tenancy};
use crate::error::StoreError;
use crate::flows::reporting::{Change, Commit, Committed, Keeper, Kept};
use crate::flows::{OpenFlowOutcome, Opening, PROGRESS};
use crate::vault::Vault;

const KNOWN: &str = "SELECT 1 FROM flows WHERE id = ?1";
const OPEN: &str = "INSERT INTO flows (id, client, app, until, lapses_at, latest, standing) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(super) const FIND: &str = "SELECT f.standing, c.standing, f.version, f.until, f.latest FROM flows f \
     LEFT JOIN fetches c ON c.flow = f.row AND c.name = ?2 WHERE f.id = ?1 AND f.until > ?3";
const CHANGE_FLOW: &str = "UPDATE flows SET version = version + 1, until = ?3, lapses_at = ?4, latest = ?5, standing = ?6 \
     WHERE id = ?1 AND version = ?2 AND until > ?7";
const CHANGE_FETCH: &str = "UPDATE flows SET version = version + 1, until = ?3 WHERE id = ?1 AND version = ?2 AND until > ?4 RETURNING row";
const FETCH: &str = "INSERT OR REPLACE INTO fetches (flow, name, standing) VALUES (?1, ?2, ?3)";
const REPORT: &str =
    "INSERT INTO reports (flow, name, until, payload) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (flow, name) DO NOTHING RETURNING row";
pub(super) const OWNER: &str = "SELECT flow FROM webhook_names WHERE name = ?1 AND until > ?2";
const OWN: &str = "INSERT OR REPLACE INTO webhook_names (name, flow, until) VALUES (?1, ?2, ?3)";
const FORGET: &str = "DELETE FROM reports WHERE flow = ?1 AND name = ?2";
pub(super) const PAYLOAD: &str = "SELECT p.payload FROM reports p WHERE p.flow = ?1 AND p.name = ?2 AND (p.until > ?3 \
     OR EXISTS (SELECT 1 FROM deliveries d WHERE d.report = p.row AND d.outcome IS NULL))";
pub(super) const LAPSED: &str =
    "SELECT id FROM flows INDEXED BY flows_lapsing WHERE lapses_at <= ?1 AND until > ?1 ORDER BY lapses_at LIMIT ?2";

pub(super) fn open(session: &Session<'_>, opening: &Opening) -> rusqlite::Result<OpenFlowOutcome> {
    let Opening { id, client, app, standing, payload, until, lapses_at, idempotency } = opening;
    if session.first(KNOWN, [id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(OpenFlowOutcome::Opened);
    }
    match repetition(session, id.as_bytes(), idempotency.as_ref())? {
        Repetition::None => {}
        Repetition::OfThis => return Ok(OpenFlowOutcome::Opened),
        Repetition::OfAnother(answer) => return Ok(OpenFlowOutcome::Replayed(answer)),
        Repetition::WithAnotherBody => return Ok(OpenFlowOutcome::KeyReused),
    }
    let Some(client) = account(session, client)? else { return Ok(OpenFlowOutcome::ClientNotFound) };
    let (until, lapses_at) = (until.millis(), lapses_at.map(Timestamp::millis));
    let latest = payload.as_ref().map(|_| PROGRESS.0);
    session.change(OPEN, params![id.as_bytes(), client.row, app.as_str(), until, lapses_at, latest, standing])?;
    if let Some(payload) = payload {
        session.first(REPORT, params![id.as_bytes(), PROGRESS.0, until, payload], |_| Ok(()))?;
    }
    keep(session, id.as_bytes(), idempotency.as_ref())?;
    Ok(OpenFlowOutcome::Opened)
}

fn find(session: &Session<'_>, id: FlowId, fetch: Option<DedupDigest>) -> rusqlite::Result<Option<Kept>> {
    let now = session.now();
    let read = |row: &Row<'_>| {
        Ok(Kept {
            standing: row.get(0)?,
            fetch: row.get(1)?,
            version: unsigned(row, 2)?,
            until: Timestamp::from_millis(row.get(3)?),
            latest: row.get::<_, Option<_>>(4)?.map(DedupDigest),
            now,
        })
    };
    session.first(FIND, params![id.as_bytes(), fetch.map(|name| name.0), now.millis()], read)
}

pub(super) fn payload(session: &Session<'_>, id: FlowId, name: DedupDigest) -> rusqlite::Result<Option<Vec<u8>>> {
    session.first(PAYLOAD, params![id.as_bytes(), name.0, session.now().millis()], |row| row.get(0))
}

pub(super) fn lapsed(session: &Session<'_>, limit: usize) -> rusqlite::Result<Vec<FlowId>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    session.all(LAPSED, params![session.now().millis(), limit], |row| row.get(0).map(FlowId::from_bytes))
}

fn commit(session: &Session<'_>, commit: &Commit) -> rusqlite::Result<Committed> {
    let Commit { id, version, until, lapses_at, change, payload, payload_until, name, tells, target } = commit;
    let (id, now, version, until) = (id.as_bytes(), session.now(), signed(*version), until.millis());
    let webhook = *name != PROGRESS;
    if webhook && session.first(OWNER, params![name.0, now.millis()], |row| row.get::<_, [u8; 16]>(0))?.is_some_and(|owner| owner != *id) {
        return Ok(Committed::Taken);
    }
    match change {
        Change::Flow(standing) => {
            let row = params![id, version, until, lapses_at.map(Timestamp::millis), name.0, standing, now.millis()];
            if session.change(CHANGE_FLOW, row)? == 0 {
                return Ok(Committed::Overtaken);
            }
            // What polls showed until now gives way to this.
            session.change(FORGET, params![id, PROGRESS.0])?;
        }
        Change::Fetch(fetch, standing) => {
            let found = session.first(CHANGE_FETCH, params![id, version, until, now.millis()], |row| row.get::<_, i64>(0))?;
            let Some(flow) = found else { return Ok(Committed::Overtaken) };
            session.change(FETCH, params![flow, fetch.0, standing])?;
        }
    }
    if webhook {
        session.change(OWN, params![name.0, id, until])?;
    }
    let row = params![id, name.0, payload_until.millis(), payload];
    let Some(report) = session.first(REPORT, row, |row| row.get(0))? else {
        // Whatever the domain says, a key has one webhook.
        tracing::error!("a webhook that was queued before was not queued again");
        return Ok(Committed::Done(None));
    };
    let queued = target.as_ref().map(|target| deliveries::queue_report(session, report, tells, target, now)).transpose()?;
    Ok(Committed::Done(queued))
}

impl Keeper for EmbeddedStore {
    fn vault(&self) -> &Arc<Vault> {
        self.vault()
    }

    async fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<Kept>, StoreError> {
        self.read(move |session| find(session, id, fetch), |found, _| Ok(found)).await
    }

    async fn payload(&self, id: FlowId, name: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(move |session| payload(session, id, name), |found, _| Ok(found)).await
    }

    async fn deliveries(&self, id: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        self.read(move |session| deliveries::of_flow(session, id), |found, _| Ok(found)).await
    }

    async fn receiver(&self, app: AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        let unsealed = |found: Option<tenancy::SealedReceiver>, vault: &Vault| found.map(|found| found.unsealed(vault)).transpose();
        self.read(move |session| tenancy::receiver(session, &app), unsealed).await
    }

    async fn commit(&self, change: Commit) -> Result<Committed, StoreError> {
        self.write(change.payload.len(), move |session| commit(session, &change), |done, _| Ok(done)).await
    }
}

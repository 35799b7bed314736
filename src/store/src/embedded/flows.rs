//! Flows: their rows, the rows of the fetches under them, and the reports of both.
//!
//! Reading and writing are two steps here, with the domain's decision on the caller's side between
//! them, because sealing a signed document takes too long for the writer's thread.

use std::time::Duration;

use rusqlite::{Row, params};
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::rows::{signed, time, unsigned};
use super::store::EmbeddedStore;
use super::{idempotency, outbox, tenancy};
use crate::error::{StoreError, StoreFuture};
use crate::flows::encoding::{PROGRESS, SealedOpening};
use crate::flows::reporting::{self, Change, Commit, CommitOutcome, FlowStorage, StoredFlow};
use crate::flows::{FlowDeliveries, FlowRecord, Flows, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, SealedPayload};
use crate::idempotency::CreateOutcome;
use crate::sealing::open_of_flow;
use crate::vault::Vault;

const KNOWN: &str = "SELECT 1 FROM flows WHERE id = ?1";
const OPEN: &str = "INSERT INTO flows (id, client, app, until, lapses_at, latest, standing) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const FIND: &str = "SELECT f.standing, c.standing, f.version, f.until, f.latest FROM flows f \
     LEFT JOIN fetches c ON c.flow = f.row AND c.name = ?2 WHERE f.id = ?1 AND f.until > ?3";
const CHANGE_FLOW: &str = "UPDATE flows SET version = version + 1, until = ?3, lapses_at = ?4, latest = ?5, standing = ?6 \
     WHERE id = ?1 AND version = ?2 AND until > ?7";
const CHANGE_FETCH: &str = "UPDATE flows SET version = version + 1, until = ?3 WHERE id = ?1 AND version = ?2 AND until > ?4 RETURNING row";
const FETCH: &str = "INSERT OR REPLACE INTO fetches (flow, name, standing) VALUES (?1, ?2, ?3)";
const REPORT: &str =
    "INSERT INTO reports (flow, name, until, payload) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (flow, name) DO NOTHING RETURNING row";
pub(crate) const OWNER: &str = "SELECT flow FROM webhook_names WHERE name = ?1 AND until > ?2";
const OWN: &str = "INSERT OR REPLACE INTO webhook_names (name, flow, until) VALUES (?1, ?2, ?3)";
const FORGET: &str = "DELETE FROM reports WHERE flow = ?1 AND name = ?2";
pub(crate) const PAYLOAD: &str = "SELECT p.payload FROM reports p WHERE p.flow = ?1 AND p.name = ?2 AND (p.until > ?3 \
     OR EXISTS (SELECT 1 FROM deliveries d WHERE d.report = p.row AND d.outcome IS NULL))";
pub(crate) const LAPSED: &str =
    "SELECT id FROM flows INDEXED BY flows_lapsing WHERE lapses_at <= ?1 AND until > ?1 ORDER BY lapses_at LIMIT ?2";

impl Flows for EmbeddedStore {
    fn open_flow(&self, flow: OpenFlow) -> StoreFuture<CreateOutcome> {
        let sealed = SealedOpening::of(self.vault(), &flow);
        self.write_sealed(sealed, SealedOpening::weight, move |db, sealed| open(db, &flow, sealed))
    }

    fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        Box::pin(reporting::report(self.clone(), report))
    }

    fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome> {
        Box::pin(reporting::lapse(self.clone(), id, result_ttl))
    }

    fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>> {
        self.read(move |db| db.all(LAPSED, params![db.now().millis(), signed(limit)], |row| row.get(0).map(FlowId::from_bytes)))
    }

    fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>> {
        Box::pin(reporting::load(self.clone(), id, app))
    }

    fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        Box::pin(reporting::deliveries(self.clone(), id))
    }

    fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<SealedPayload>> {
        self.read(move |db| Ok(payload(db, flow, webhook)?.map(|payload| SealedPayload::new(flow, webhook, payload))))
    }
}

fn open(db: &Database, open: &OpenFlow, sealed: &SealedOpening) -> rusqlite::Result<CreateOutcome> {
    let (OpenFlow { flow, until, idempotency, .. }, SealedOpening { state, payload }) = (open, sealed);
    let FlowHeader { id, client, app, .. } = flow.header();
    idempotency::create(db, KNOWN, id.as_bytes(), client, idempotency.as_ref(), |client| {
        let (until, lapses_at) = (until.millis(), flow.deadline().map(Timestamp::millis));
        let latest = payload.as_ref().map(|_| PROGRESS.0);
        db.change(OPEN, params![id.as_bytes(), client, app.as_str(), until, lapses_at, latest, state])?;
        if let Some(payload) = payload {
            db.first(REPORT, params![id.as_bytes(), PROGRESS.0, until, payload], |_| Ok(()))?;
        }
        Ok(true)
    })
}

fn find(db: &Database, id: FlowId, fetch: Option<DedupDigest>) -> rusqlite::Result<Option<StoredFlow>> {
    let now = db.now();
    let read = |row: &Row<'_>| {
        Ok(StoredFlow {
            state: open_of_flow(&db.vault, id, row.get_ref(0)?.as_blob()?)?,
            fetch: row.get_ref(1)?.as_blob_or_null()?.map(|fetch| open_of_flow(&db.vault, id, fetch)).transpose()?,
            version: unsigned(row, 2)?,
            until: time(row, 3)?,
            latest: row.get::<_, Option<_>>(4)?.map(DedupDigest),
            now,
        })
    };
    db.first(FIND, params![id.as_bytes(), fetch.map(|name| name.0), now.millis()], read)
}

fn payload(db: &Database, id: FlowId, name: DedupDigest) -> rusqlite::Result<Option<Vec<u8>>> {
    db.first(PAYLOAD, params![id.as_bytes(), name.0, db.now().millis()], |row| row.get(0))
}

fn commit(db: &Database, commit: &Commit) -> rusqlite::Result<CommitOutcome> {
    let Commit { id, version, until, lapses_at, change, payload, payload_until, name, tells, target } = commit;
    let (id, now, version, until) = (id.as_bytes(), db.now(), signed(*version), until.millis());
    let webhook = *name != PROGRESS;
    if webhook && db.first(OWNER, params![name.0, now.millis()], |row| row.get::<_, [u8; 16]>(0))?.is_some_and(|owner| owner != *id) {
        return Ok(CommitOutcome::KeyTaken);
    }
    match change {
        Change::Flow(state) => {
            let row = params![id, version, until, lapses_at.map(Timestamp::millis), name.0, state, now.millis()];
            if db.change(CHANGE_FLOW, row)? == 0 {
                return Ok(CommitOutcome::Conflict);
            }
            // Polls show the new payload instead of this one.
            db.change(FORGET, params![id, PROGRESS.0])?;
        }
        Change::Fetch(fetch, state) => {
            let found = db.first(CHANGE_FETCH, params![id, version, until, now.millis()], |row| row.get::<_, i64>(0))?;
            let Some(flow) = found else { return Ok(CommitOutcome::Conflict) };
            db.change(FETCH, params![flow, fetch.0, state])?;
        }
    }
    if webhook {
        db.change(OWN, params![name.0, id, until])?;
    }
    let row = params![id, name.0, payload_until.millis(), payload];
    let Some(report) = db.first(REPORT, row, |row| row.get(0))? else {
        // A key has one webhook at most, whatever the domain decided.
        tracing::error!("a webhook that was queued before was not queued again");
        return Ok(CommitOutcome::Done(None));
    };
    let queued = target.as_ref().map(|target| outbox::queue_report(db, report, tells, target, now)).transpose()?;
    Ok(CommitOutcome::Done(queued))
}

impl FlowStorage for EmbeddedStore {
    fn vault(&self) -> &Vault {
        self.vault()
    }

    async fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<StoredFlow>, StoreError> {
        self.read(move |db| find(db, id, fetch)).await
    }

    async fn payload(&self, id: FlowId, name: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(move |db| payload(db, id, name)).await
    }

    async fn deliveries(&self, id: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        self.read(move |db| outbox::of_flow(db, id)).await
    }

    async fn receiver(&self, app: AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        self.read(move |db| tenancy::receiver(db, &app)).await
    }

    async fn commit(&self, change: Commit) -> Result<CommitOutcome, StoreError> {
        self.write(change.payload.len(), move |db| commit(db, &change)).await
    }
}

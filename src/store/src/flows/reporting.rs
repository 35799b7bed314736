//! Taking a report in, on any store: read, let the domain decide, write unless overtaken.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::{DeliveryId, FlowDelivery, QueuedDelivery, Subject};
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::{FetchState, FlowState, NextState};
use sakshi_domain::flow::reported::AdmittedReport;
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::flow::webhook_target::WebhookTarget;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::AppId;
use sakshi_domain::payload::esign::EsignPayload;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;

use super::record::{FlowDeliveries, FlowRecord, SealedPayload};
use super::transition::{LapseFlowOutcome, ReportFlow, ReportFlowOutcome};
use super::written::{PROGRESS, digest_of, measured, sealed};
use crate::error::StoreError;
use crate::sealing::{open_of_flow, seal_of_flow};
use crate::vault::Vault;

/// Attempts at a report that others overtake.
const ATTEMPTS: usize = 64;

/// What a store reads and writes of flows.
pub(crate) trait Keeper: Send + Sync + 'static {
    fn vault(&self) -> &Arc<Vault>;
    /// The flow, with the fetch of this name.
    fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> impl Future<Output = Result<Option<Kept>, StoreError>> + Send;
    /// The box of a payload.
    fn payload(&self, id: FlowId, name: DedupDigest) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;
    /// What was queued of a flow, in any order.
    fn deliveries(&self, id: FlowId) -> impl Future<Output = Result<Vec<FlowDelivery>, StoreError>> + Send;
    /// The app, and what it has registered.
    fn receiver(&self, app: AppId) -> impl Future<Output = Result<Option<(App, RegisteredUrls)>, StoreError>> + Send;
    /// Writes all of it, or nothing when the flow has changed since it was read.
    fn commit(&self, commit: Commit) -> impl Future<Output = Result<Committed, StoreError>> + Send;
}

/// A flow as it was read.
pub(crate) struct Kept {
    pub(crate) standing: Vec<u8>,
    pub(crate) fetch: Option<Vec<u8>>,
    /// Rises with every change.
    pub(crate) version: u64,
    pub(crate) until: Timestamp,
    /// The name of the payload that polls show.
    pub(crate) latest: Option<DedupDigest>,
    /// The store's time.
    pub(crate) now: Timestamp,
}

/// What a report changes, ready to be written.
pub(crate) struct Commit {
    pub(crate) id: FlowId,
    /// What was decided on.
    pub(crate) version: u64,
    pub(crate) until: Timestamp,
    pub(crate) lapses_at: Option<Timestamp>,
    pub(crate) change: Change,
    pub(crate) payload: Vec<u8>,
    pub(crate) payload_until: Timestamp,
    /// [`PROGRESS`] when no webhook is due.
    pub(crate) name: DedupDigest,
    /// What it tells, for the operator.
    pub(crate) tells: String,
    pub(crate) target: Option<Target>,
}

/// Which box is replaced.
pub(crate) enum Change {
    /// The flow's, and polls show this payload from now on.
    Flow(Vec<u8>),
    /// That of the fetch of this name.
    Fetch(DedupDigest, Vec<u8>),
}

/// Where a webhook goes.
pub(crate) struct Target {
    pub(crate) origin: String,
    pub(crate) address: Vec<u8>,
}

/// What became of [`Commit`].
pub(crate) enum Committed {
    /// It is written; the position of its delivery.
    Done(Option<DeliveryId>),
    /// The flow has changed since it was read.
    Overtaken,
    /// The webhook's key is that of another flow's; nothing is written.
    Taken,
}

/// What was written.
struct Written {
    flow: FlowState,
    queued: Option<QueuedDelivery>,
}

pub(crate) async fn report<K: Keeper>(keeper: Arc<K>, report: ReportFlow) -> Result<ReportFlowOutcome, StoreError> {
    let ReportFlow { mut report, result_ttl } = report;
    let (id, app, fetch) = (report.flow(), report.app().clone(), report.fetch_key().map(|name| digest_of(&name)));
    for _ in 0..ATTEMPTS {
        let Some(kept) = keeper.find(id, fetch).await? else { return Ok(ReportFlowOutcome::NotFound) };
        let flow: FlowState = open_of_flow(keeper.vault(), id, &kept.standing)?;
        let admitted = match report.admit(&flow) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(refused(refusal)),
        };
        match write(&*keeper, &kept, flow, fetch, &admitted, result_ttl).await? {
            Some(Ok(Some(Written { flow, queued }))) => return Ok(ReportFlowOutcome::Accepted { flow: Box::new(flow), queued }),
            Some(Ok(None)) => return Ok(ReportFlowOutcome::Repeated),
            Some(Err(refusal)) => return Ok(refused(refusal)),
            None => report = admitted.into_report(app.clone()),
        }
    }
    Err(StoreError::Overloaded)
}

/// Which of the ids is wrong is not told.
const fn refused(refusal: ReportRefusal) -> ReportFlowOutcome {
    match refusal {
        ReportRefusal::NotThisFlow => ReportFlowOutcome::NotFound,
        other => ReportFlowOutcome::Refused(other),
    }
}

pub(crate) async fn lapse<K: Keeper>(keeper: Arc<K>, id: FlowId, result_ttl: Duration) -> Result<LapseFlowOutcome, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some(kept) = keeper.find(id, None).await? else { return Ok(LapseFlowOutcome::NotFound) };
        let flow: FlowState = open_of_flow(keeper.vault(), id, &kept.standing)?;
        let due = flow.deadline().is_some_and(|deadline| deadline <= kept.now);
        let (true, Some(latest), FlowState::ESign(document)) = (due, kept.latest, &flow) else { return Ok(LapseFlowOutcome::NotDue) };
        // Gone when it was replaced after it was named: the flow has changed.
        let Some(bytes) = keeper.payload(id, latest).await? else { continue };
        let corrupt = || StoreError::Corrupt("a payload cannot be read".into());
        let json = SealedPayload::new(id, latest, bytes).open(keeper.vault()).map_err(|_| corrupt())?;
        let latest = EsignPayload::parse(&json).map_err(|_| corrupt())?;
        let Some(lapsed) = document.lapse(latest, kept.now).map(AdmittedReport::ESign) else { return Ok(LapseFlowOutcome::NotDue) };
        match write(&*keeper, &kept, flow, None, &lapsed, result_ttl).await? {
            Some(Ok(Some(Written { flow, queued }))) => return Ok(LapseFlowOutcome::Lapsed { flow: Box::new(flow), queued }),
            Some(Ok(None) | Err(_)) => return Ok(LapseFlowOutcome::NotDue),
            None => {}
        }
    }
    Err(StoreError::Overloaded)
}

/// The flow of an app, with what was reported of it last.
pub(crate) async fn load<K: Keeper>(keeper: Arc<K>, id: FlowId, app: AppId) -> Result<Option<FlowRecord>, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some(kept) = keeper.find(id, None).await? else { return Ok(None) };
        let standing: FlowState = open_of_flow(keeper.vault(), id, &kept.standing)?;
        if standing.header().app != app {
            return Ok(None);
        }
        let latest = match kept.latest {
            None => None,
            Some(name) => match keeper.payload(id, name).await? {
                Some(bytes) => Some(SealedPayload::new(id, name, bytes)),
                // It was replaced after it was named; or it has had its time before its flow.
                None if name == PROGRESS => continue,
                None => None,
            },
        };
        return Ok(Some(FlowRecord { standing, kept_until: kept.until, latest }));
    }
    Err(StoreError::Overloaded)
}

/// A flow with its deliveries.
pub(crate) async fn deliveries<K: Keeper>(keeper: Arc<K>, id: FlowId) -> Result<Option<FlowDeliveries>, StoreError> {
    let Some(kept) = keeper.find(id, None).await? else { return Ok(None) };
    let standing = open_of_flow(keeper.vault(), id, &kept.standing)?;
    let mut deliveries = keeper.deliveries(id).await?;
    deliveries.sort_unstable_by_key(|queued| queued.delivery.id);
    Ok(Some(FlowDeliveries { standing, kept_until: kept.until, deliveries }))
}

/// Lets the domain decide and writes what follows; `None` when the flow has changed meanwhile.
async fn write<K: Keeper>(
    keeper: &K,
    kept: &Kept,
    flow: FlowState,
    fetch: Option<DedupDigest>,
    report: &AdmittedReport,
    result_ttl: Duration,
) -> Result<Option<Result<Option<Written>, ReportRefusal>>, StoreError> {
    let (id, vault) = (flow.header().id, keeper.vault());
    let (digest, length) = measured(report)?;
    let known: Option<FetchState> = kept.fetch.as_deref().map(|bytes| open_of_flow(vault, id, bytes)).transpose()?;
    let (next, webhook) = match report.transition(&flow, known, digest, kept.now) {
        Ok(Transition::Repeated) => return Ok(Some(Ok(None))),
        Ok(Transition::Progressed { next }) => (next, None),
        Ok(Transition::WebhookDue { next, webhook }) => (next, Some(digest_of(webhook.as_str()))),
        Err(refusal) => return Ok(Some(Err(refusal))),
    };
    let url = match webhook {
        Some(_) => address(keeper, report.webhook_target(&flow), flow.header().app.clone()).await?,
        None => None,
    };
    let (change, flow, until) = match (next, fetch) {
        (NextState::Flow(next), _) => {
            let until = next.kept_until(kept.until, kept.now, result_ttl);
            (Change::Flow(seal_of_flow(vault, id, &next)?), next, until)
        }
        (NextState::Fetch(next), Some(name)) => (Change::Fetch(name, seal_of_flow(vault, id, &next)?), flow, kept.until),
        (NextState::Fetch(_), None) => return Err(StoreError::Corrupt("a fetch has no name".into())),
    };
    let name = webhook.unwrap_or(PROGRESS);
    let target = match &url {
        Some(url) => Some(Target { origin: url.origin(), address: seal_of_flow(vault, id, url)? }),
        None => None,
    };
    let payload_until = if webhook.is_some() { kept.now + result_ttl } else { until };
    let (payload, lapses_at) = (sealed(vault, id, name, report, length)?, flow.deadline());
    let (version, tells) = (kept.version, report.summary());
    let stored_bytes = payload.len();
    let commit = Commit { id, version, until, lapses_at, change, payload, payload_until, name, tells, target };
    let position = match keeper.commit(commit).await? {
        Committed::Done(position) => position,
        Committed::Overtaken => return Ok(None),
        Committed::Taken => return Ok(Some(Err(ReportRefusal::ReportedDifferently))),
    };
    let subject = Subject::Flow { flow: id, webhook: name };
    let queued = position.zip(url).map(|(id, url)| QueuedDelivery { id, subject, url, stored_bytes });
    Ok(Some(Ok(Some(Written { flow, queued }))))
}

/// Where a webhook goes at this moment.
async fn address<K: Keeper>(keeper: &K, target: WebhookTarget<'_>, app: AppId) -> Result<Option<WebhookUrl>, StoreError> {
    if let WebhookTarget::ESign { response_url: Some(own) } = target {
        return Ok(Some(own.clone()));
    }
    let receiver = keeper.receiver(app).await?;
    Ok(receiver.and_then(|(app, registered)| target.webhook_url(&registered, &app).cloned()))
}

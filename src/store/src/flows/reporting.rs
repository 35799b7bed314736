//! Processing of a report on any store: read, let the domain decide, and write unless the flow has changed meanwhile.

use std::time::Duration;

use sakshi_domain::delivery::{DeliveryId, FlowDelivery, QueuedDelivery, Receiver, Subject};
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::{FetchState, FlowState, NextState};
use sakshi_domain::flow::transition::{ReportRefusal, Transition};
use sakshi_domain::flow::webhook_target::WebhookTarget;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::read_report;
use sakshi_wire::reports::AdmittedReport;

use super::encoding::{PROGRESS, digest_of, measure, seal_payload};
use super::record::{FlowDeliveries, FlowRecord, SealedPayload};
use super::{LapseFlowOutcome, ReportFlow, ReportFlowOutcome};
use crate::error::{ATTEMPTS, StoreError};
use crate::outbox::Target;
use crate::sealing::seal_of_flow;
use crate::vault::Vault;

/// The reads and writes of flows that processing a report needs, which a store implements.
pub(crate) trait FlowStorage: Send + Sync + 'static {
    /// Returns the encryption keys.
    fn vault(&self) -> &Vault;
    /// Returns a flow without its fetches.
    fn find(&self, id: FlowId) -> impl Future<Output = Result<Option<StoredFlow>, StoreError>> + Send;
    /// Returns a flow as it survives a failover, with the fetch of this name: an upstream does not send a report again
    /// that it learns to be known.
    fn find_confirmed(
        &self,
        id: FlowId,
        fetch: Option<DedupDigest>,
    ) -> impl Future<Output = Result<Option<StoredFlow>, StoreError>> + Send;
    /// Returns a sealed payload.
    fn payload(
        &self,
        id: FlowId,
        name: DedupDigest,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;
    /// Returns the deliveries of a flow, in any order.
    fn deliveries(&self, id: FlowId) -> impl Future<Output = Result<Vec<FlowDelivery>, StoreError>> + Send;
    /// Returns an app, and the URLs that it has registered.
    fn receiver(&self, app: AppId) -> impl Future<Output = Result<Option<(App, RegisteredUrls)>, StoreError>> + Send;
    /// Writes a change atomically, unless the flow has changed since it was read.
    fn commit(&self, commit: Commit) -> impl Future<Output = Result<CommitOutcome, StoreError>> + Send;
}

/// A flow as read.
pub(crate) struct StoredFlow {
    pub(crate) state: FlowState,
    /// The state of the requested fetch under a wealth-data consent.
    pub(crate) fetch: Option<FetchState>,
    /// Version, raised by every change.
    pub(crate) version: u64,
    /// Time until which the flow is stored.
    pub(crate) until: Timestamp,
    /// Name of the payload that polls return.
    pub(crate) latest: Option<DedupDigest>,
    /// The store's time.
    pub(crate) now: Timestamp,
}

/// The changes of a report, ready to be written.
pub(crate) struct Commit {
    pub(crate) id: FlowId,
    /// Version that the decision was based on.
    pub(crate) version: u64,
    /// Time until which the flow is stored.
    pub(crate) until: Timestamp,
    /// End of the open invitation.
    pub(crate) lapses_at: Option<Timestamp>,
    pub(crate) change: Change,
    /// The sealed report.
    pub(crate) payload: Vec<u8>,
    pub(crate) payload_until: Timestamp,
    /// Name of the payload; [`PROGRESS`] when no webhook is due.
    pub(crate) name: DedupDigest,
    /// Summary of the webhook, for the operator.
    pub(crate) summary: String,
    /// Destination of the webhook to queue.
    pub(crate) target: Option<Target>,
}

/// The sealed state to replace.
pub(crate) enum Change {
    /// The flow's state. Polls return the payload from now on.
    Flow(Vec<u8>),
    /// The state of the fetch with this name.
    Fetch(DedupDigest, Vec<u8>),
}

/// The outcome of [`Commit`].
pub(crate) enum CommitOutcome {
    /// Written, with the id of its delivery if one was queued.
    Done(Option<DeliveryId>),
    /// The flow has changed since it was read; nothing is written.
    Conflict,
    /// The webhook's key belongs to another flow; nothing is written.
    KeyTaken,
}

/// The times for which a flow is kept after a report.
#[derive(Clone, Copy)]
struct FlowTtls {
    result: Duration,
    pending: Duration,
}

/// Records an upstream's report of a flow, and retries if the flow changes meanwhile.
pub(crate) async fn report<S: FlowStorage>(storage: S, report: ReportFlow) -> Result<ReportFlowOutcome, StoreError> {
    let ReportFlow { mut report, result_ttl, pending_ttl } = report;
    let ttls = FlowTtls { result: result_ttl, pending: pending_ttl };
    let (id, app, fetch) = (report.flow(), report.app().clone(), report.fetch_key().map(|name| digest_of(&name)));
    for _ in 0..ATTEMPTS {
        let Some(stored) = storage.find_confirmed(id, fetch).await? else { return Ok(ReportFlowOutcome::NotFound) };
        let admitted = match report.admit(&stored.state) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(refusal_outcome(refusal)),
        };
        match apply_report(&storage, stored, fetch, &admitted, ttls).await? {
            Some(outcome) => return Ok(outcome),
            None => report = admitted.into_report(app.clone()),
        }
    }
    Err(StoreError::Overloaded)
}

/// Returns the outcome of a refusal. A report with a wrong id does not learn which id is wrong.
const fn refusal_outcome(refusal: ReportRefusal) -> ReportFlowOutcome {
    match refusal {
        ReportRefusal::NotThisFlow => ReportFlowOutcome::NotFound,
        other => ReportFlowOutcome::Refused(other),
    }
}

/// Ends a document as expired if its invitation has ended.
pub(crate) async fn lapse<S: FlowStorage>(
    storage: S,
    id: FlowId,
    result_ttl: Duration,
) -> Result<LapseFlowOutcome, StoreError> {
    // A lapsed document waits for no further report.
    let ttls = FlowTtls { result: result_ttl, pending: Duration::ZERO };
    for _ in 0..ATTEMPTS {
        let Some(stored) = storage.find(id).await? else { return Ok(LapseFlowOutcome::NotFound) };
        let is_due = stored.state.deadline().is_some_and(|deadline| deadline <= stored.now);
        let (true, Some(latest), FlowState::ESign(document)) = (is_due, stored.latest, &stored.state) else {
            return Ok(LapseFlowOutcome::NotDue);
        };
        // The payload was replaced after the flow was read, so the flow has changed: retry.
        let Some(bytes) = storage.payload(id, latest).await? else { continue };
        let corrupt = || StoreError::unreadable("a payload");
        let json = SealedPayload::new(id, latest, bytes).open(storage.vault()).map_err(|_| corrupt())?;
        let latest = read_report::<EsignOutcome>(&json).map_err(|_| corrupt())?;
        let lapsed = document.lapse(latest, stored.now).map(AdmittedReport::ESign);
        let Some(lapsed) = lapsed else { return Ok(LapseFlowOutcome::NotDue) };
        match apply_report(&storage, stored, None, &lapsed, ttls).await? {
            Some(ReportFlowOutcome::Accepted { flow, queued }) => return Ok(LapseFlowOutcome::Lapsed { flow, queued }),
            Some(_) => return Ok(LapseFlowOutcome::NotDue),
            None => {}
        }
    }
    Err(StoreError::Overloaded)
}

/// Returns a flow of an app, with its latest report.
pub(crate) async fn load<S: FlowStorage>(storage: S, id: FlowId, app: AppId) -> Result<Option<FlowRecord>, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some(stored) = storage.find(id).await? else { return Ok(None) };
        if stored.state.header().app != app {
            return Ok(None);
        }
        let latest = match stored.latest {
            None => None,
            Some(name) => match storage.payload(id, name).await? {
                Some(bytes) => Some(SealedPayload::new(id, name, bytes)),
                // The payload was replaced after the flow was read, or it expired before the flow.
                None if name == PROGRESS => continue,
                None => None,
            },
        };
        return Ok(Some(FlowRecord { state: stored.state, kept_until: stored.until, latest }));
    }
    Err(StoreError::Overloaded)
}

/// Returns a flow with its deliveries.
pub(crate) async fn deliveries<S: FlowStorage>(storage: S, id: FlowId) -> Result<Option<FlowDeliveries>, StoreError> {
    let Some(stored) = storage.find(id).await? else { return Ok(None) };
    let mut deliveries = storage.deliveries(id).await?;
    deliveries.sort_unstable_by_key(|queued| queued.delivery.id);
    Ok(Some(FlowDeliveries { state: stored.state, kept_until: stored.until, deliveries }))
}

/// Lets the domain decide about a report, and writes the result; `None` when the flow has changed since it was read.
async fn apply_report<S: FlowStorage>(
    storage: &S,
    stored: StoredFlow,
    fetch: Option<DedupDigest>,
    report: &AdmittedReport,
    ttls: FlowTtls,
) -> Result<Option<ReportFlowOutcome>, StoreError> {
    let StoredFlow { state: flow, fetch: fetch_state, version, until, now, .. } = stored;
    let (id, vault, result_ttl) = (flow.header().id, storage.vault(), flow.header().retention.result(ttls.result));
    let (digest, length) = measure(report)?;
    let (next, webhook) = match report.transition(&flow, fetch_state, digest, now) {
        Ok(Transition::Repeated) => return Ok(Some(ReportFlowOutcome::Repeated)),
        Ok(Transition::Progressed { next }) => (next, None),
        Ok(Transition::WebhookDue { next, webhook }) => (next, Some(digest_of(webhook.as_str()))),
        Err(refusal) => return Ok(Some(refusal_outcome(refusal))),
    };
    let url = match webhook {
        Some(_) => webhook_url(storage, report.webhook_target(&flow), flow.header().app.clone()).await?,
        None => None,
    };
    let (change, flow, until) = match (next, fetch) {
        (NextState::Flow(next), _) => {
            let until = next.kept_until(until, now, result_ttl);
            (Change::Flow(seal_of_flow(vault, id, &next)?), next, until)
        }
        (NextState::Fetch(next), Some(name)) => (Change::Fetch(name, seal_of_flow(vault, id, &next)?), flow, until),
        (NextState::Fetch(_), None) => return Err(StoreError::Corrupt("a fetch has no name".into())),
    };
    let until = flow.kept_for_notices(until, now, ttls.pending, report.consent_end());
    let name = webhook.unwrap_or(PROGRESS);
    let target = match url {
        Some(url) => {
            let receiver = Receiver { client: flow.header().client.clone(), origin: url.origin() };
            Some(Target { receiver, address: Some(seal_of_flow(vault, id, &url)?) })
        }
        None => None,
    };
    let receiver = target.as_ref().map(|target| target.receiver.clone());
    let payload_until = if webhook.is_some() { now + result_ttl } else { until };
    let (payload, lapses_at) = (seal_payload(vault, id, name, report, length)?, flow.deadline());
    let (summary, stored_bytes) = (report.summary(), payload.len());
    let commit = Commit { id, version, until, lapses_at, change, payload, payload_until, name, summary, target };
    let delivery = match storage.commit(commit).await? {
        CommitOutcome::Done(delivery) => delivery,
        CommitOutcome::Conflict => return Ok(None),
        CommitOutcome::KeyTaken => return Ok(Some(ReportFlowOutcome::Refused(ReportRefusal::ReportedDifferently))),
    };
    let (subject, app) = (Subject::Flow { flow: id, webhook: name }, flow.header().app.clone());
    let queued = delivery.zip(receiver).map(|(id, receiver)| QueuedDelivery {
        id,
        subject,
        receiver,
        app: Some(app),
        stored_bytes,
    });
    Ok(Some(ReportFlowOutcome::Accepted { flow: Box::new(flow), queued }))
}

/// Returns the current URL of a webhook.
async fn webhook_url<S: FlowStorage>(
    storage: &S,
    target: WebhookTarget<'_>,
    app: AppId,
) -> Result<Option<WebhookUrl>, StoreError> {
    if let WebhookTarget::ESign { response_url: Some(own) } = target {
        return Ok(Some(own.clone()));
    }
    let receiver = storage.receiver(app).await?;
    Ok(receiver.and_then(|(app, registered)| target.webhook_url(&registered, &app).cloned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sakshi_domain::flow::doclocker::DocLockerFlow;
    use sakshi_domain::flow::header::FlowHeader;
    use sakshi_domain::ids::ClientId;
    use sakshi_domain::request_id::RequestId;
    use sakshi_domain::retention::ClientRetention;

    use super::*;

    const START: Timestamp = Timestamp::from_millis(0);

    /// A storage of one flow, in which the first `missing_reads` reads of a payload find none.
    struct RacingStorage {
        flow: FlowHeader,
        latest: DedupDigest,
        missing_reads: usize,
        reads: Arc<AtomicUsize>,
    }

    impl FlowStorage for RacingStorage {
        fn vault(&self) -> &Vault {
            unreachable!("nothing is opened")
        }

        async fn find(&self, _: FlowId) -> Result<Option<StoredFlow>, StoreError> {
            let state = FlowState::DocLocker(DocLockerFlow::new(self.flow.clone()));
            Ok(Some(StoredFlow { state, fetch: None, version: 1, until: START, latest: Some(self.latest), now: START }))
        }

        async fn find_confirmed(&self, _: FlowId, _: Option<DedupDigest>) -> Result<Option<StoredFlow>, StoreError> {
            unreachable!("nothing is reported")
        }

        async fn payload(&self, _: FlowId, _: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
            let is_missing = self.reads.fetch_add(1, Ordering::SeqCst) < self.missing_reads;
            Ok((!is_missing).then(|| vec![7; 40]))
        }

        async fn deliveries(&self, _: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
            unreachable!("deliveries are not loaded")
        }

        async fn receiver(&self, _: AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
            unreachable!("nothing is sent")
        }

        async fn commit(&self, _: Commit) -> Result<CommitOutcome, StoreError> {
            unreachable!("nothing is written")
        }
    }

    #[tokio::test]
    async fn a_replaced_payload_is_read_again_and_an_expired_one_is_not() {
        let client = ClientId::generate();
        let id = FlowId::generate(client.partition(), 3);
        let flow = FlowHeader {
            id,
            client,
            app: AppId::generate(),
            opened_at: START,
            request_id: RequestId::mint(),
            retention: ClientRetention::default(),
        };
        let webhook = DedupDigest([5; 16]);
        for (latest, missing_reads, expected) in [
            // The expectation: whether the flow has a payload, and the number of reads.
            (PROGRESS, 1, Ok((true, 2))),
            (webhook, 1, Ok((false, 1))),
            (PROGRESS, usize::MAX, Err(StoreError::Overloaded)),
        ] {
            let reads = Arc::new(AtomicUsize::new(0));
            let storage = RacingStorage { flow: flow.clone(), latest, missing_reads, reads: Arc::clone(&reads) };
            let loaded = load(storage, id, flow.app.clone()).await;
            let payload_and_reads =
                loaded.map(|record| (record.unwrap().latest.is_some(), reads.load(Ordering::SeqCst)));
            assert_eq!(payload_and_reads, expected, "{missing_reads}");
        }
    }
}

//! Flows: opening, reading and changing them, and finding those whose invitation has ended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, Partition};
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use uuid::Uuid;

use super::arguments::arguments;
use super::idempotency::asked;
use super::reply::{Fields, bytes, number, unreadable};
use super::script::{COMMIT_FLOW, FORGET_LAPSE, LAPSED_FLOWS, LOAD_FLOW, LOAD_REPORT, OPEN_FLOW};
use super::shared::Shared;
use super::store::RedisStore;
use super::{delivery_id, keys};
use crate::error::{StoreError, StoreFuture};
use crate::flows::encoding::{Opening, PROGRESS};
use crate::flows::reporting::{self, Change, Commit, CommitOutcome, FlowStorage, StoredFlow};
use crate::flows::{
    FlowDeliveries, FlowRecord, Flows, LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlow, ReportFlowOutcome, SealedPayload,
};
use crate::vault::Vault;

/// The deadline to be listed. The last possible time means that there is none.
fn listed(lapses_at: Option<Timestamp>) -> Option<Timestamp> {
    lapses_at.filter(|at| at.millis() < i64::MAX)
}

impl Flows for RedisStore {
    fn open_flow(&self, open: OpenFlow) -> StoreFuture<OpenFlowOutcome> {
        self.run(|store| async move {
            let Opening { id, client, app, state, payload, until, lapses_at, idempotency } = Opening::of(&store.vault, open)?;
            let partition = id.partition();
            let kept = keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest));
            let progress = keys::report(id, PROGRESS);
            let keys = vec![keys::flow(id), keys::client(partition, &client), kept, progress, keys::lapsing(partition)];
            let [request, answer, ends] = asked(idempotency.as_ref());
            let (app, lapses_at) = (app.as_str(), listed(lapses_at));
            let args = arguments![id.as_bytes(), app, state, payload, &PROGRESS.0, until, lapses_at, request, answer, ends];
            let mut answer = Fields::of("the answer to an opening", store.call(&OPEN_FLOW, keys, args).await?)?;
            Ok(match answer.text()?.as_str() {
                "opened" => OpenFlowOutcome::Opened,
                "replayed" => OpenFlowOutcome::Replayed(answer.sealed()?),
                "reused" => OpenFlowOutcome::KeyReused,
                "no client" => store.absent(OpenFlowOutcome::ClientNotFound).await?,
                _ => return Err(unreadable("the answer to an opening")),
            })
        })
    }

    fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        self.run(|store| reporting::report(store, report))
    }

    /// A flow that no longer exists is removed from the list of deadlines.
    fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome> {
        self.run(move |store| async move {
            let outcome = reporting::lapse(Arc::clone(&store), id, result_ttl).await?;
            if outcome == LapseFlowOutcome::NotFound {
                let keys = vec![keys::flow(id), keys::lapsing(id.partition())];
                store.call(&FORGET_LAPSE, keys, arguments![id.as_bytes()]).await?;
            }
            Ok(outcome)
        })
    }

    fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>> {
        self.run(move |store| async move {
            let sizes = keys::partitions().map(|partition| cmd("ZCARD").arg(keys::lapsing(partition)).to_owned());
            let sizes = store.link.read_all(sizes.collect()).await?;
            let mut asked = Vec::new();
            for (partition, size) in keys::partitions().zip(sizes) {
                if number::<u64>("the list of lapsing flows", size)? > 0 {
                    asked.push(store.lapsed_in(partition, limit));
                }
            }
            let mut lapsed: Vec<_> = try_join_all(asked).await?.into_iter().flatten().collect();
            lapsed.sort_unstable();
            Ok(lapsed.into_iter().take(limit).map(|(_, id)| id).collect())
        })
    }

    fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>> {
        self.run(move |store| reporting::load(store, id, app))
    }

    fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        self.run(move |store| reporting::deliveries(store, id))
    }

    fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<SealedPayload>> {
        self.run(move |store| async move {
            let payload = store.payload(flow, webhook).await?;
            Ok(payload.map(|bytes| SealedPayload::new(flow, webhook, bytes)))
        })
    }
}

impl Shared {
    async fn lapsed_in(&self, partition: Partition, limit: usize) -> Result<Vec<(i64, FlowId)>, StoreError> {
        let answer = self.call(&LAPSED_FLOWS, vec![keys::lapsing(partition)], arguments![limit]).await?;
        let what = "the list of lapsing flows";
        let pairs = Fields::of(what, answer)?.pairs()?;
        let read = |(id, at): (Vec<u8>, Vec<u8>)| {
            let at = std::str::from_utf8(&at).ok()?.parse().ok()?;
            Some((at, FlowId::from_bytes(id.try_into().ok()?)))
        };
        pairs.into_iter().map(|pair| read(pair).ok_or_else(|| unreadable(what))).collect()
    }
}

impl FlowStorage for Shared {
    fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    async fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<StoredFlow>, StoreError> {
        let fetch = fetch.map(|name| name.0.to_vec());
        let answer = self.call(&LOAD_FLOW, vec![keys::flow(id)], arguments![fetch]).await?;
        let Some(mut fields) = Fields::maybe("a flow", answer)? else { return self.absent(None).await };
        let (state, fetch, version, until) = (fields.bytes()?, fields.optional()?, fields.parsed()?, fields.time()?);
        let name = |bytes: Vec<u8>| bytes.try_into().map(DedupDigest).map_err(|_| unreadable("a flow"));
        let latest = fields.optional()?.map(name).transpose()?;
        Ok(Some(StoredFlow { state, fetch, version, until, latest, now: fields.time()? }))
    }

    async fn payload(&self, id: FlowId, name: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
        bytes("a payload", self.call(&LOAD_REPORT, vec![keys::report(id, name)], vec![]).await?)
    }

    async fn deliveries(&self, id: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        self.deliveries_of(id).await
    }

    async fn receiver(&self, app: AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        self.load_receiver(&app).await
    }

    async fn commit(&self, commit: Commit) -> Result<CommitOutcome, StoreError> {
        let Commit { id, version, until, lapses_at, change, payload, payload_until, name, tells, target } = commit;
        let partition = id.partition();
        let (report, progress) = (keys::report(id, name), keys::report(id, PROGRESS));
        let keys =
            vec![keys::flow(id), report, progress, keys::outbox(partition), keys::lapsing(partition), keys::webhook(partition, name)];
        let (state, fetch, fetched) = match change {
            Change::Flow(state) => (Some(state), None, None),
            Change::Fetch(name, state) => (None, Some(name.0.to_vec()), Some(state)),
        };
        let (origin, address) = target.map(|target| (target.origin, target.address)).unzip();
        let (call, node) = (Uuid::new_v4(), self.node.to_string());
        let args = arguments![
            id.as_bytes(),
            version,
            call.as_bytes(),
            until,
            listed(lapses_at),
            state,
            fetch,
            fetched,
            &name.0,
            payload,
            payload_until,
            node,
            origin,
            address,
            tells,
            name != PROGRESS,
        ];
        let mut answer = Fields::of("the answer to a report", self.call(&COMMIT_FLOW, keys, args).await?)?;
        match answer.text()?.as_str() {
            "done" => {
                let id = answer.optional()?.map(|entry| delivery_id::of_entry(partition, &entry)).transpose()?;
                Ok(CommitOutcome::Done(id))
            }
            "overtaken" => Ok(CommitOutcome::Conflict),
            "taken" => Ok(CommitOutcome::KeyTaken),
            _ => Err(unreadable("the answer to a report")),
        }
    }
}

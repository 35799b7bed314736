//! Flows: opening, reading and changing them, and finding those whose invitation has ended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::{AppId, Partition};
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use uuid::Uuid;

use super::arguments::arguments;
use super::outbox::record;
use super::script::{COMMIT_FLOW, FORGET_LAPSE, LAPSED_FLOWS, LIST_WEBHOOKS, LOAD_DELIVERIES, LOAD_FLOW, LOAD_REPORT, OPEN_FLOW};
use super::shared::Shared;
use super::store::RedisStore;
use super::{delivery_id, keys};
use crate::error::{StoreError, StoreFuture};
use crate::flows::encoding::{PROGRESS, SealedOpening};
use crate::flows::reporting::{self, Change, Commit, CommitOutcome, FlowStorage, StoredFlow};
use crate::flows::{FlowDeliveries, FlowRecord, Flows, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, SealedPayload};
use crate::idempotency::CreateOutcome;
use crate::outbox::Target;
use crate::sealing::open_of_flow;
use crate::vault::Vault;

/// Deliveries that one call reads.
const SLICE: usize = 100;

/// The deadline to be listed. The last possible time means that there is none.
fn listed(lapses_at: Option<Timestamp>) -> Option<Timestamp> {
    lapses_at.filter(|at| at.millis() < i64::MAX)
}

impl Flows for RedisStore {
    fn open_flow(&self, open: OpenFlow) -> StoreFuture<CreateOutcome> {
        self.run(|store| async move {
            let SealedOpening { state, payload } = SealedOpening::of(&store.vault, &open)?;
            let OpenFlow { flow, until, idempotency, .. } = open;
            let (FlowHeader { id, client, app, .. }, lapses_at) = (flow.header(), listed(flow.deadline()));
            let (id, partition) = (*id, id.partition());
            let kept = keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest));
            let progress = keys::report(id, PROGRESS);
            let keys = vec![keys::flow(id), keys::client(partition, client), kept, progress, keys::lapsing(partition)];
            let args = arguments![id.as_bytes(), app.as_str(), state, payload, &PROGRESS.0, until, lapses_at];
            store.create(&OPEN_FLOW, keys, args, idempotency.as_ref()).await
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
            let sizes = store.read_all("the list of lapsing flows", sizes).await?;
            let mut asked = Vec::new();
            for (partition, size) in keys::partitions().zip(sizes) {
                if size.parsed::<u64>()? > 0 {
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
        let found = self.call(&LAPSED_FLOWS, vec![keys::lapsing(partition)], arguments![limit]).await?;
        found.fields()?.all_pairs(|id, at| Some((std::str::from_utf8(&at).ok()?.parse().ok()?, FlowId::from_bytes(id.try_into().ok()?))))
    }
}

impl FlowStorage for Arc<Shared> {
    fn vault(&self) -> &Vault {
        &self.vault
    }

    async fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<StoredFlow>, StoreError> {
        let fetch = fetch.map(|name| name.0.to_vec());
        let found = self.call(&LOAD_FLOW, vec![keys::flow(id)], arguments![fetch]).await?;
        let Some(mut fields) = found.optional_fields()? else { return self.confirm(None).await };
        let state = open_of_flow(&self.vault, id, fields.bytes()?)?;
        let fetch = fields.optional()?.map(|fetch| open_of_flow(&self.vault, id, fetch)).transpose()?;
        let (version, until) = (fields.parsed()?, fields.time()?);
        let name = |bytes: Vec<u8>| bytes.try_into().map(DedupDigest).map_err(|_| StoreError::unreadable("a flow"));
        let latest = fields.optional()?.map(name).transpose()?;
        Ok(Some(StoredFlow { state, fetch, version, until, latest, now: fields.time()? }))
    }

    async fn payload(&self, id: FlowId, name: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
        self.call(&LOAD_REPORT, vec![keys::report(id, name)], vec![]).await?.bytes()
    }

    /// The hash of a flow names its webhooks, and each has a hash of its own.
    async fn deliveries(&self, id: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        let listed = self.call(&LIST_WEBHOOKS, vec![keys::flow(id)], vec![]).await?;
        let named = |name: Vec<u8>, tells| Some((DedupDigest(name.try_into().ok()?), String::from_utf8(tells).ok()?));
        let webhooks = listed.fields()?.all_pairs(named)?;
        let mut found = Vec::with_capacity(webhooks.len());
        for slice in webhooks.chunks(SLICE) {
            let keys = slice.iter().map(|(webhook, _)| keys::report(id, *webhook)).collect();
            let loaded = self.call(&LOAD_DELIVERIES, keys, vec![]).await?.fields()?;
            for ((webhook, tells), loaded) in slice.iter().zip(loaded.rest()) {
                let delivery = record(id.partition(), loaded)?;
                found.extend(delivery.map(|delivery| FlowDelivery { webhook: *webhook, tells: tells.clone(), delivery }));
            }
        }
        Ok(found)
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
        let (origin, address) = target.map_or((None, None), |Target { origin, address }| (Some(origin), address));
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
        let mut answer = self.call(&COMMIT_FLOW, keys, args).await?.fields()?;
        match answer.text()?.as_str() {
            "done" => {
                let id = answer.optional()?.map(|entry| delivery_id::of_entry(partition, &entry)).transpose()?;
                Ok(CommitOutcome::Done(id))
            }
            "overtaken" => Ok(CommitOutcome::Conflict),
            "taken" => Ok(CommitOutcome::KeyTaken),
            _ => Err(answer.unreadable()),
        }
    }
}

//! Flows: opening, reading and changing them, and finding those that have lapsed.

use std::sync::Arc;

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

use super::answer::{Fields, arguments, bytes, unreadable};
use super::script::{COMMIT_FLOW, FORGET_LAPSE, LAPSED_FLOWS, LOAD_FLOW, LOAD_REPORT, OPEN_FLOW};
use super::{Shared, keys, position, records};
use crate::error::StoreError;
use crate::flows::reporting::{Change, Commit, Committed, Keeper, Kept};
use crate::flows::{LapseFlowOutcome, OpenFlow, OpenFlowOutcome, Opening, PROGRESS, reporting};
use crate::vault::Vault;

/// A deadline that is none needs no place in a list.
fn listed(lapses_at: Option<Timestamp>) -> Option<Timestamp> {
    lapses_at.filter(|at| at.millis() < i64::MAX)
}

impl Shared {
    pub(super) async fn open_flow(&self, open: OpenFlow) -> Result<OpenFlowOutcome, StoreError> {
        let Opening { id, client, app, standing, payload, until, lapses_at, idempotency } = Opening::of(&self.vault, open)?;
        let partition = id.partition();
        let kept = keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest));
        let progress = keys::report(id, PROGRESS);
        let keys = vec![keys::flow(id), keys::client(partition, &client), kept, progress, keys::lapsing(partition)];
        let [request, answer, ends] = records::asked(idempotency.as_ref());
        let (app, lapses_at) = (app.as_str(), listed(lapses_at));
        let args = arguments![id.as_bytes(), app, standing, payload, &PROGRESS.0, until, lapses_at, request, answer, ends];
        let mut answer = Fields::of("the answer to an opening", self.call(&OPEN_FLOW, keys, args).await?)?;
        Ok(match answer.text()?.as_str() {
            "opened" => OpenFlowOutcome::Opened,
            "replayed" => OpenFlowOutcome::Replayed(answer.sealed()?),
            "reused" => OpenFlowOutcome::KeyReused,
            "no client" => self.absent(OpenFlowOutcome::ClientNotFound).await?,
            _ => return Err(unreadable("the answer to an opening")),
        })
    }

    /// One that is gone is taken off the list of those that lapse.
    pub(super) async fn lapse_flow(self: Arc<Self>, id: FlowId, result_ttl: std::time::Duration) -> Result<LapseFlowOutcome, StoreError> {
        let outcome = reporting::lapse(Arc::clone(&self), id, result_ttl).await?;
        if outcome == LapseFlowOutcome::NotFound {
            let keys = vec![keys::flow(id), keys::lapsing(id.partition())];
            self.call(&FORGET_LAPSE, keys, arguments![id.as_bytes()]).await?;
        }
        Ok(outcome)
    }

    pub(super) async fn lapsed_flows(&self, limit: usize) -> Result<Vec<FlowId>, StoreError> {
        let sizes = keys::partitions().map(|partition| cmd("ZCARD").arg(keys::lapsing(partition)).to_owned());
        let sizes = self.link.read_all(sizes.collect()).await?;
        let mut asked = Vec::new();
        for (partition, size) in keys::partitions().zip(sizes) {
            if super::answer::number::<u64>("the list of lapsing flows", size)? > 0 {
                asked.push(self.lapsed_in(partition, limit));
            }
        }
        let mut lapsed: Vec<_> = try_join_all(asked).await?.into_iter().flatten().collect();
        lapsed.sort_unstable();
        Ok(lapsed.into_iter().take(limit).map(|(_, id)| id).collect())
    }

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

impl Keeper for Shared {
    fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    async fn find(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<Kept>, StoreError> {
        let fetch = fetch.map(|name| name.0.to_vec());
        let answer = self.call(&LOAD_FLOW, vec![keys::flow(id)], arguments![fetch]).await?;
        let Some(mut fields) = Fields::maybe("a flow", answer)? else { return self.absent(None).await };
        let (standing, fetch, version, until) = (fields.bytes()?, fields.optional()?, fields.parsed()?, fields.time()?);
        let name = |bytes: Vec<u8>| bytes.try_into().map(DedupDigest).map_err(|_| unreadable("a flow"));
        let latest = fields.optional()?.map(name).transpose()?;
        Ok(Some(Kept { standing, fetch, version, until, latest, now: fields.time()? }))
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

    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let Commit { id, version, until, lapses_at, change, payload, payload_until, name, tells, target } = commit;
        let partition = id.partition();
        let (report, progress) = (keys::report(id, name), keys::report(id, PROGRESS));
        let keys =
            vec![keys::flow(id), report, progress, keys::outbox(partition), keys::lapsing(partition), keys::webhook(partition, name)];
        let (standing, fetch, fetched) = match change {
            Change::Flow(standing) => (Some(standing), None, None),
            Change::Fetch(name, standing) => (None, Some(name.0.to_vec()), Some(standing)),
        };
        let (origin, address) = target.map(|target| (target.origin, target.address)).unzip();
        let (call, node) = (Uuid::new_v4(), self.node.to_string());
        let args = arguments![
            id.as_bytes(),
            version,
            call.as_bytes(),
            until,
            listed(lapses_at),
            standing,
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
                let position = |at: Vec<u8>| position::delivery(partition, &at).ok_or_else(|| unreadable("the position of a delivery"));
                answer.optional()?.map(position).transpose().map(Committed::Done)
            }
            "overtaken" => Ok(Committed::Overtaken),
            "taken" => Ok(Committed::Taken),
            _ => Err(unreadable("the answer to a report")),
        }
    }
}

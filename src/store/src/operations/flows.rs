//! Flows: opening, reporting, lapsing and reading them.

use std::time::Duration;

use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, Partition};
use sakshi_domain::tenancy::App;

use super::{Store, new_call_id};
use crate::engine::{Answers, Query, Value};
use crate::error::{StoreError, StoreFuture};
use crate::flows::encoding::SealedOpening;
use crate::flows::reporting::{self, Commit, CommitOutcome, FlowStorage, StoredFlow};
use crate::flows::{
    FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, SealedPayload,
};
use crate::idempotency::CreateOutcome;
use crate::records::flow::{
    key_of_flow, key_of_flows, key_of_lapsing, key_of_report, key_of_webhook_name, key_of_webhooks,
};
use crate::records::tenancy;
use crate::sealing::{unseal_app, unseal_of_flow, unseal_urls};
use crate::transitions::{delivery, flow as transitions};
use crate::vault::Vault;

impl Store {
    /// Opens a flow, and stores the response for its idempotency key. Repeatable by flow id.
    pub fn open_flow(&self, open: OpenFlow) -> StoreFuture<CreateOutcome> {
        self.run(|store| async move {
            store.check_room()?;
            let sealed = SealedOpening::seal(store.vault(), &open)?;
            let applied = store.commit(transitions::open(&open, sealed)).await?;
            match transitions::open_outcome(&open, applied) {
                CreateOutcome::ClientNotFound => store.unless_records_were_lost(CreateOutcome::ClientNotFound).await,
                outcome => Ok(outcome),
            }
        })
    }

    /// Records an upstream's report of a flow. One step stores the flow's state and the sealed payload, and queues the
    /// webhook if one is due and its URL is known. Each webhook is queued at most once. Repeatable by the content of
    /// the report.
    pub fn report_flow(&self, report: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        self.run(|store| reporting::report(store, report))
    }

    /// Ends a document as expired and queues its webhook, if an invitation has ended by the store's clock. Removes a
    /// missing flow from the list of open invitations.
    pub fn lapse_flow(&self, id: FlowId, result_ttl: Duration) -> StoreFuture<LapseFlowOutcome> {
        self.run(move |store| async move {
            let outcome = reporting::lapse(store.clone(), id, result_ttl).await?;
            if outcome == LapseFlowOutcome::NotFound {
                store.commit(transitions::forget_lapse(id)).await?;
            }
            Ok(outcome)
        })
    }

    /// Returns documents whose invitation has lapsed but that are not marked as expired yet, oldest first.
    pub fn lapsed_flows(&self, limit: usize) -> StoreFuture<Vec<FlowId>> {
        self.run(move |store| async move {
            let limit_per_partition = u64::try_from(limit).unwrap_or(u64::MAX);
            let lapsed_in = |partition| Query::members_in_past(key_of_lapsing(partition), limit_per_partition);
            let mut answers = store.read(Partition::all().map(lapsed_in).collect()).await?;
            let mut lapsed = Vec::new();
            for _ in Partition::all() {
                lapsed.extend(answers.members()?.into_iter().map(|(id, at)| (at, id)));
            }
            lapsed.sort_unstable();
            lapsed.truncate(limit);
            let id = |(_, id): (i64, Vec<u8>)| {
                id.try_into().map(FlowId::from_bytes).map_err(|_| StoreError::unreadable("an id of a flow"))
            };
            lapsed.into_iter().map(id).collect()
        })
    }

    /// Returns the flow of this app, while it is retained, with its latest report.
    pub fn load_flow(&self, id: FlowId, app: AppId) -> StoreFuture<Option<FlowRecord>> {
        self.run(move |store| reporting::load(store, id, app))
    }

    /// Returns at most `limit` flows of an app with their deliveries, newest first. Of more flows, it returns those
    /// that expire last.
    pub fn list_flows(&self, client: ClientId, app: AppId, limit: u32) -> StoreFuture<Vec<FlowDeliveries>> {
        self.run(move |store| async move {
            let index = key_of_flows(client.partition(), &app);
            let total = store.read(vec![Query::count(index.clone())]).await?.number()?;
            let members = store
                .read(vec![Query::page(index, total.saturating_sub(limit.into()), limit.into())])
                .await?
                .members()?;
            let mut list = Vec::with_capacity(members.len());
            for (id, _) in members {
                let id =
                    id.try_into().map(FlowId::from_bytes).map_err(|_| StoreError::unreadable("an id of a flow"))?;
                list.extend(reporting::deliveries(store.clone(), id).await?);
            }
            list.sort_by_key(|flow: &FlowDeliveries| std::cmp::Reverse(flow.state.header().opened_at));
            Ok(list)
        })
    }

    /// Returns a flow of any app with its deliveries, for the operator, while the flow is retained.
    pub fn flow_deliveries(&self, id: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        self.run(move |store| reporting::deliveries(store, id))
    }

    /// Returns the URL and the body of a flow's webhook, while its delivery has not ended and while its result is
    /// retained.
    pub fn load_webhook(&self, flow: FlowId, webhook: DedupDigest) -> StoreFuture<Option<(WebhookUrl, SealedPayload)>> {
        self.run(move |store| async move {
            let record = store
                .read(vec![Query::Fields(key_of_report(flow, webhook), &["payload", "address"])])
                .await?
                .record()?;
            let Some(record) = record else { return store.unless_records_were_lost(None).await };
            let url = unseal_of_flow(store.vault(), flow, record.bytes("address"))?;
            Ok(Some((url, SealedPayload::new(flow, webhook, record.bytes("payload").to_vec()))))
        })
    }
}

impl Store {
    /// Decodes a flow, with the fetch of this name, from the answer to the query of its record.
    async fn decode_found(
        &self,
        id: FlowId,
        fetch: Option<DedupDigest>,
        mut answers: Answers,
    ) -> Result<Option<StoredFlow>, StoreError> {
        let Some(record) = answers.record()? else { return self.unless_records_were_lost(None).await };
        transitions::decode_flow(self.vault(), id, &record, fetch, answers.now).map(Some)
    }
}

impl FlowStorage for Store {
    fn vault(&self) -> &Vault {
        self.vault()
    }

    async fn find(&self, id: FlowId) -> Result<Option<StoredFlow>, StoreError> {
        let answers = self.read(vec![Query::Record(key_of_flow(id))]).await?;
        self.decode_found(id, None, answers).await
    }

    async fn find_confirmed(&self, id: FlowId, fetch: Option<DedupDigest>) -> Result<Option<StoredFlow>, StoreError> {
        let answers = self.read_confirmed(vec![Query::Record(key_of_flow(id))]).await?;
        self.decode_found(id, fetch, answers).await
    }

    /// Returns a sealed payload. A report does not expire before its delivery has ended. A replaced primary does not
    /// answer: it may have what was erased since.
    async fn payload(&self, id: FlowId, name: DedupDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let query = Query::Fields(key_of_report(id, name), &["payload"]);
        let record = self.read_confirmed(vec![query]).await?.record()?;
        Ok(record.and_then(|mut record| match record.fields.remove("payload") {
            Some(Value::Bytes(payload)) => Some(payload),
            _ => None,
        }))
    }

    async fn deliveries(&self, id: FlowId) -> Result<Vec<FlowDelivery>, StoreError> {
        let listed = self.read(vec![Query::all_entries(key_of_webhooks(id))]).await?.entries()?;
        let decode = |entry: Vec<Value>| match <[Value; 2]>::try_from(entry) {
            Ok([Value::Bytes(name), Value::Text(summary)]) => Some((DedupDigest(name.try_into().ok()?), summary)),
            _ => None,
        };
        let listed: Option<Vec<_>> = listed.into_iter().map(decode).collect();
        let listed = listed.ok_or_else(|| StoreError::unreadable("the webhooks of a flow"))?;
        let queries = listed.iter().map(|(webhook, _)| Query::Fields(key_of_report(id, *webhook), delivery::FIELDS));
        let mut answers = self.read(queries.collect()).await?;
        let mut deliveries = Vec::with_capacity(listed.len());
        for (webhook, summary) in listed {
            let Some(record) = answers.record()? else { continue };
            let delivery = delivery::decode_delivery(id.partition(), &record)?;
            deliveries.extend(delivery.map(|delivery| FlowDelivery { webhook, summary, delivery }));
        }
        Ok(deliveries)
    }

    async fn receiver(&self, app: AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        let Some(record) = self.record(tenancy::key_of_app(&app)).await? else { return Ok(None) };
        let urls = record.has("urls").then(|| unseal_urls(self.vault(), &app, record.bytes("urls"))).transpose()?;
        Ok(Some((unseal_app(self.vault(), &app, record.bytes("record"))?, urls.unwrap_or_default())))
    }

    async fn commit(&self, commit: Commit) -> Result<CommitOutcome, StoreError> {
        let (id, name) = (commit.id, commit.name);
        let mut answers = self
            .read(vec![
                Query::Fields(key_of_flow(id), &["app", "fetches"]),
                Query::Record(key_of_webhook_name(id.partition(), name)),
                Query::Fields(key_of_report(id, name), &["until"]),
            ])
            .await?;
        let (flow, owner, is_reported) = (answers.record()?, answers.record()?, answers.record()?.is_some());
        let snapshot = transitions::Snapshot { flow, owner, is_reported };
        match transitions::build_commit(self.vault(), commit, &snapshot, new_call_id(), self.node())? {
            Ok((batch, numbering_op)) => Ok(transitions::commit_outcome(id, numbering_op, &self.commit(batch).await?)),
            Err(outcome) => Ok(outcome),
        }
    }
}

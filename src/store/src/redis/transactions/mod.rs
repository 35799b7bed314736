//! Transactions: opening, completing, expiring and reading them.

mod complete;
mod credentials;
mod expire;
mod records;

use sakshi_domain::ids::TxnId;
use sakshi_domain::tenancy::App;
use sakshi_domain::transaction::Pending;
use tokio::sync::broadcast;

use super::arguments::arguments;
use super::idempotency::asked;
use super::keys;
use super::reply::Reply;
use super::script::{CONFIRM_TRANSACTION, LOAD_TRANSACTION, OPEN_TRANSACTION, WATCH_TRANSACTION};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::sealing::seal_terms;
use crate::transactions::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, OpenOutcome, OpenTransaction, TransactionRecord, Transactions, refusal,
};

impl Transactions for RedisStore {
    /// Everything is looked for in the partition that the transaction's id names: a client or an
    /// event of another partition is not found.
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.run(|store| async move {
            let OpenTransaction { pending, cost, idempotency } = open;
            let Pending { id, client, app, event, opened_at, expires_at, terms } = &*pending;
            let (id, partition) = (*id, id.partition());
            let [event_key, registrations, waiting] = keys::event(partition, *event);
            let [events_of_app, ends_of_app] = keys::events_of_app(partition, app);
            let ledger = keys::ledger(partition, client);
            let keys = vec![
                keys::transaction(id),
                keys::client(partition, client),
                ledger.clone(),
                keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest)),
                event_key,
                waiting,
                registrations,
                ends_of_app,
                events_of_app,
            ];
            // No balance covers a cost beyond 64 bits.
            let effect = i64::try_from(cost).map_or(i64::MIN, |cost| -cost);
            let [request, answer, until] = asked(idempotency.as_ref());
            let args = arguments![
                id.as_bytes(),
                client.as_str(),
                app.as_str(),
                event.map(|event| event.to_string()),
                *opened_at,
                *expires_at,
                seal_terms(&store.vault, id, terms)?,
                terms.webhook_url.as_ref().map(|url| url.origin()),
                cost,
                effect,
                store.retention.expired,
                request,
                answer,
                until,
                store.node.to_string(),
            ];
            let mut answer = store.call(&OPEN_TRANSACTION, keys, args).await?.fields()?;
            Ok(match answer.text()?.as_str() {
                "opened" => {
                    let (balance, entries) = (answer.parsed()?, answer.parsed()?);
                    store.link.loss_guard().record(partition.number(), ledger, entries);
                    OpenOutcome::Opened { balance }
                }
                "unpaid" => store.confirm(OpenOutcome::InsufficientCredits).await?,
                "replayed" => OpenOutcome::Replayed(answer.sealed()?),
                "reused" => OpenOutcome::KeyReused,
                "refused" => store.confirm(OpenOutcome::EventRefused(refusal(answer.parsed()?)?)).await?,
                "no event" => store.confirm(OpenOutcome::EventNotFound).await?,
                _ => return Err(answer.unreadable()),
            })
        })
    }

    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.run(|store| async move { store.complete_transaction(complete).await })
    }

    fn expire_transaction(&self, id: TxnId) -> StoreFuture<ExpireOutcome> {
        self.run(move |store| async move { store.expire_transaction(id).await })
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move { store.load_transaction(id).await })
    }

    fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move {
            let args = arguments![store.node.to_string()];
            store.confirmed(id, store.call(&WATCH_TRANSACTION, vec![keys::transaction(id)], args).await?).await
        })
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.run(move |store| async move {
            let Some(record) = store.load_transaction(id).await? else { return Ok(None) };
            let app = store.load_app(&record.opened().app).await?;
            Ok(Some((record, app)))
        })
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        Some(self.shared.ended_elsewhere.subscribe())
    }
}

impl Shared {
    async fn load_transaction(&self, id: TxnId) -> Result<Option<TransactionRecord>, StoreError> {
        self.confirmed(id, self.call(&LOAD_TRANSACTION, vec![keys::transaction(id)], vec![]).await?).await
    }

    /// The record of a reply. One that has ended is read again, behind the replicas if writes wait for them: whoever is told of the end
    /// does not ask again, so no failover may lose it.
    async fn confirmed(&self, id: TxnId, reply: Reply) -> Result<Option<TransactionRecord>, StoreError> {
        let record = self.record(id, reply).await?;
        if !matches!(record, Some(TransactionRecord::Completed(_))) || !self.link.waits_for_replicas() {
            return Ok(record);
        }
        self.record(id, self.call(&CONFIRM_TRANSACTION, vec![keys::transaction(id)], vec![]).await?).await
    }

    async fn record(&self, id: TxnId, reply: Reply) -> Result<Option<TransactionRecord>, StoreError> {
        match reply.optional_fields()? {
            Some(fields) => match records::transaction(&self.vault, id, fields)? {
                expired @ TransactionRecord::Expired(_) => self.confirm(Some(expired)).await,
                record => Ok(Some(record)),
            },
            None => self.confirm(None).await,
        }
    }
}

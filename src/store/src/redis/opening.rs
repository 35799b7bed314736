//! Opening transactions, and reading them and what is kept for their repetition.

use redis::Value;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::Pending;

use super::answer::{Fields, arguments, unreadable};
use super::script::{LOAD_IDEMPOTENT_ANSWER, LOAD_TRANSACTION, OPEN_TRANSACTION, WATCH_TRANSACTION};
use super::{Shared, keys, records};
use crate::error::StoreError;
use crate::record::TransactionRecord;
use crate::sealing::seal_terms;
use crate::transition::{IdempotencyScope, IdempotentAnswer, OpenOutcome, OpenTransaction};

impl Shared {
    /// Everything is looked for in the partition that the transaction's id names: a client or an
    /// event that belongs elsewhere is not found there.
    pub(super) async fn open_transaction(&self, open: OpenTransaction) -> Result<OpenOutcome, StoreError> {
        let OpenTransaction { pending, cost, idempotency } = open;
        let Pending { id, client, app, event, opened_at, expires_at, terms } = &*pending;
        let (id, partition) = (*id, id.partition());
        let [event_key, registrations, waiting] = keys::event(partition, *event);
        let [events_of_app, ends_of_app] = keys::events_of_app(partition, app);
        let keys = vec![
            keys::transaction(id),
            keys::client(partition, client),
            keys::ledger(partition, client),
            keys::idempotency(partition, idempotency.as_ref().map(|kept| &kept.scope.digest)),
            event_key,
            waiting,
            registrations,
            ends_of_app,
            events_of_app,
        ];
        // What is beyond 64 bits is beyond every balance.
        let effect = i64::try_from(cost).map_or(i64::MIN, |cost| -cost);
        let [request, answer, until] = records::asked(idempotency.as_ref());
        let args = arguments![
            id.as_bytes(),
            client.as_str(),
            app.as_str(),
            event.map(|event| event.to_string()),
            *opened_at,
            *expires_at,
            seal_terms(&self.vault, id, terms)?,
            terms.webhook_url.as_ref().map(|url| url.origin()),
            cost,
            effect,
            self.retention.expired,
            request,
            answer,
            until,
            self.node.to_string(),
        ];
        let mut answer = Fields::of("the answer to an opening", self.call(&OPEN_TRANSACTION, keys, args).await?)?;
        Ok(match answer.text()?.as_str() {
            "opened" => OpenOutcome::Opened { balance: answer.parsed()? },
            "unpaid" => self.absent(OpenOutcome::InsufficientCredits).await?,
            "replayed" => OpenOutcome::Replayed(answer.sealed()?),
            "reused" => OpenOutcome::KeyReused,
            "refused" => OpenOutcome::EventRefused(records::refusal(&answer.text()?)?),
            "no event" => self.absent(OpenOutcome::EventNotFound).await?,
            _ => return Err(unreadable("the answer to an opening")),
        })
    }

    pub(super) async fn load_transaction(&self, id: TxnId) -> Result<Option<TransactionRecord>, StoreError> {
        self.loaded(id, self.call(&LOAD_TRANSACTION, vec![keys::transaction(id)], vec![]).await?).await
    }

    pub(super) async fn watch_transaction(&self, id: TxnId) -> Result<Option<TransactionRecord>, StoreError> {
        let args = arguments![self.node.to_string()];
        self.loaded(id, self.call(&WATCH_TRANSACTION, vec![keys::transaction(id)], args).await?).await
    }

    async fn loaded(&self, id: TxnId, answer: Value) -> Result<Option<TransactionRecord>, StoreError> {
        match Fields::maybe("a transaction", answer)? {
            Some(fields) => records::transaction(&self.vault, id, fields).map(Some),
            None => self.absent(None).await,
        }
    }

    pub(super) async fn load_idempotent_answer(&self, scope: IdempotencyScope) -> Result<Option<IdempotentAnswer>, StoreError> {
        let key = keys::idempotency(scope.partition, Some(&scope.digest));
        records::idempotent(scope, self.call(&LOAD_IDEMPOTENT_ANSWER, vec![key], vec![]).await?)
    }
}

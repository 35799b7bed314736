//! Transactions.

use std::sync::Arc;

use sakshi_domain::event::{EventTerms, OnDuplicate};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use tokio::sync::broadcast;

use super::{Store, call, count, is_done};
use crate::engine::{Applied, Query, Record};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::evidence::evidence;
use crate::records::transaction::{seen_of, transaction, transaction_of};
use crate::records::{client, credential, event, tenancy};
use crate::redis::NodeId;
use crate::sealing::{seal_terms, unseal_app, unseal_event};
use crate::transactions::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, OpenOutcome, OpenTransaction, TransactionRecord,
    TransactionSummary,
};
use crate::transitions::guests::{self, People};
use crate::transitions::{complete, credential as memory, event as events, open, summary};
use crate::vault::Sealed;

impl Store {
    /// Checks that the event, if there is one, takes guests now; checks and debits the balance; writes the transaction
    /// with its ledger entry; counts the scan; and stores the response for its idempotency key. Does all of it or
    /// nothing. Repeatable by transaction id.
    pub fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.run(|store| async move {
            store.open_all(vec![open]).await?.pop().unwrap_or_else(|| Err(StoreError::unreadable("an answer")))
        })
    }

    /// Does [`Store::open_transaction`] for several transactions, each by itself; those of one client in this order,
    /// and in one step of the engine. After an error each of them may have been opened or not.
    pub fn open_transactions(&self, opens: Vec<OpenTransaction>) -> StoreFuture<Vec<Result<OpenOutcome, StoreError>>> {
        count("open_transaction", opens.len());
        let store = self.clone();
        Box::pin(async move { store.open_all(opens).await })
    }

    /// Ends a pending transaction that is in time by the store's clock, remembers its credential
    /// and queues its webhook if it has a URL. A guest who passed is registered if the event has a
    /// place *now*, and ends as refused otherwise; only a registration queues the event's webhook,
    /// to its current URL. Repeatable by transaction id and answer.
    pub fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.run(|store| async move {
            let (call, mut known) = (call(), complete.known.clone());
            let mut known_event = known.as_ref().and_then(|pending| pending.event);
            for attempt in 0..ATTEMPTS {
                let mut read = store.read_for(&complete, known.take(), known_event).await?;
                // Most people are new: guards detect the others.
                read.people = store.people(&complete, &read, attempt > 0).await?;
                let of_event = read.transaction.as_ref().and_then(|record| record.opened().event);
                if of_event != known_event && read.transaction.is_some() {
                    known_event = of_event;
                    continue;
                }
                let completion = match complete::complete(
                    store.vault(),
                    &complete,
                    &read,
                    call,
                    store.node(),
                    store.keeps_consents(),
                ) {
                    Ok(completion) => completion,
                    Err(outcome) => match *outcome {
                        final_one @ (CompleteOutcome::NotFound | CompleteOutcome::Expired) => {
                            return store.confirmed(final_one).await;
                        }
                        outcome => return Ok(outcome),
                    },
                };
                if let Some(outcome) = store.commit_completion(completion, &complete, &read).await? {
                    return Ok(outcome);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Ends the window of a pending transaction now, by the store's clock. Repeatable.
    pub fn expire_transaction(&self, id: TxnId) -> StoreFuture<ExpireOutcome> {
        self.run(move |store| async move {
            let mut answers = store.engine().read_confirmed(vec![Query::Record(transaction(id))]).await?;
            let opened = match seen_of(store.vault(), id, answers.record()?.as_ref(), answers.now)? {
                None => return store.confirmed(ExpireOutcome::NotFound).await,
                Some(TransactionRecord::Completed(record)) => return Ok(ExpireOutcome::AlreadyCompleted(record)),
                Some(TransactionRecord::Expired(opened)) => {
                    return store.confirmed(ExpireOutcome::Expired(opened)).await;
                }
                Some(TransactionRecord::Pending(opened)) => opened,
            };
            let applied = store.commit(complete::expire(&opened)).await?;
            complete::expired(store.vault(), &opened, applied)
        })
    }

    /// Returns the transaction, while it is retained.
    pub fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move {
            let mut answers = store.read(vec![Query::Record(transaction(id))]).await?;
            store.seen(id, answers.record()?, answers.now).await
        })
    }

    /// Returns summaries of transactions, in the order of the ids; `None` for one that is not retained.
    pub fn summarise_transactions(&self, ids: Vec<TxnId>) -> StoreFuture<Vec<Option<TransactionSummary>>> {
        self.run(|store| async move {
            let mut answers =
                store.read(ids.iter().map(|id| Query::Fields(transaction(*id), summary::FIELDS)).collect()).await?;
            let now = answers.now;
            ids.into_iter().map(|id| summary::summary_of(store.vault(), id, answers.record()?.as_ref(), now)).collect()
        })
    }

    /// Notes that the page of a transaction was opened, unless that was noted before or the transaction has ended.
    pub fn note_page(&self, id: TxnId) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(complete::note_page(id)).await.map(drop) })
    }

    /// Notes that the outcome of a transaction was fetched, unless that was noted before.
    pub fn note_poll(&self, id: TxnId) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(complete::note_poll(id)).await.map(drop) })
    }

    /// Returns the bytes from which the pages of a pending transaction make its intent.
    pub fn load_intent(&self, id: TxnId) -> StoreFuture<Option<Vec<u8>>> {
        self.run(move |store| async move {
            let record = store.read(vec![Query::Fields(transaction(id), &["intent"])]).await?.record()?;
            Ok(record.filter(|record| record.has("intent")).map(|record| record.bytes("intent").to_vec()))
        })
    }

    /// Returns the sealed proof of a completed transaction, if one was stored and its result is retained.
    pub fn load_evidence(&self, id: TxnId) -> StoreFuture<Option<Sealed>> {
        self.run(move |store| async move {
            let Some(kept) = store.record(evidence(id)).await? else { return store.confirmed(None).await };
            Sealed::from_bytes(kept.bytes("proof").to_vec()).map(Some).ok_or_else(|| StoreError::unreadable("evidence"))
        })
    }

    /// Loads as [`Store::load_transaction`] does, for a node that keeps a copy of a pending transaction:
    /// [`Store::ended_elsewhere`] reports when another node ends it.
    pub fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let mut answers = store.engine().read_confirmed(vec![Query::Record(transaction(id))]).await?;
                let (record, now) = (answers.record()?, answers.now);
                let watched = record.as_ref().filter(|_| store.engine().is_shared());
                let watches = match watched.and_then(|record| complete::watch(record, id, store.node())) {
                    Some(batch) => is_done(&store.commit(batch).await?),
                    None => true,
                };
                if watches {
                    return store.seen(id, record, now).await;
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Loads the transaction and its app for its webhook. A webhook may wait for longer than the result can be polled,
    /// so this also returns a result that can no longer be polled.
    pub fn load_transaction_with_app(
        &self,
        id: TxnId,
        app: AppId,
    ) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.run(move |store| async move {
            let mut answers =
                store.read(vec![Query::Record(transaction(id)), Query::Record(tenancy::app(&app))]).await?;
            let Some(record) = answers.record()? else { return store.confirmed(None).await };
            let found = transaction_of(store.vault(), id, &record, answers.now)?;
            let kept = answers.record()?;
            Ok(Some((found, kept.map(|kept| unseal_app(store.vault(), &app, kept.bytes("record"))).transpose()?)))
        })
    }

    /// Returns a receiver of transactions that this node opened or watches and another node ends from now on; `None`
    /// when there are no other nodes. A notice may be lost, so a waiting caller must also read the transaction from
    /// time to time.
    pub fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        self.0.ended_elsewhere.as_ref().map(broadcast::Sender::subscribe)
    }

    /// Returns true if other nodes use the same store.
    pub fn is_shared(&self) -> bool {
        self.engine().is_shared()
    }

    async fn open_all(&self, opens: Vec<OpenTransaction>) -> Result<Vec<Result<OpenOutcome, StoreError>>, StoreError> {
        self.has_room()?;
        let watcher = self.engine().is_shared().then(|| self.node());
        let (mut outcomes, mut openings, mut batches) = (Vec::with_capacity(opens.len()), Vec::new(), Vec::new());
        for (place, open) in opens.iter().enumerate() {
            let Pending { id, client, event, terms, .. } = &*open.pending;
            // No client has a transaction outside its own partition.
            outcomes.push(Ok(if event.is_some() {
                OpenOutcome::EventNotFound
            } else {
                OpenOutcome::InsufficientCredits
            }));
            if id.partition() == client.partition() {
                let sealed = seal_terms(self.vault(), *id, terms)?;
                let (batch, opening) = open::open(open, sealed, self.0.retention.expired, watcher);
                batches.push(batch);
                openings.push((place, client, opening));
            }
        }
        if !batches.is_empty() {
            let applied = self.engine().commit(batches).await?;
            for ((place, client, opening), applied) in openings.into_iter().zip(applied) {
                outcomes[place] = match opening.outcome(applied) {
                    Some(OpenOutcome::ScansPending) => self.open_behind(&opens[place], watcher).await,
                    outcome => self.opened(client, outcome).await,
                };
            }
        }
        Ok(outcomes)
    }

    /// Counts scans whose window has passed as abandoned, then opens the transaction of a guest.
    async fn open_behind(&self, open: &OpenTransaction, watcher: Option<NodeId>) -> Result<OpenOutcome, StoreError> {
        let Pending { id, client, event, terms, .. } = &*open.pending;
        let Some(event) = event else { return Ok(OpenOutcome::EventNotFound) };
        self.commit(events::abandon(client.partition(), *event)).await?;
        let (batch, opening) =
            open::open(open, seal_terms(self.vault(), *id, terms)?, self.0.retention.expired, watcher);
        let applied = self.commit(batch).await?;
        self.opened(client, opening.outcome(applied)).await
    }

    /// Returns the outcome of an opening, also when the transaction was opened before, or the refusal is final.
    async fn opened(&self, id: &ClientId, outcome: Option<OpenOutcome>) -> Result<OpenOutcome, StoreError> {
        match outcome {
            Some(
                refused @ (OpenOutcome::EventNotFound
                | OpenOutcome::EventRefused(_)
                | OpenOutcome::BudgetSpent
                | OpenOutcome::ScansPending
                | OpenOutcome::InsufficientCredits),
            ) => self.confirmed(refused).await,
            Some(outcome) => Ok(outcome),
            None => {
                let client = self.record(client::client(id)).await?.unwrap_or_default();
                Ok(OpenOutcome::Opened { balance: client.integer("balance").unsigned_abs() })
            }
        }
    }

    /// Returns the transaction that was read. A client stops polling at a final state, so a final state is confirmed by
    /// a second read behind the replicas: the first one may have been at a primary that was replaced before the
    /// servers were asked.
    async fn seen(
        &self,
        id: TxnId,
        record: Option<Record>,
        now: Timestamp,
    ) -> Result<Option<TransactionRecord>, StoreError> {
        let seen = seen_of(self.vault(), id, record.as_ref(), now)?;
        match seen {
            Some(TransactionRecord::Pending(_)) => return Ok(seen),
            Some(TransactionRecord::Completed(_)) => {}
            None | Some(TransactionRecord::Expired(_)) => self.confirmed(()).await?,
        }
        if !self.engine().may_be_ahead() {
            return Ok(seen);
        }
        let mut answers = self.engine().read_confirmed(vec![Query::Record(transaction(id))]).await?;
        seen_of(self.vault(), id, answers.record()?.as_ref(), answers.now)
    }

    /// Reads the records that decide a completion at this event. A known transaction without an event is assumed to be
    /// pending, and its credential to be new: if either is wrong, nothing is committed.
    async fn read_for(
        &self,
        command: &CompleteTransaction,
        known: Option<Arc<Pending>>,
        event: Option<EventId>,
    ) -> Result<complete::Snapshot, StoreError> {
        let known = known.map(Arc::unwrap_or_clone);
        if let (Some(pending), None) = (&known, event) {
            let now = pending.opened_at;
            let (transaction, people) = (known.map(TransactionRecord::Pending), People::default());
            return Ok(complete::Snapshot { transaction, event: None, memory: None, people, now });
        }
        let mut queries = vec![];
        queries.extend(known.is_none().then(|| Query::Record(transaction(command.id))));
        queries.extend(event.map(|id| Query::Record(event::event(command.id.partition(), id))));
        let presented = command.credential.as_ref();
        queries.extend(presented.map(|presented| Query::Record(credential::credential(&presented.digest))));
        let mut answers = self.engine().read_confirmed(queries).await?;
        let now = answers.now;
        Ok(complete::Snapshot {
            transaction: match known {
                Some(pending) => Some(TransactionRecord::Pending(pending)),
                None => seen_of(self.vault(), command.id, answers.record()?.as_ref(), now)?,
            },
            event: if event.is_some() { answers.record()? } else { None },
            memory: if presented.is_some() { answers.record()? } else { None },
            people: People::default(),
            now,
        })
    }

    /// Returns the people of the event that was read who matter for this guest; those who share a trait with the guest
    /// only on request.
    async fn people(
        &self,
        command: &CompleteTransaction,
        read: &complete::Snapshot,
        with_known: bool,
    ) -> Result<People, StoreError> {
        let event = read.transaction.as_ref().and_then(|record| record.opened().event).filter(|_| command.passed);
        let (Some(id), Some(record)) = (event, &read.event) else { return Ok(People::default()) };
        let EventTerms { on_duplicate, secret, .. } = unseal_event(self.vault(), id, record.bytes("terms"))?;
        if on_duplicate == OnDuplicate::Allow {
            return Ok(People { on_duplicate, ..People::default() });
        }
        let scores = guests::scores(&secret, &command.guest.traits);
        let mut known = Vec::new();
        if with_known {
            let index = event::event(command.id.partition(), id).of(&event::PEOPLE);
            let with = |score: &i64| Query::Members {
                index: index.clone(),
                above: score - 1,
                until: (*score).into(),
                offset: 0,
                limit: 2,
            };
            let mut answers = self.engine().read_confirmed(scores.iter().map(with).collect()).await?;
            for score in &scores {
                known.extend(
                    answers.members()?.iter().filter_map(|(member, _)| Some((*score, guests::guest_of(member)?))),
                );
            }
        }
        Ok(People { on_duplicate, scores, known })
    }

    /// Commits a completion of this call; `None` when the records have changed since they were read. Where places
    /// cannot be joined, the memory of the credential is reserved before, and released if the transaction does not end
    /// so.
    async fn commit_completion(
        &self,
        mut completion: complete::Completion,
        command: &CompleteTransaction,
        read: &complete::Snapshot,
    ) -> Result<Option<CompleteOutcome>, StoreError> {
        let reservation = completion.reservation.take();
        let reserved = match reservation {
            Some(reservation) if !self.engine().joins_places() => {
                if !memory::has_reserved(completion.call, &self.commit(reservation).await?) {
                    return Ok(None);
                }
                command.credential.map(|presented| (completion.call, presented))
            }
            Some(reservation) => {
                completion.batch.guards.extend(reservation.guards);
                // Results of the earlier operations keep their numbers.
                completion.batch.ops.extend(reservation.ops);
                None
            }
            None => None,
        };
        let batch = std::mem::take(&mut completion.batch);
        let applied = self.commit(batch).await?;
        if let (Applied::Refused { guard, .. }, Some(opened)) = (&applied, &read.transaction)
            && Some(*guard) == completion.week
        {
            let Pending { client, opened_at, .. } = opened.opened();
            self.begin_consents(client, *opened_at).await?;
        }
        let outcome = completion.outcome(&applied);
        // This answer has ended the transaction if another call changed the record before the retry.
        let has_ended_so =
            matches!(&applied, Applied::Refused { seen: Some(seen), .. } if seen.bytes("answer") == command.answer.0);
        if let (None, false, Some((call, presented))) = (&outcome, has_ended_so, reserved) {
            self.commit(memory::release(&presented, call, read.memory.as_ref())).await?;
        }
        Ok(outcome)
    }
}

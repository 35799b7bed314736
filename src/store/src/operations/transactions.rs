//! Transactions: opening, completing, expiring and reading them.

use std::sync::Arc;

use sakshi_domain::event::{EventTerms, OnDuplicate};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use tokio::sync::broadcast;

use super::{Store, count_calls, is_done, new_call_id};
use crate::engine::{Applied, Query, Record};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::evidence::key_of_evidence;
use crate::records::transaction::{decode_fetchable, decode_transaction, key_of_transaction};
use crate::records::{client, credential, event, tenancy};
use crate::redis::NodeId;
use crate::sealing::{seal_terms, unseal_app, unseal_event};
use crate::transactions::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, OpenOutcome, OpenTransaction, TransactionRecord,
    TransactionSummary,
};
use crate::transitions::guests::{self, DuplicateCheck};
use crate::transitions::{complete, credential as credential_use, event as events, open, summary};
use crate::vault::Sealed;

impl Store {
    /// Opens one transaction, as [`Store::open_transactions`] does. For tests and benchmarks.
    pub fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.run(|store| async move {
            store.open_all(vec![open]).await?.pop().unwrap_or_else(|| Err(StoreError::unreadable("an answer")))
        })
    }

    /// Opens transactions independently of each other. For each, one step checks that the event takes guests, debits
    /// the balance, writes the transaction and its ledger entry, counts the scan, and stores the response for the
    /// idempotency key. The transactions of a client are opened in this order. After an error each transaction may be
    /// open or not. Repeatable by transaction id.
    pub fn open_transactions(&self, opens: Vec<OpenTransaction>) -> StoreFuture<Vec<Result<OpenOutcome, StoreError>>> {
        count_calls("open_transaction", opens.len());
        let store = self.clone();
        Box::pin(async move { store.open_all(opens).await })
    }

    /// Completes a pending transaction whose window has not ended by the store's clock. Records the use of its
    /// credential, and queues its webhook if it has a URL. A guest who passed is registered if the event has a place
    /// *now*, and is refused otherwise. Only a registration queues the event's webhook, to its current URL. Repeatable
    /// by transaction id and answer.
    pub fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.run(|store| async move {
            // Only the first attempt relies on the caller's copy.
            let (call, mut own_copy) = (new_call_id(), complete.known.clone());
            let mut known_event = own_copy.as_ref().and_then(|pending| pending.event);
            for attempt in 0..ATTEMPTS {
                let mut snapshot = store.read_snapshot(&complete, own_copy.take(), known_event).await?;
                // Most people register once, so the first attempt reads no other guests: its guards detect a duplicate.
                let reads_guests = attempt > 0;
                snapshot.duplicates = store.read_duplicate_check(&complete, &snapshot, reads_guests).await?;
                let event = snapshot.transaction.as_ref().and_then(|record| record.opened().event);
                if event != known_event && snapshot.transaction.is_some() {
                    // The snapshot lacks the event: read it as well.
                    known_event = event;
                    continue;
                }
                let completion = match complete::complete(
                    store.vault(),
                    &complete,
                    &snapshot,
                    call,
                    store.node(),
                    store.keeps_consents(),
                ) {
                    Ok(completion) => completion,
                    Err(outcome) => match *outcome {
                        refused @ (CompleteOutcome::NotFound | CompleteOutcome::Expired) => {
                            return store.unless_records_were_lost(refused).await;
                        }
                        outcome => return Ok(outcome),
                    },
                };
                if let Some(outcome) = store.commit_completion(completion, &complete, &snapshot).await? {
                    return Ok(outcome);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Ends the window of a pending transaction now, by the store's clock. Repeatable.
    pub fn expire_transaction(&self, id: TxnId) -> StoreFuture<ExpireOutcome> {
        self.run(move |store| async move {
            let mut answers = store.read_confirmed(vec![Query::Record(key_of_transaction(id))]).await?;
            let opened = match decode_fetchable(store.vault(), id, answers.record()?.as_ref(), answers.now)? {
                None => return store.unless_records_were_lost(ExpireOutcome::NotFound).await,
                Some(TransactionRecord::Completed(record)) => return Ok(ExpireOutcome::AlreadyCompleted(record)),
                Some(TransactionRecord::Expired(opened)) => {
                    return store.unless_records_were_lost(ExpireOutcome::Expired(opened)).await;
                }
                Some(TransactionRecord::Pending(opened)) => opened,
            };
            let applied = store.commit(complete::expire(&opened)).await?;
            complete::expire_outcome(store.vault(), &opened, applied)
        })
    }

    /// Returns the transaction while it is retained.
    pub fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move {
            let mut answers = store.read(vec![Query::Record(key_of_transaction(id))]).await?;
            store.decode_confirmed(id, answers.record()?, answers.now).await
        })
    }

    /// Returns summaries of transactions, in the order of the ids; `None` for transactions that are not retained. A
    /// replaced primary does not answer: it may have what was erased since.
    pub fn summarise_transactions(&self, ids: Vec<TxnId>) -> StoreFuture<Vec<Option<TransactionSummary>>> {
        self.run(|store| async move {
            let mut answers = store
                .read_confirmed(ids.iter().map(|id| Query::Fields(key_of_transaction(*id), &summary::FIELDS)).collect())
                .await?;
            let now = answers.now;
            ids.into_iter()
                .map(|id| summary::decode_summary(store.vault(), id, answers.record()?.as_ref(), now))
                .collect()
        })
    }

    /// Records the first opening of a pending transaction's page.
    pub fn note_page(&self, id: TxnId) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(complete::note_page(id)).await.map(drop) })
    }

    /// Records the first fetch of a completed transaction's outcome.
    pub fn note_poll(&self, id: TxnId) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(complete::note_poll(id)).await.map(drop) })
    }

    /// Returns the bytes from which the pages of a pending transaction build its intent.
    pub fn load_intent(&self, id: TxnId) -> StoreFuture<Option<Vec<u8>>> {
        self.run(move |store| async move {
            let record = store.read(vec![Query::Fields(key_of_transaction(id), &["intent"])]).await?.record()?;
            Ok(record.filter(|record| record.has("intent")).map(|record| record.bytes("intent").to_vec()))
        })
    }

    /// Returns the sealed proof of a completed transaction, if one was stored and the result can still be fetched. A
    /// replaced primary does not answer: it may have what was erased since.
    pub fn load_evidence(&self, id: TxnId) -> StoreFuture<Option<Sealed>> {
        self.run(move |store| async move {
            let Some(record) = store.record_confirmed(key_of_evidence(id)).await? else {
                return store.unless_records_were_lost(None).await;
            };
            let proof = Sealed::from_bytes(record.bytes("proof").to_vec());
            proof.map(Some).ok_or_else(|| StoreError::unreadable("evidence"))
        })
    }

    /// Returns the transaction while it is retained, and makes this node a watcher while it is pending:
    /// [`Store::ended_elsewhere`] reports when another node ends it.
    pub fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let mut answers = store.read_confirmed(vec![Query::Record(key_of_transaction(id))]).await?;
                let (record, now) = (answers.record()?, answers.now);
                let shared = record.as_ref().filter(|_| store.engine().is_shared());
                let is_watcher = match shared.and_then(|record| complete::watch(record, id, store.node())) {
                    Some(batch) => is_done(&store.commit(batch).await?),
                    None => true,
                };
                if is_watcher {
                    return store.decode_confirmed(id, record, now).await;
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the transaction and its app, for its webhook. A webhook may be pending for longer than the result can be
    /// polled, so this also returns results that can no longer be polled.
    pub fn load_transaction_with_app(
        &self,
        id: TxnId,
        app: AppId,
    ) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.run(move |store| async move {
            let mut answers = store
                .read(vec![Query::Record(key_of_transaction(id)), Query::Record(tenancy::key_of_app(&app))])
                .await?;
            let Some(record) = answers.record()? else { return store.unless_records_were_lost(None).await };
            let transaction = decode_transaction(store.vault(), id, &record, answers.now)?;
            let app = answers.record()?.map(|record| unseal_app(store.vault(), &app, record.bytes("record")));
            Ok(Some((transaction, app.transpose()?)))
        })
    }

    /// Returns a receiver of the transactions that this node opened or watches and that another node ends from now on;
    /// `None` without other nodes. A notice may be lost, so a caller must also poll the transaction.
    pub fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        self.0.ended_elsewhere.as_ref().map(broadcast::Sender::subscribe)
    }

    /// Returns true if other nodes use the same store.
    pub fn is_shared(&self) -> bool {
        self.engine().is_shared()
    }

    /// Opens transactions in one step of the engine.
    async fn open_all(&self, opens: Vec<OpenTransaction>) -> Result<Vec<Result<OpenOutcome, StoreError>>, StoreError> {
        self.check_room()?;
        let watcher = self.engine().is_shared().then(|| self.node());
        let (mut outcomes, mut openings, mut batches) = (Vec::with_capacity(opens.len()), Vec::new(), Vec::new());
        for (index, open) in opens.iter().enumerate() {
            let Pending { id, client, event, terms, .. } = &*open.pending;
            // The outcome for an id outside the partition of its client, which no store has given out.
            outcomes.push(Ok(if event.is_some() {
                OpenOutcome::EventNotFound
            } else {
                OpenOutcome::InsufficientCredits
            }));
            if id.partition() == client.partition() {
                let sealed = seal_terms(self.vault(), *id, terms)?;
                let (batch, opening) = open::open(open, sealed, self.0.retention.expired, watcher);
                batches.push(batch);
                openings.push((index, client, opening));
            }
        }
        if !batches.is_empty() {
            let applied = self.engine().commit(batches).await?;
            for ((index, client, opening), applied) in openings.into_iter().zip(applied) {
                outcomes[index] = match opening.outcome(applied) {
                    Some(OpenOutcome::ScansPending) => self.open_after_sweep(&opens[index], watcher).await,
                    outcome => self.final_outcome(client, outcome).await,
                };
            }
        }
        Ok(outcomes)
    }

    /// Counts scans whose window has passed as abandoned, then opens the transaction of a guest.
    async fn open_after_sweep(
        &self,
        open: &OpenTransaction,
        watcher: Option<NodeId>,
    ) -> Result<OpenOutcome, StoreError> {
        let Pending { id, client, event, terms, .. } = &*open.pending;
        let Some(event) = event else { return Ok(OpenOutcome::EventNotFound) };
        self.commit(events::abandon(client.partition(), *event)).await?;
        let (batch, opening) =
            open::open(open, seal_terms(self.vault(), *id, terms)?, self.0.retention.expired, watcher);
        let applied = self.commit(batch).await?;
        self.final_outcome(client, opening.outcome(applied)).await
    }

    /// Confirms a final refusal of an opening. `None` means that an earlier call opened the transaction, and gives the
    /// current balance.
    async fn final_outcome(&self, id: &ClientId, outcome: Option<OpenOutcome>) -> Result<OpenOutcome, StoreError> {
        match outcome {
            Some(
                refused @ (OpenOutcome::EventNotFound
                | OpenOutcome::EventRefused(_)
                | OpenOutcome::BudgetSpent
                | OpenOutcome::ScansPending
                | OpenOutcome::InsufficientCredits),
            ) => self.unless_records_were_lost(refused).await,
            Some(outcome) => Ok(outcome),
            None => {
                let client = self.record(client::key_of_client(id)).await?.unwrap_or_default();
                Ok(OpenOutcome::Opened { balance: client.integer("balance").unsigned_abs() })
            }
        }
    }

    /// Decodes the transaction in a record. A client stops polling at a final state, so that state must survive a
    /// failover: it is read again with confirmation of the replicas. The first read may have reached a primary that was
    /// replaced before the servers were asked.
    async fn decode_confirmed(
        &self,
        id: TxnId,
        record: Option<Record>,
        now: Timestamp,
    ) -> Result<Option<TransactionRecord>, StoreError> {
        let decoded = decode_fetchable(self.vault(), id, record.as_ref(), now)?;
        match decoded {
            Some(TransactionRecord::Pending(_)) => return Ok(decoded),
            Some(TransactionRecord::Completed(_)) => {}
            None | Some(TransactionRecord::Expired(_)) => self.unless_records_were_lost(()).await?,
        }
        if !self.engine().may_be_ahead() {
            return Ok(decoded);
        }
        let mut answers = self.read_confirmed(vec![Query::Record(key_of_transaction(id))]).await?;
        decode_fetchable(self.vault(), id, answers.record()?.as_ref(), answers.now)
    }

    /// Reads the records that decide a completion. If `own_copy` is a transaction without an event, nothing is read: it
    /// is assumed to be pending, and its credential to be unused. If either assumption is wrong, the guards refuse the
    /// batch.
    async fn read_snapshot(
        &self,
        command: &CompleteTransaction,
        own_copy: Option<Arc<Pending>>,
        event: Option<EventId>,
    ) -> Result<complete::Snapshot, StoreError> {
        let own_copy = own_copy.map(Arc::unwrap_or_clone);
        if let (Some(pending), None) = (&own_copy, event) {
            let now = pending.opened_at;
            let (transaction, duplicates) = (own_copy.map(TransactionRecord::Pending), DuplicateCheck::default());
            return Ok(complete::Snapshot { transaction, event: None, last_use: None, duplicates, now });
        }
        let mut queries = vec![];
        queries.extend(own_copy.is_none().then(|| Query::Record(key_of_transaction(command.id))));
        queries.extend(event.map(|id| Query::Record(event::key_of_event(command.id.partition(), id))));
        let presented = command.credential.as_ref();
        queries.extend(presented.map(|presented| Query::Record(credential::key_of_credential(&presented.digest))));
        let mut answers = self.read_confirmed(queries).await?;
        let now = answers.now;
        Ok(complete::Snapshot {
            transaction: match own_copy {
                Some(pending) => Some(TransactionRecord::Pending(pending)),
                None => decode_fetchable(self.vault(), command.id, answers.record()?.as_ref(), now)?,
            },
            event: if event.is_some() { answers.record()? } else { None },
            last_use: if presented.is_some() { answers.record()? } else { None },
            duplicates: DuplicateCheck::default(),
            now,
        })
    }

    /// Returns the event's handling of duplicates, with the scores of the guest's traits. Reads the guests who share a
    /// trait only if `reads_guests` is true.
    async fn read_duplicate_check(
        &self,
        command: &CompleteTransaction,
        snapshot: &complete::Snapshot,
        reads_guests: bool,
    ) -> Result<DuplicateCheck, StoreError> {
        let event = snapshot.transaction.as_ref().and_then(|record| record.opened().event).filter(|_| command.passed);
        let (Some(id), Some(record)) = (event, &snapshot.event) else { return Ok(DuplicateCheck::default()) };
        let EventTerms { on_duplicate, secret, .. } = unseal_event(self.vault(), id, record.bytes("terms"))?;
        if on_duplicate == OnDuplicate::Allow {
            return Ok(DuplicateCheck { on_duplicate, ..DuplicateCheck::default() });
        }
        let scores = guests::trait_scores(&secret, &command.guest.traits);
        let mut guests_by_score = Vec::new();
        if reads_guests {
            let index = event::key_of_event(command.id.partition(), id).in_table(&event::PEOPLE);
            // Besides this guest, one other suffices.
            let limit = 2;
            let members = |score: i64| Query::Members {
                index: index.clone(),
                above: score - 1,
                until: score.into(),
                offset: 0,
                limit,
            };
            let first_and_later = |score: &i64| [*score, guests::score_of_later_guests(*score)].map(members);
            let mut answers = self.read_confirmed(scores.iter().flat_map(first_and_later).collect()).await?;
            for score in scores.iter().flat_map(|score| [*score; 2]) {
                guests_by_score.extend(
                    answers.members()?.iter().filter_map(|(member, _)| Some((score, guests::decode_member(member)?))),
                );
            }
        }
        Ok(DuplicateCheck { on_duplicate, scores, guests_by_score })
    }

    /// Commits a completion; `None` if the records have changed since the snapshot. If one batch cannot span several
    /// partitions, the use of the credential is recorded first, and undone if the transaction is not completed.
    async fn commit_completion(
        &self,
        mut completion: complete::Completion,
        command: &CompleteTransaction,
        snapshot: &complete::Snapshot,
    ) -> Result<Option<CompleteOutcome>, StoreError> {
        let reservation = completion.reservation.take();
        let separate_reservation = match reservation {
            Some(reservation) if !self.engine().joins_places() => {
                if !credential_use::has_reserved(completion.call, &self.commit(reservation).await?) {
                    return Ok(None);
                }
                command.credential.map(|presented| (completion.call, presented))
            }
            Some(reservation) => {
                completion.batch.guards.extend(reservation.guards);
                // Appended last, so that the indexes of the other operations stay valid.
                completion.batch.ops.extend(reservation.ops);
                None
            }
            None => None,
        };
        let batch = std::mem::take(&mut completion.batch);
        let applied = self.commit(batch).await?;
        if let (Applied::Refused { guard, .. }, Some(opened)) = (&applied, &snapshot.transaction)
            && Some(*guard) == completion.week_guard
        {
            let Pending { client, opened_at, .. } = opened.opened();
            self.begin_consents(client, *opened_at).await?;
        }
        let outcome = completion.outcome(&applied);
        // The same answer completed the transaction, possibly through an earlier attempt of this call.
        let has_same_answer = match &applied {
            Applied::Refused { record: Some(record), .. } => record.bytes("answer") == command.answer.0,
            _ => false,
        };
        if let (None, false, Some((call, presented))) = (&outcome, has_same_answer, separate_reservation) {
            self.commit(credential_use::release(&presented, call, snapshot.last_use.as_ref())).await?;
        }
        Ok(outcome)
    }
}

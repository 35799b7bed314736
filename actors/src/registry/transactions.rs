//! The transaction registry: what a shard does for transactions alone.
//!
//! A pending transaction has an actor from the moment it is opened, or asked about, until its end;
//! one that has ended is answered from its record.

use std::sync::Arc;

use actix::{Addr, Handler, Message, ResponseFuture};
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{OpenOutcome, OpenTransaction, StoreError, StoreFuture, TransactionRecord};

use super::Unanswered;
use super::shard::{Copied, Live, Question, Registry};
use crate::transaction::{EndedElsewhere, Open, Surroundings, TransactionActor, TransactionQuestion};

/// One shard of the registry.
pub(crate) type TransactionRegistry = Registry<TransactionActor>;

impl Live for TransactionActor {
    type Id = TxnId;
    type Ground = Arc<Surroundings>;
    const KIND: &'static str = "transaction";

    fn clock(around: &Arc<Surroundings>) -> &dyn Clock {
        &*around.clock
    }
}

impl Copied for TransactionActor {
    type Record = TransactionRecord;
    // Those that are pending were all let in when they were opened; their answers must get through.
    const ADOPTED_WHEN_FULL: bool = true;

    fn load(around: &Arc<Surroundings>, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        around.store.load_transaction(id)
    }

    fn watch(around: &Arc<Surroundings>, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        around.store.watch_transaction(id)
    }

    fn terms(record: &TransactionRecord) -> (TxnId, Timestamp) {
        (record.opened().id, record.opened().expires_at)
    }

    fn adopted(record: TransactionRecord, around: &Arc<Surroundings>) -> Self {
        Self::adopted(record, Arc::clone(around))
    }
}

impl<Q: TransactionQuestion> Question<TransactionActor> for Q {
    type Answer = <Q as TransactionQuestion>::Answer;

    fn unknown(&self) -> Self::Answer {
        TransactionQuestion::unknown(self)
    }

    fn of_record(&self, record: TransactionRecord, around: &Arc<Surroundings>) -> Result<Self::Answer, TransactionRecord> {
        match record {
            TransactionRecord::Completed(record) => Ok(self.completed(record)),
            TransactionRecord::Pending(pending) if pending.is_expired(around.clock.now()) => Ok(self.expired(Arc::new(pending))),
            TransactionRecord::Pending(pending) if self.is_a_look(around) => {
                self.waiting(&pending).ok_or(TransactionRecord::Pending(pending))
            }
            waiting @ TransactionRecord::Pending(_) => Err(waiting),
        }
    }

    fn visitor(&self, around: &Arc<Surroundings>) -> Option<(TransactionActor, Timestamp)> {
        let pending = self.known().filter(|pending| !pending.is_expired(around.clock.now()))?;
        Some((TransactionActor::visiting(Arc::clone(pending), Arc::clone(around)), pending.expires_at))
    }

    /// Where nodes share a store, an actor would look into it again: it may have been ended elsewhere.
    fn is_a_look(&self, around: &Arc<Surroundings>) -> bool {
        Q::LOOKS && around.shared
    }
}

/// Opens a transaction on this shard.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<Result<OpenOutcome, StoreError>, Unanswered>")]
pub(crate) struct OpenHere(pub(crate) Arc<OpenTransaction>);

impl Handler<OpenHere> for TransactionRegistry {
    type Result = ResponseFuture<Result<Result<OpenOutcome, StoreError>, Unanswered>>;

    fn handle(&mut self, OpenHere(open): OpenHere, _: &mut Self::Context) -> Self::Result {
        let (id, deadline) = (open.pending.id, open.pending.expires_at);
        let child: Addr<TransactionActor> = match self.children.get(&id) {
            Some(child) => child.clone(),
            None if self.is_full() => return Box::pin(async { Err(Unanswered::Full) }),
            None => self.start_timed_child(id, deadline, TransactionActor::unopened(id, Arc::clone(&self.ground))),
        };
        let ask = child.send(Open(open));
        Box::pin(async move { Ok(ask.await?) })
    }
}

/// Another node has ended this transaction.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Changed(pub(crate) TxnId);

impl Handler<Changed> for TransactionRegistry {
    type Result = ();

    fn handle(&mut self, Changed(id): Changed, _: &mut Self::Context) {
        if let Some(child) = self.children.get(&id) {
            child.do_send(EndedElsewhere);
        }
    }
}

/// Makes one transaction's actor, or the registry itself, panic.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Detonate(pub(crate) Option<TxnId>);

#[cfg(test)]
impl Handler<Detonate> for TransactionRegistry {
    type Result = ();
    fn handle(&mut self, Detonate(id): Detonate, _: &mut Self::Context) {
        match id {
            Some(id) => self.children.get(&id).unwrap().do_send(crate::transaction::Detonate),
            None => panic!("as the test asked"),
        }
    }
}

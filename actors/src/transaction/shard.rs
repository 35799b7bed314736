//! What a shard does for transactions alone.
//!
//! A pending transaction has an actor from the moment it is opened, or asked about, until its end;
//! one that has ended is answered from its record.

use std::sync::Arc;

use actix::{Handler, ResponseFuture};
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{OpenOutcome, StoreFuture, TransactionRecord};
use sakshi_supervision::{Shard, ShardActor};

use super::actor::{TransactionActor, TransactionContext};
use super::message::{EndedElsewhere, Open, TransactionQuestion, View};
use crate::ask::{Question, RecordActor, start_until};
use crate::router::{Answered, Unanswered};

impl ShardActor for TransactionActor {
    type Id = TxnId;
    type Shared = Arc<TransactionContext>;
    const KIND: &'static str = "transaction";

    fn random_byte(id: &TxnId) -> u8 {
        id.as_bytes()[15]
    }

    fn shard_byte(id: &TxnId) -> u8 {
        id.shard_byte()
    }

    fn now_millis(context: &Arc<TransactionContext>) -> i64 {
        context.clock.now().millis()
    }
}

impl RecordActor for TransactionActor {
    type Record = TransactionRecord;
    // A pending transaction was admitted when it was opened; its answer must get through.
    const STARTED_WHEN_FULL: bool = true;

    fn load(context: &Arc<TransactionContext>, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        context.store.load_transaction(id)
    }

    fn load_for_actor(context: &Arc<TransactionContext>, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        context.store.watch_transaction(id)
    }

    fn id_and_deadline(record: &TransactionRecord) -> (TxnId, Timestamp) {
        (record.opened().id, record.opened().expires_at)
    }

    fn from_record(record: TransactionRecord, context: &Arc<TransactionContext>) -> Self {
        Self::from_record(record, Arc::clone(context))
    }
}

impl<Q: TransactionQuestion> Question<TransactionActor> for Q {
    type Answer = <Q as TransactionQuestion>::Answer;

    fn unknown(&self) -> Self::Answer {
        self.answer(View::Unknown)
    }

    fn of_record(&self, record: TransactionRecord, context: &Arc<TransactionContext>) -> Result<Self::Answer, TransactionRecord> {
        let view = match record {
            TransactionRecord::Pending(pending) if pending.is_expired(context.clock.now()) => View::Expired(Arc::new(pending)),
            TransactionRecord::Pending(_) if !self.needs_no_actor(context) => return Err(record),
            record => record.into(),
        };
        Ok(self.answer(view))
    }

    fn temporary_actor(&self, context: &Arc<TransactionContext>) -> Option<(TransactionActor, Timestamp)> {
        let pending = self.known().filter(|pending| !pending.is_expired(context.clock.now()))?;
        Some((TransactionActor::temporary(Arc::clone(pending), Arc::clone(context)), pending.expires_at))
    }

    /// Where nodes share a store, an actor would read the record again: another node may have ended the transaction.
    fn needs_no_actor(&self, context: &Arc<TransactionContext>) -> bool {
        Q::READ_ONLY && context.shared_store
    }
}

impl Handler<Open> for Shard<TransactionActor> {
    type Result = ResponseFuture<Answered<OpenOutcome>>;

    fn handle(&mut self, open: Open, _: &mut Self::Context) -> Self::Result {
        let (id, deadline) = (open.0.pending.id, open.0.pending.expires_at);
        let actor = match self.get(&id) {
            Some(actor) => actor.clone(),
            None if self.is_full() => return Box::pin(async { Err(Unanswered::Full) }),
            None => {
                let actor = TransactionActor::unopened(id, Arc::clone(self.shared()));
                start_until(self, id, deadline, actor)
            }
        };
        let ask = actor.send(open);
        Box::pin(async move { ask.await? })
    }
}

impl Handler<EndedElsewhere> for Shard<TransactionActor> {
    type Result = ();

    fn handle(&mut self, ended: EndedElsewhere, _: &mut Self::Context) {
        if let Some(actor) = self.get(&ended.0) {
            actor.do_send(ended);
        }
    }
}

//! Behaviour of a shard that is specific to transactions.
//!
//! A pending transaction has an actor from its opening, or the first question that starts one, until its end. An ended
//! one is answered from its record.

use std::sync::Arc;

use actix::Handler;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{StoreFuture, TransactionRecord};
use sakshi_supervision::{Shard, ShardActor};

use super::actor::{TransactionActor, TransactionContext};
use super::message::{
    Complete, CompleteReply, EndedElsewhere, Expire, GetTransaction, Opened, Subscribe, View, Watcher,
};
use crate::ask::{Question, RecordActor, start_until};

impl ShardActor for TransactionActor {
    type Id = TxnId;
    type Shared = Arc<TransactionContext>;
    const KIND: &'static str = "transaction";

    /// Byte 15 of a transaction's id is random.
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
    // A pending transaction was admitted when it was opened; its answer must not be refused.
    const STARTS_WHEN_FULL: bool = true;

    fn load(context: &Arc<TransactionContext>, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        context.store.load_transaction(id)
    }

    fn deadline(record: &TransactionRecord) -> Timestamp {
        record.opened().expires_at
    }

    /// Builds a copy that reads the record once more, with all questions waiting behind it: the transaction may have
    /// ended since the shard read it.
    fn from_record(record: TransactionRecord, context: &Arc<TransactionContext>) -> Self {
        Self::copy(record.opened().id, Arc::clone(context))
    }
}

/// Returns true if the transaction still waits for the person.
const fn is_pending(record: &TransactionRecord) -> bool {
    matches!(record, TransactionRecord::Pending(_))
}

/// On a shared store, another node may have ended the transaction, so an actor would have to read the record again.
/// There the record that the shard has read is the answer, and no actor starts.
impl Question<TransactionActor> for GetTransaction {
    type Answer = View;

    fn answer_without_record(&self) -> View {
        View::Unknown
    }

    fn try_answer(
        &self,
        record: TransactionRecord,
        context: &Arc<TransactionContext>,
    ) -> Result<View, TransactionRecord> {
        if is_pending(&record) && !context.shared_store { Err(record) } else { Ok(record.into()) }
    }
}

impl Question<TransactionActor> for Subscribe {
    type Answer = Option<Watcher>;

    fn answer_without_record(&self) -> Option<Watcher> {
        None
    }

    fn try_answer(
        &self,
        record: TransactionRecord,
        _: &Arc<TransactionContext>,
    ) -> Result<Option<Watcher>, TransactionRecord> {
        if is_pending(&record) { Err(record) } else { Ok(None) }
    }
}

impl Question<TransactionActor> for Expire {
    type Answer = View;

    fn answer_without_record(&self) -> View {
        View::Unknown
    }

    fn try_answer(&self, record: TransactionRecord, _: &Arc<TransactionContext>) -> Result<View, TransactionRecord> {
        if is_pending(&record) { Err(record) } else { Ok(record.into()) }
    }
}

impl Question<TransactionActor> for Complete {
    type Answer = CompleteReply;

    fn answer_without_record(&self) -> CompleteReply {
        CompleteReply::Unknown
    }

    fn try_answer(
        &self,
        record: TransactionRecord,
        _: &Arc<TransactionContext>,
    ) -> Result<CompleteReply, TransactionRecord> {
        if is_pending(&record) { Err(record) } else { Ok(self.reply(record.into())) }
    }

    fn temporary_actor(&self, context: &Arc<TransactionContext>) -> Option<(TransactionActor, Timestamp)> {
        let pending = self.known.as_ref().filter(|pending| !context.is_over(pending))?;
        Some((TransactionActor::temporary(Arc::clone(pending), Arc::clone(context)), pending.expires_at))
    }
}

impl Handler<Opened> for Shard<TransactionActor> {
    type Result = ();

    fn handle(&mut self, Opened(pending): Opened, _: &mut Self::Context) {
        let (id, deadline) = (pending.id, pending.expires_at);
        if self.get(&id).is_none() {
            let actor = TransactionActor::opened(pending, Arc::clone(self.shared()));
            start_until(self, id, deadline, actor);
        }
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

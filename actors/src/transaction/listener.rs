//! Receives notices of transactions that other nodes have ended, and stops their actors on this node.
//!
//! A notice is only a hint. If a notice is lost or late, a waiting caller learns of the end at its next check.

use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, StreamHandler, Supervised};
use futures_util::stream::{Stream, unfold};
use sakshi_domain::ids::TxnId;
use sakshi_store::Store;
use sakshi_supervision::Shards;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::actor::TransactionActor;
use super::message::EndedElsewhere;

/// Routes notices of transactions that ended on other nodes to the shards.
#[derive(Debug)]
pub(crate) struct ChangeListener {
    store: Store,
    transactions: Arc<Shards<TransactionActor>>,
}

impl ChangeListener {
    /// Builds a listener for the shards of this node.
    pub(crate) const fn new(store: Store, transactions: Arc<Shards<TransactionActor>>) -> Self {
        Self { store, transactions }
    }
}

impl Actor for ChangeListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(ended_ids) = self.store.ended_elsewhere() {
            ctx.add_stream(stream_ids(ended_ids));
        }
    }
}

/// Streams the ids of transactions that other nodes have ended. Skips those that this node was too slow to receive.
fn stream_ids(receiver: Receiver<TxnId>) -> impl Stream<Item = TxnId> {
    unfold(receiver, |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok(id) => return Some((id, receiver)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

impl StreamHandler<TxnId> for ChangeListener {
    fn handle(&mut self, id: TxnId, _: &mut Self::Context) {
        if let Some(shard) = self.transactions.shard_of(&id) {
            shard.do_send(EndedElsewhere(id));
        }
    }
}

impl Supervised for ChangeListener {}

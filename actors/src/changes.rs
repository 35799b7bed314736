//! Hears which transactions other nodes have ended, and tells the actors here that have a copy of them.
//!
//! A notice is only a hint: the store decides everything, so one that is lost or late costs a waiter its pause between
//! two looks and nothing else.

use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, StreamHandler, Supervised};
use futures_util::stream::{Stream, unfold};
use sakshi_domain::ids::TxnId;
use sakshi_store::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::door::Shards;
use crate::registry::{Changed, TransactionRegistry};

/// Routes notices to the shards.
#[derive(Debug)]
pub(crate) struct ChangeListener {
    store: Arc<dyn Store>,
    transactions: Arc<Shards<TransactionRegistry>>,
}

impl ChangeListener {
    /// A listener for the shards of this node.
    #[must_use]
    pub(crate) const fn new(store: Arc<dyn Store>, transactions: Arc<Shards<TransactionRegistry>>) -> Self {
        Self { store, transactions }
    }
}

impl Actor for ChangeListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(ended) = self.store.ended_elsewhere() {
            ctx.add_stream(heard(ended));
        }
    }
}

/// The notices as they come; those that this node was too slow for are left out.
fn heard(ended: Receiver<TxnId>) -> impl Stream<Item = TxnId> {
    unfold(ended, |mut ended| async move {
        loop {
            match ended.recv().await {
                Ok(id) => return Some((id, ended)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

impl StreamHandler<TxnId> for ChangeListener {
    fn handle(&mut self, id: TxnId, _: &mut Self::Context) {
        if let Some(shard) = self.transactions.get(self.transactions.index_of(id)) {
            shard.do_send(Changed(id));
        }
    }
}

impl Supervised for ChangeListener {}

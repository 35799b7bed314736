//! Hears what other nodes have changed, and tells the actors here that have a copy of it.
//!
//! A notice is only a hint: the copy of a transaction that has ended goes, that of an event is read again. The
//! store decides everything, so one that is lost or late costs a waiter its pause between two looks and nothing else.

use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, StreamHandler, Supervised};
use futures_util::stream::{Stream, unfold};
use sakshi_store::{Change, Store};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::door::Shards;
use crate::events::touch;
use crate::registry::{Changed, EventRegistry, TransactionRegistry};

/// Routes notices to the shards.
#[derive(Debug)]
pub(crate) struct ChangeListener {
    store: Arc<dyn Store>,
    transactions: Arc<Shards<TransactionRegistry>>,
    events: Arc<Shards<EventRegistry>>,
}

impl ChangeListener {
    /// A listener for the shards of this node.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Store>, transactions: Arc<Shards<TransactionRegistry>>, events: Arc<Shards<EventRegistry>>) -> Self {
        Self { store, transactions, events }
    }
}

impl Actor for ChangeListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(changes) = self.store.changes() {
            ctx.add_stream(heard(changes));
        }
    }
}

/// The notices as they come; those that this node was too slow for are left out.
fn heard(changes: Receiver<Change>) -> impl Stream<Item = Change> {
    unfold(changes, |mut changes| async move {
        loop {
            match changes.recv().await {
                Ok(change) => return Some((change, changes)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

impl StreamHandler<Change> for ChangeListener {
    fn handle(&mut self, change: Change, _: &mut Self::Context) {
        match change {
            Change::Transaction(id) => {
                if let Some(shard) = self.transactions.get(self.transactions.index_of(id)) {
                    shard.do_send(Changed(id));
                }
            }
            Change::Event(id) => touch(&self.events, id, None),
        }
    }
}

impl Supervised for ChangeListener {}

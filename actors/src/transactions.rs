//! The door to all transactions of the node.

use std::sync::Arc;
use std::time::Duration;

use actix::Handler;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::Completed;
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, Vault};
use tokio::time::sleep;

use crate::door::{AskError, Door};
use crate::registry::{Ask, OpenHere, TransactionRegistry};
use crate::reveal::{RevealError, reveal};
use crate::transaction::{Complete, CompleteReply, Look, Subscribe, TransactionActor, TransactionQuestion, View, Watch};

/// Asks transactions on behalf of one worker.
#[derive(Clone, Debug)]
pub struct Transactions {
    pub(crate) door: Door<TransactionRegistry>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) local: usize,
}

impl Transactions {
    /// A fresh id whose transaction will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> TxnId {
        TxnId::generate(client.partition(), self.door.shards.shard_byte_of(self.local))
    }

    /// Opens a transaction: debits its credit and begins to wait for the person.
    ///
    /// # Errors
    /// [`AskError`]; the transaction may then have been opened or not.
    pub async fn open(&self, open: OpenTransaction) -> Result<OpenOutcome, AskError> {
        let id = open.pending.id;
        self.door.ask(id, OpenHere(Arc::new(open))).await
    }

    /// How the transaction stands.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look(&self, id: TxnId) -> Result<View, AskError> {
        self.ask(id, Look { fresh: true }).await
    }

    /// The same for whoever asks the store again before anything is done: one that another node has just ended may seem
    /// to wait.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn glance(&self, id: TxnId) -> Result<View, AskError> {
        self.ask(id, Look { fresh: false }).await
    }

    /// How the transaction stands, once it is no longer pending or `wait` is over.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look_when_changed(&self, id: TxnId, wait: Duration) -> Result<View, AskError> {
        let end = tokio::time::Instant::now() + wait;
        loop {
            let watch = self.ask(id, Subscribe).await?;
            let view = self.look(id).await?;
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if !matches!(view, View::Pending(_)) || left.is_zero() {
                return Ok(view);
            }
            // Whether the sender fired or fell silent, the next look tells what is.
            match watch {
                Watch::Until(changed) => {
                    let pause = sleep(left.min(RECHECK));
                    tokio::select! { _ = changed => {}, () = pause => {} }
                }
                Watch::Refused => sleep(left.min(UNWATCHED)).await,
            }
        }
    }

    /// Hands in the identity app's answer.
    ///
    /// # Errors
    /// [`AskError`] when its fate is not known; it may be handed in again.
    pub async fn complete(&self, id: TxnId, complete: Complete) -> Result<CompleteReply, AskError> {
        // Whose actor ended meanwhile is told by the record how.
        let question = |turn| Complete { known: complete.known.clone().filter(|_| turn == 0), ..complete.clone() };
        self.door.ask_with(id, |turn| Ask { id, question: question(turn) }).await
    }

    /// Opens the outcome of a completed transaction.
    ///
    /// # Errors
    /// [`RevealError`] when it was sealed with a key that this node does not have.
    pub fn reveal(&self, record: CompletedRecord) -> Result<Completed, RevealError> {
        reveal(&self.vault, record)
    }

    async fn ask<Q>(&self, id: TxnId, question: Q) -> Result<<Q as TransactionQuestion>::Answer, AskError>
    where
        Q: TransactionQuestion,
        TransactionActor: Handler<Q>,
    {
        self.door.ask(id, Ask { id, question }).await
    }
}

/// How long a watcher trusts its subscription before it looks again by itself: longer than any
/// notice takes, and short beside a long poll.
const RECHECK: Duration = Duration::from_secs(5);
/// How often one looks who found too many watchers before them.
const UNWATCHED: Duration = Duration::from_secs(1);

//! The handle of a worker to all transactions of the node.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::Completed;
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, Vault};
use sakshi_supervision::{Permit, Shards};
use tokio::time::sleep;

use super::actor::TransactionActor;
use super::message::{Complete, CompleteReply, Expire, GetTransaction, Opened, Subscribe, View};
use crate::accounts::Announcement;
use crate::event::{EventActor, notify_event};
use crate::figures::Tally;
use crate::ledger::Ledger;
use crate::reveal::{RevealError, reveal};
use crate::router::{AskError, ShardRouter};

/// Pause before a watcher asks again without a notice: longer than notices take, and short compared with a long poll.
const RECHECK: Duration = Duration::from_secs(5);
/// Pause before a caller asks again that could not become a watcher.
const UNWATCHED_RECHECK: Duration = Duration::from_secs(1);

/// Sends questions to transactions, for one worker.
#[derive(Clone, Debug)]
pub struct Transactions {
    pub(crate) router: ShardRouter<TransactionActor>,
    pub(crate) ledger: Ledger,
    pub(crate) events: Arc<Shards<EventActor>>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) tally: Arc<Tally>,
}

impl Transactions {
    /// Returns a new id, whose transaction will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> TxnId {
        TxnId::generate(client.partition(), self.router.new_shard_byte())
    }

    /// Announces a transaction of a client; drop it just before the transaction is opened. Other openings of the client
    /// wait a moment for it, so that they share a step.
    #[must_use]
    pub fn announce(&self, client: &ClientId) -> Announcement {
        self.ledger.accounts.announce(client)
    }

    /// Opens a transaction: debits its credit and begins to wait for the person.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the transaction may or may not have been opened.
    pub async fn open(&self, open: OpenTransaction) -> Result<OpenOutcome, AskError> {
        let pending = Arc::clone(&open.pending);
        let (index, _permits) = self.admit_opening(pending.id)?;
        let outcome = self.ledger.open(open).await?;
        if let OpenOutcome::Opened { .. } = outcome {
            self.tally.count_opened(&pending.app, pending.opened_at);
            if let Some(event) = pending.event {
                notify_event(&self.events, event, None);
            }
            if let Some(shard) = self.router.shards.get(index) {
                // Without an actor, questions are answered from the record.
                let _ = shard.send(Opened(pending)).timeout(self.router.ask_timeout).await;
            }
        }
        Ok(outcome)
    }

    /// Refuses a transaction that its shard or the node has no room for, before it is built.
    ///
    /// # Errors
    /// [`AskError::Overloaded`] when its shard or the node has too many in flight, or too many live.
    pub fn check_room(&self, id: TxnId) -> Result<(), AskError> {
        // The permits only show that there is room.
        self.admit_opening(id).map(drop)
    }

    /// Admits the opening of a transaction. Returns the index of its shard.
    fn admit_opening(&self, id: TxnId) -> Result<(usize, [Permit; 2]), AskError> {
        let index = self.router.shards.index_of(&id);
        let permits = self.router.admit(index)?;
        if self.router.shards.is_full(index) { Err(AskError::Overloaded) } else { Ok((index, permits)) }
    }

    /// Returns true if the client lacks `cost` credits, as far as is known before the debit.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub async fn lacks_credits(&self, client: &ClientId, cost: u64) -> Result<bool, AskError> {
        Ok(self.ledger.lacks_credits(client, cost).await?)
    }

    /// Returns the current transaction.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub async fn get(&self, id: TxnId) -> Result<View, AskError> {
        self.router.ask_about(id, GetTransaction { fresh: true }).await
    }

    /// Like [`Self::get`], but may return a transaction as pending that another node has just ended. For callers who
    /// ask the store again before they act on it.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub async fn get_maybe_stale(&self, id: TxnId) -> Result<View, AskError> {
        self.router.ask_about(id, GetTransaction { fresh: false }).await
    }

    /// Waits until the transaction is no longer pending, for `wait` at most, and returns it.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub async fn wait_for_end(&self, id: TxnId, wait: Duration) -> Result<View, AskError> {
        let end = tokio::time::Instant::now() + wait;
        loop {
            let watch = self.router.ask_about(id, Subscribe).await?;
            let view = self.get(id).await?;
            let remaining = end.saturating_duration_since(tokio::time::Instant::now());
            if !matches!(view, View::Pending(_)) || remaining.is_zero() {
                return Ok(view);
            }
            // The next read shows the change.
            match watch {
                Some(change) => {
                    let pause = sleep(remaining.min(RECHECK));
                    tokio::select! { _ = change => {}, () = pause => {} }
                }
                None => sleep(remaining.min(UNWATCHED_RECHECK)).await,
            }
        }
    }

    /// Submits the identity app's answer.
    ///
    /// # Errors
    /// [`AskError`] when there is no reply; the answer may be submitted again.
    pub async fn complete(&self, id: TxnId, complete: Complete) -> Result<CompleteReply, AskError> {
        self.router.ask_about(id, complete).await
    }

    /// Ends the window of a pending transaction now. Returns the transaction after that.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer.
    pub async fn expire(&self, id: TxnId) -> Result<View, AskError> {
        self.router.ask_about(id, Expire).await
    }

    /// Decrypts the outcome of a completed transaction.
    ///
    /// # Errors
    /// [`RevealError`] when it was sealed with a key that this node does not have.
    pub fn reveal(&self, record: CompletedRecord) -> Result<Completed, RevealError> {
        reveal(&self.vault, record)
    }
}

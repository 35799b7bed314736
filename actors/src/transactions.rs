//! The door to all transactions of the node: routes each question to the shard that its id names,
//! sheds what would be too much, and asks once more when an actor ended while the question waited.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use actix::{Addr, Handler};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::transaction::Completed;
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, StoreError, Vault};
use tokio::time::sleep;
use uuid::Uuid;

use crate::admission::{Admission, Permit};
use crate::node::Node;
use crate::registry::{Answered, Ask, OpenHere, TransactionRegistry, Unanswered};
use crate::reveal::{RevealError, reveal};
use crate::transaction::{Complete, CompleteReply, Look, Subscribe, TransactionActor, TransactionQuestion, View, Watch};

/// How often a question is asked when the actor ends before it answers.
const TRIES: usize = 3;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The node has as much work as it may have.
    #[error("the node is at its limit")]
    Overloaded,
    /// The actor or its shard did not answer in time, or kept failing.
    #[error("the transaction's actor did not answer")]
    NoAnswer,
    /// The store has no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The shards of this node by number.
#[derive(Debug)]
pub(crate) struct Shards {
    places: Vec<RwLock<Option<Addr<TransactionRegistry>>>>,
    pub(crate) nodes: Vec<Arc<Node>>,
}

impl Shards {
    pub(crate) fn new(count: usize) -> Self {
        let nodes = (0..count).map(|index| Node::new(format!("transactions-{index}"), "transaction_registry")).collect();
        Self { places: (0..count).map(|_| RwLock::new(None)).collect(), nodes }
    }

    /// Takes the first free place: at the start, or that of a worker that has died.
    pub(crate) fn take_place(&self, start: impl FnOnce(usize) -> Addr<TransactionRegistry>) -> Option<usize> {
        for (index, place) in self.places.iter().enumerate() {
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            if place.as_ref().is_none_or(|shard| !shard.connected()) {
                *place = Some(start(index));
                return Some(index);
            }
        }
        None
    }

    pub(crate) fn get(&self, index: usize) -> Option<Addr<TransactionRegistry>> {
        self.places.get(index)?.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether every place is taken.
    pub(crate) fn complete(&self) -> bool {
        (0..self.places.len()).all(|index| self.get(index).is_some_and(|shard| shard.connected()))
    }
}

/// Asks transactions on behalf of one worker.
#[derive(Clone, Debug)]
pub struct Transactions {
    pub(crate) shards: Arc<Shards>,
    pub(crate) admission: Admission,
    pub(crate) vault: Arc<Vault>,
    pub(crate) local: usize,
    pub(crate) patience: Duration,
    pub(crate) depth: usize,
}

impl Transactions {
    /// A fresh id whose transaction will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> TxnId {
        let count = self.shards.nodes.len();
        let choices = (256_usize.saturating_sub(self.local)).div_ceil(count).max(1);
        let pick = usize::from(Uuid::new_v4().as_bytes()[0]) % choices;
        let lane = u8::try_from(self.local + pick * count).unwrap_or(0);
        TxnId::generate(client.partition(), lane)
    }

    /// Opens a transaction: debits its credit and begins to wait for the person.
    ///
    /// # Errors
    /// [`AskError`]; the transaction may then have been opened or not.
    pub async fn open(&self, open: OpenTransaction) -> Result<OpenOutcome, AskError> {
        let index = self.shard_of(open.pending.id);
        let _permit = self.admit(index)?;
        let open = Arc::new(open);
        for _ in 0..TRIES {
            let shard = self.shards.get(index).ok_or(AskError::NoAnswer)?;
            let _asked = self.shards.nodes[index].asked();
            match shard.send(OpenHere(Arc::clone(&open))).timeout(self.patience).await.map_err(Unanswered::from) {
                Ok(Ok(outcome)) => return Ok(outcome?),
                Ok(Err(Unanswered::Full)) => return Err(AskError::Overloaded),
                Ok(Err(Unanswered::TimedOut)) | Err(Unanswered::TimedOut) => return Err(AskError::NoAnswer),
                Ok(Err(Unanswered::Gone)) | Err(_) => {}
            }
        }
        Err(AskError::NoAnswer)
    }

    /// How the transaction stands.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look(&self, id: TxnId) -> Result<View, AskError> {
        self.ask(id, Look).await
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
        self.ask(id, complete).await
    }

    /// Opens the outcome of a completed transaction.
    ///
    /// # Errors
    /// [`RevealError`] when it was sealed with a key that this node does not have.
    pub fn reveal(&self, record: CompletedRecord) -> Result<Completed, RevealError> {
        reveal(&self.vault, record)
    }

    /// Lets a question in, unless the node has enough to do, or the shard's line is too long.
    fn admit(&self, shard: usize) -> Result<Permit, AskError> {
        let depth = usize::try_from(self.shards.nodes[shard].waiting()).unwrap_or(0);
        if depth >= self.depth {
            return Err(AskError::Overloaded);
        }
        self.admission.enter().ok_or(AskError::Overloaded)
    }

    fn shard_of(&self, id: TxnId) -> usize {
        usize::from(id.lane()) % self.shards.nodes.len()
    }

    async fn ask<Q>(&self, id: TxnId, question: Q) -> Result<Q::Answer, AskError>
    where
        Q: TransactionQuestion,
        TransactionActor: Handler<Q>,
        TransactionRegistry: Handler<Ask<Q>>,
    {
        let index = self.shard_of(id);
        let _permit = self.admit(index)?;
        for _ in 0..TRIES {
            let shard = self.shards.get(index).ok_or(AskError::NoAnswer)?;
            let _asked = self.shards.nodes[index].asked();
            let answered: Result<Answered<Q>, Unanswered> =
                shard.send(Ask { id, question: question.clone() }).timeout(self.patience).await.map_err(Unanswered::from);
            match answered {
                Ok(Ok(answer)) => return Ok(answer?),
                Ok(Err(Unanswered::TimedOut)) | Err(Unanswered::TimedOut) => return Err(AskError::NoAnswer),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(AskError::NoAnswer)
    }
}

/// How long a watcher trusts its subscription before it looks again by itself: longer than any
/// notice takes, and short beside a long poll.
const RECHECK: Duration = Duration::from_secs(5);
/// How often one looks who found too many watchers before them.
const UNWATCHED: Duration = Duration::from_secs(1);

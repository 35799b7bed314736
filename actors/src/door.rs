//! The way to the actors of a node: routes each question to the shard that its id names, sheds
//! what would be too much, and asks once more when an actor ended while the question waited.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler, Message};
use sakshi_domain::ids::coarse_time;
use sakshi_store::StoreError;

use crate::admission::{Admission, Permit};
use crate::node::Node;
use crate::registry::{Key, Unanswered};

/// How often a question is asked when the actor ends before it answers.
const TRIES: usize = 3;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The node has as much work as it may have.
    #[error("the node is at its limit")]
    Overloaded,
    /// The actor or its shard did not answer in time, or kept failing.
    #[error("the actor did not answer")]
    NoAnswer,
    /// The store has no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The shards of one registry by number.
pub(crate) struct Shards<R: Actor> {
    places: Vec<RwLock<Option<Addr<R>>>>,
    pub(crate) nodes: Vec<Arc<Node>>,
}

impl<R: Actor<Context = Context<R>>> Shards<R> {
    /// Places for `count` shards named after `name`.
    pub(crate) fn new(count: usize, name: &str, kind: &'static str) -> Self {
        let nodes = (0..count).map(|index| Node::new(format!("{name}-{index}"), kind)).collect();
        Self { places: (0..count).map(|_| RwLock::new(None)).collect(), nodes }
    }

    /// Takes the first free place: at the start, or that of a worker that has died.
    pub(crate) fn take_place(&self, start: impl FnOnce(usize) -> Addr<R>) -> Option<usize> {
        for (index, place) in self.places.iter().enumerate() {
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            if place.as_ref().is_none_or(|shard| !shard.connected()) {
                *place = Some(start(index));
                return Some(index);
            }
        }
        None
    }

    pub(crate) fn get(&self, index: usize) -> Option<Addr<R>> {
        self.places.get(index)?.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The shard that serves an id.
    pub(crate) fn index_of<K: Key>(&self, key: K) -> usize {
        usize::from(key.shard_byte()) % self.nodes.len()
    }

    /// A shard byte that is served by this shard: over time any of them, and at one moment the same one, so
    /// that ids of a moment stay neighbours.
    pub(crate) fn shard_byte_of(&self, index: usize) -> u8 {
        let count = self.nodes.len();
        let choices = 256_usize.saturating_sub(index).div_ceil(count).max(1);
        let pick = usize::try_from(coarse_time() % choices as u64).unwrap_or(0);
        u8::try_from(index + pick * count).unwrap_or(0)
    }

    /// Whether every place is taken.
    pub(crate) fn complete(&self) -> bool {
        (0..self.places.len()).all(|index| self.get(index).is_some_and(|shard| shard.connected()))
    }
}

impl<R: Actor> fmt::Debug for Shards<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shards({})", self.places.len())
    }
}

/// Asks one registry.
#[derive(Debug)]
pub(crate) struct Door<R: Actor> {
    pub(crate) shards: Arc<Shards<R>>,
    pub(crate) admission: Admission,
    pub(crate) patience: Duration,
    pub(crate) depth: usize,
}

impl<R: Actor> Clone for Door<R> {
    fn clone(&self) -> Self {
        Self { shards: Arc::clone(&self.shards), admission: self.admission.clone(), patience: self.patience, depth: self.depth }
    }
}

impl<R: Actor<Context = Context<R>>> Door<R> {
    /// Asks the shard that serves `key`.
    pub(crate) async fn ask<K, M, T>(&self, key: K, message: M) -> Result<T, AskError>
    where
        K: Key,
        M: Message<Result = Result<Result<T, StoreError>, Unanswered>> + Clone + Send + 'static,
        T: Send + 'static,
        R: Handler<M>,
    {
        self.ask_with(key, |_| message.clone()).await
    }

    /// The same with a message of its own for each try, which are numbered from 0.
    pub(crate) async fn ask_with<K, M, T>(&self, key: K, message: impl Fn(usize) -> M) -> Result<T, AskError>
    where
        K: Key,
        M: Message<Result = Result<Result<T, StoreError>, Unanswered>> + Send + 'static,
        T: Send + 'static,
        R: Handler<M>,
    {
        let index = self.shards.index_of(key);
        let _permit = self.admit(index)?;
        for turn in 0..TRIES {
            let shard = self.shards.get(index).ok_or(AskError::NoAnswer)?;
            let _asked = self.shards.nodes[index].asked();
            let answered = shard.send(message(turn)).timeout(self.patience).await.map_err(Unanswered::from);
            match answered.and_then(|answered| answered) {
                Ok(answer) => return Ok(answer?),
                Err(Unanswered::Full) => return Err(AskError::Overloaded),
                Err(Unanswered::TimedOut | Unanswered::Lost) => return Err(AskError::NoAnswer),
                Err(Unanswered::Gone) => {}
            }
        }
        Err(AskError::NoAnswer)
    }

    /// Lets a question in, unless the node has enough to do, or the shard's line is too long.
    fn admit(&self, shard: usize) -> Result<Permit, AskError> {
        let depth = usize::try_from(self.shards.nodes[shard].waiting()).unwrap_or(0);
        if depth >= self.depth {
            return Err(AskError::Overloaded);
        }
        self.admission.enter().ok_or(AskError::Overloaded)
    }
}

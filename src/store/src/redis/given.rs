//! A Redis with answers from the fuzzer, and parsers of other server messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use sakshi_domain::ids::TxnId;

use super::link::RedisTopology;
use super::options::RedisOptions;
use super::store::{RedisStore, unwatched};
use crate::error::StoreError;

/// Replies to the next calls, in order. After the last one the store is unavailable.
#[derive(Debug, Default)]
pub struct GivenReplies(Mutex<VecDeque<Value>>);

impl GivenReplies {
    /// Replaces the remaining replies.
    pub fn give(&self, replies: impl IntoIterator<Item = Value>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = replies.into_iter().collect();
    }

    pub(super) fn next(&self) -> Result<Value, StoreError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| StoreError::unavailable("no reply is left"))
    }
}

impl RedisStore {
    /// Returns a store that calls no server.
    #[must_use]
    pub fn answered_by(options: RedisOptions, replies: &Arc<GivenReplies>) -> Self {
        let mut shared = unwatched(options);
        if let Some(shared) = Arc::get_mut(&mut shared) {
            shared.given = Some(Arc::clone(replies));
        }
        shared.link.loss_guard().join();
        Self::without_tasks(shared)
    }
}

/// Parses the transaction in a notice of another node.
#[must_use]
pub fn notice(message: &[u8]) -> Option<TxnId> {
    super::nodes::notices::read(message)
}

/// Parses the owners of slots in the answer of a sentinel or a cluster node: first and last slot, host, port.
#[must_use]
pub fn masters(topology: &RedisTopology, answer: &Value) -> Option<Vec<(u16, u16, String, u16)>> {
    super::link::masters(topology, answer)
}

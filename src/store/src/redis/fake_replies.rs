//! A Redis whose replies the fuzzer chooses, and parsers of other server messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use redis::Value;
use sakshi_domain::ids::TxnId;

use super::link::RedisTopology;
use super::options::RedisOptions;
use super::store::{RedisStore, build_shared};
use crate::error::StoreError;

/// Replies to the next calls, in order. After the last one the store is unavailable.
#[derive(Debug, Default)]
pub struct FakeReplies(Mutex<VecDeque<Value>>);

impl FakeReplies {
    /// Replaces the remaining replies.
    pub fn set(&self, replies: impl IntoIterator<Item = Value>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = replies.into_iter().collect();
    }

    /// Returns the next reply, or fails after the last one.
    pub(super) fn next(&self) -> Result<Value, StoreError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| StoreError::unavailable("no reply is left"))
    }
}

impl RedisStore {
    /// Returns a store that takes its replies from here and calls no server.
    #[must_use]
    pub fn with_fake_replies(options: RedisOptions, replies: &Arc<FakeReplies>) -> Self {
        let mut shared = build_shared(options);
        if let Some(shared) = Arc::get_mut(&mut shared) {
            shared.fake_replies = Some(Arc::clone(replies));
        }
        shared.link.loss_guard().record_opening();
        Self::without_background(shared)
    }
}

/// Parses the id of the transaction whose end another node reports.
#[must_use]
pub fn parse_notice(message: &[u8]) -> Option<TxnId> {
    super::nodes::notices::parse(message)
}

/// Parses the owners of slots in the answer of a sentinel or a cluster node: first and last slot, host, port.
#[must_use]
pub fn parse_masters(topology: &RedisTopology, answer: &Value) -> Option<Vec<(u16, u16, String, u16)>> {
    super::link::parse_masters(topology, answer)
}

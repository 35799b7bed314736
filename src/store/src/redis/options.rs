//! The settings of the Redis store.

use std::fmt;
use std::sync::Arc;

use sakshi_domain::clock::Clock;
use uuid::Uuid;

use super::link::RedisServers;
use crate::upkeep::Retention;
use crate::vault::Vault;
use crate::{Ownership, Schema};

/// A running node. Each start of a node gets a new id: when a node ends, other nodes take over its
/// deliveries, even if it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Uuid);

impl NodeId {
    /// The id of the only node of a store in a file.
    pub const ALONE: Self = Self(Uuid::nil());

    /// Returns a fresh id.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns the id as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Parses an id; `None` for an invalid text.
    pub fn from_bytes(text: &[u8]) -> Option<Self> {
        Uuid::try_parse_ascii(text).ok().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// The settings of a node's store in Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Addresses and organisation of the servers.
    pub servers: RedisServers,
    /// Number of replicas that must confirm a write before the call succeeds.
    pub wait_replicas: u32,
    /// This node.
    pub node: NodeId,
    /// Vault that seals personal and secret data.
    pub vault: Arc<Vault>,
    /// Retention of records after their use.
    pub retention: Retention,
    /// Maximum number of calls in flight; further ones are refused at once.
    pub max_waiting: usize,
    /// True to refuse a server without an append-only file.
    pub must_persist: bool,
    /// True to wait for a store that cannot be opened yet; until then every operation is refused.
    pub waits_at_start: bool,
    /// The installation to which the store belongs.
    pub ownership: Ownership,
    /// The schema of this release.
    pub schema: &'static Schema,
    /// Clock that decides expiry, in tests that advance time; `None` for the server's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

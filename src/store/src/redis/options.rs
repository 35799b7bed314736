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
    /// The only node of a store that others do not use.
    pub const ALONE: Self = Self(Uuid::nil());

    /// A fresh id.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Reads an id; `None` when the text is not one.
    pub(crate) fn from_bytes(text: &[u8]) -> Option<Self> {
        Uuid::try_parse_ascii(text).ok().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// Where Redis is, and how it is used.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Where the servers are and how they are organised.
    pub servers: RedisServers,
    /// Replicas that must confirm a write before it is answered.
    pub wait_replicas: u32,
    /// This node.
    pub node: NodeId,
    /// Seals what is personal or secret.
    pub vault: Arc<Vault>,
    /// How long records are kept beyond their use.
    pub retention: Retention,
    /// Calls that may be under way; further ones are refused at once.
    pub max_waiting: usize,
    /// A server without an append-only file is refused.
    pub must_persist: bool,
    /// A store that cannot be opened yet is waited for; until then every operation is refused.
    pub waits_at_start: bool,
    /// The installation to which the store belongs.
    pub ownership: Ownership,
    /// The schema of this release.
    pub schema: &'static Schema,
    /// Decides expiry, in tests that let time pass; `None` for the server's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

//! What the traits of the Redis store and the tasks of a node share: the link, the vault, and calling
//! scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use tokio::sync::broadcast;

use super::arguments::Argument;
use super::clock::ServerClock;
use super::link::Link;
use super::options::{NodeId, RedisClock};
use super::script::Script;
use crate::error::StoreError;
use crate::upkeep::Retention;
use crate::vault::Vault;

pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) vault: Arc<Vault>,
    pub(crate) node: NodeId,
    pub(crate) retention: Retention,
    pub(crate) clock: RedisClock,
    pub(crate) server_clock: Arc<ServerClock>,
    pub(crate) ended_elsewhere: broadcast::Sender<TxnId>,
    /// This node has left and begins no further attempt.
    pub(crate) left: AtomicBool,
    #[cfg(test)]
    pub(crate) faults: super::tests::lost_replies::Faults,
}

impl Shared {
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// The clock that decides expiry, as far as this node can tell its time.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match &self.clock {
            RedisClock::Server => Arc::clone(&self.server_clock) as Arc<dyn Clock>,
            RedisClock::Given(clock) => Arc::clone(clock),
        }
    }

    /// The time of a given clock; `None` when scripts ask the server.
    fn given(&self) -> Option<Timestamp> {
        match &self.clock {
            RedisClock::Server => None,
            RedisClock::Given(clock) => Some(clock.now()),
        }
    }

    /// The arguments of a script: the given time, then its own.
    fn timed(given: Option<Timestamp>, args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut timed = Vec::with_capacity(args.len() + 1);
        timed.push(given.argument());
        timed.extend(args);
        timed
    }

    /// Calls a script. The link repeats it while its reply is lost, until the call times out.
    pub(crate) async fn call(&self, script: &'static Script, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Value, StoreError> {
        self.call_at(self.given(), script, keys, args).await
    }

    /// Calls a script at a given time; `None` for the server's time.
    pub(crate) async fn call_at(
        &self,
        given: Option<Timestamp>,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let args = Self::timed(given, args);
        #[cfg(test)]
        self.faults.lose_a_reply(&self.link, script, &keys, &args).await;
        self.link.call(script, keys, args).await
    }

    /// Calls a script without a time-out: for an outcome that must be known.
    pub(crate) async fn call_until_answered(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let args = Self::timed(self.given(), args);
        #[cfg(test)]
        self.faults.lose_a_reply(&self.link, script, &keys, &args).await;
        self.link.call_until_answered(script, keys, args).await
    }
}

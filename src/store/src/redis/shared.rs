//! State shared by the Redis store and the tasks of a node: the link, the vault, and script calls.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use redis::{Cmd, Value};
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use tokio::sync::{broadcast, mpsc};

use super::arguments::Argument;
use super::check::probe_of;
use super::clock::ServerClock;
use super::keys;
use super::link::{Link, Until};
use super::nodes::membership::Leave;
use super::options::NodeId;
use super::reply::Reply;
use super::schema::Walk;
use super::script::{MARK_STEP, Script};
use crate::Ownership;
use crate::error::StoreError;
use crate::upkeep::Retention;
use crate::vault::Vault;

/// The state of a node's store. One node has one.
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) vault: Arc<Vault>,
    pub(crate) node: NodeId,
    pub(crate) retention: Retention,
    pub(crate) ownership: Ownership,
    /// True to refuse servers without an append-only file.
    pub(crate) must_persist: bool,
    /// True if the latest health check succeeded.
    pub(crate) is_healthy: AtomicBool,
    /// True if the latest check of the servers found one with little memory left.
    pub(crate) is_nearly_full: AtomicBool,
    /// Number of health checks so far.
    pub(crate) health_checks: AtomicU32,
    /// The clock of a test that decides expiry; `None` for the server's.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) server_clock: Arc<ServerClock>,
    /// Notices of transactions that other nodes have ended.
    pub(crate) ended_elsewhere: broadcast::Sender<TxnId>,
    /// The live nodes, with the times of their heartbeats, when this node sent its latest.
    pub(crate) members: Mutex<Vec<(NodeId, Timestamp)>>,
    /// The progress of the migration steps of an upgrade.
    pub(crate) walk: tokio::sync::Mutex<Walk>,
    /// Channel that asks the heartbeat thread to send the last heartbeat.
    pub(crate) leave_requests: OnceLock<mpsc::WeakSender<Leave>>,
    #[cfg(feature = "fuzzing")]
    pub(crate) fake_replies: Option<Arc<super::fake_replies::FakeReplies>>,
    #[cfg(test)]
    pub(crate) faults: super::lost_replies::Faults,
}

impl Shared {
    /// Returns the clock that decides expiry, as closely as this node knows it.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| self.server_clock.clone())
    }

    /// Prefixes a script's arguments with the time of the clock of a test, or with an empty text for the server's.
    pub(crate) fn with_time(&self, args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut timed = Vec::with_capacity(args.len() + 1);
        timed.push(self.clock.as_ref().map(|clock| clock.now()).encode());
        timed.extend(args);
        timed
    }

    /// Returns a final answer (a record does not exist, or has ended) once the servers have confirmed that they may
    /// give it. Fails on servers that lack data, that no replica follows any more, or that take no writes.
    pub(crate) async fn confirm<T>(&self, answer: T) -> Result<T, StoreError> {
        self.check_for_loss().await?;
        if self.link.waits_for_replicas() {
            let (_, args) = probe_of(keys::probe()).pack();
            self.link.call_each_server(&MARK_STEP, &args).await?;
        } else if !self.is_healthy.load(Ordering::Relaxed) {
            self.write_probe().await?;
        }
        Ok(answer)
    }

    /// Calls a script. The link repeats it while its reply is lost, until the call times out.
    pub(crate) async fn call(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Reply, StoreError> {
        self.call_timed(script, keys, self.with_time(args), Until::Timeout).await
    }

    /// Calls a script whose arguments begin with the time, or with an empty text for the server's time.
    pub(crate) async fn call_timed(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
        until: Until,
    ) -> Result<Reply, StoreError> {
        #[cfg(feature = "fuzzing")]
        if let Some(fake) = &self.fake_replies {
            return fake.next().map(|value| Reply::new(script.reply, value));
        }
        #[cfg(test)]
        self.faults.lose_reply(&self.link, script, &keys, &args).await;
        let value = match until {
            Until::Timeout => self.link.call(script, keys, args).await?,
            Until::Answered => self.link.call_until_answered(script, keys, args).await?,
        };
        Ok(Reply::new(script.reply, value))
    }

    /// Sends a reading command; errors name its reply `reply`.
    pub(crate) async fn read(&self, reply: &'static str, command: &Cmd) -> Result<Reply, StoreError> {
        #[cfg(feature = "fuzzing")]
        if let Some(fake) = &self.fake_replies {
            return fake.next().map(|value| Reply::new(reply, value));
        }
        self.link.read(command.clone()).await.map(|value| Reply::new(reply, value))
    }

    /// Sends several reading commands at once. Returns the replies in the order of the commands.
    pub(crate) async fn read_all(
        &self,
        reply: &'static str,
        commands: impl Iterator<Item = Cmd>,
    ) -> Result<Vec<Reply>, StoreError> {
        #[cfg(feature = "fuzzing")]
        if let Some(fake) = &self.fake_replies {
            return commands.map(|_| fake.next().map(|value| Reply::new(reply, value))).collect();
        }
        let values = self.link.read_all(commands.collect()).await?;
        Ok(values.into_iter().map(|value| Reply::new(reply, value)).collect())
    }

    /// Sends several repeatable commands at once, even while the store lacks data.
    pub(crate) async fn send_always(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, StoreError> {
        #[cfg(feature = "fuzzing")]
        if let Some(fake) = &self.fake_replies {
            return commands.iter().map(|_| fake.next()).collect();
        }
        self.link.read_all_always(commands).await
    }
}

//! Hearing what is published on channels. Messages are handed over where they arrive, and nothing queues on the way.
//!
//! What is published reaches every server of a topology, so one connection to any of them hears all. On a cluster that
//! costs each of its servers something for each message; there a channel has a slot, and only the server that is in
//! charge of it hears what is published there.

use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, Value, cmd};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::api::Link;
use super::failure::Failure;
use super::request::slot_of;
use super::topology::{Address, RedisTopology};
use crate::error::StoreError;

/// Between two looks whether the connection is still one, and to a server that belongs to us.
const LOOK: Duration = Duration::from_secs(1);

/// A server of a cluster, and the channels whose slots it is in charge of.
pub(crate) type Shard = (Address, Vec<String>);

/// Channels, and who is listened to.
enum Channels<'a> {
    /// One for which any server in charge of anything is as good.
    Anywhere(&'a str),
    /// Those of slots that one server is in charge of.
    Sharded(&'a [String]),
}

impl Link {
    /// Whether the servers are a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.calls.connector.servers.topology == RedisTopology::Cluster
    }

    /// Hands every message of a channel to `heard`, until the connection is lost. `subscribed` is
    /// called when nothing that is published from then on is missed. Turns differ in whom they ask.
    pub(crate) async fn listen(
        &self,
        channel: &str,
        turn: usize,
        heard: impl Fn(&[u8]) + Send + Sync + 'static,
        subscribed: impl FnOnce() + Send,
    ) -> StoreError {
        let Some(address) = self.listening_post(turn).await else {
            return Failure::Unreachable("nobody knows who is in charge").into_error();
        };
        self.listen_to(&address, &Channels::Anywhere(channel), heard, subscribed).await
    }

    /// The same for channels whose slots this server of a cluster is in charge of. Whether it still is, the caller looks.
    pub(crate) async fn listen_to_shard(
        &self,
        address: &Address,
        channels: &[String],
        heard: impl Fn(&[u8]) + Send + Sync + 'static,
        subscribed: impl FnOnce() + Send,
    ) -> StoreError {
        self.listen_to(address, &Channels::Sharded(channels), heard, subscribed).await
    }

    /// Who is in charge of the slots of these channels, as far as anybody knows.
    pub(crate) async fn shards_of(&self, channels: &[String]) -> Vec<Shard> {
        let mut shards: Vec<Shard> = Vec::new();
        let mut asked = false;
        for channel in channels {
            let slot = slot_of(channel.as_bytes());
            let located = match self.calls.directory.locate(slot) {
                // Nobody is asked more than once, who may not answer.
                None if !std::mem::replace(&mut asked, true) => self.calls.locate(slot).await,
                located => located,
            };
            let Some(located) = located else { continue };
            let address = &located.node.address;
            match shards.iter_mut().find(|(known, _)| known == address) {
                Some((_, channels)) => channels.push(channel.clone()),
                None => shards.push((address.clone(), vec![channel.clone()])),
            }
        }
        shards
    }

    async fn listening_post(&self, turn: usize) -> Option<Address> {
        let found = self.calls.locate(0).await;
        let posts = self.calls.directory.in_charge();
        posts.get(turn % posts.len().max(1)).cloned().or_else(|| found.map(|located| located.node.address.clone()))
    }

    async fn listen_to(
        &self,
        address: &Address,
        channels: &Channels<'_>,
        heard: impl Fn(&[u8]) + Send + Sync + 'static,
        subscribed: impl FnOnce() + Send,
    ) -> StoreError {
        match self.listen_at(address, channels, heard, subscribed).await {
            Ok(()) => StoreError::Unavailable("another node is in charge".to_owned()),
            Err(failure) => {
                self.calls.directory.ask_again(self.calls.directory.version(), None, Some(address)).await;
                failure.into_error()
            }
        }
    }

    async fn listen_at(
        &self,
        address: &Address,
        channels: &Channels<'_>,
        heard: impl Fn(&[u8]) + Send + Sync + 'static,
        subscribed: impl FnOnce() + Send,
    ) -> Result<(), Failure> {
        let connector = &self.calls.connector;
        let login = connector.servers.login_at(address);
        let settings = login.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let lost = Arc::new(Notify::new());
        let ended = Arc::clone(&lost);
        let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
            match (push.kind, push.data.as_slice()) {
                (PushKind::Message | PushKind::SMessage, [_, Value::BulkString(message)]) => heard(message),
                // A server that is no longer in charge of a slot ends what was subscribed to there.
                (PushKind::Disconnection | PushKind::SUnsubscribe, _) => ended.notify_one(),
                _ => {}
            }
            Ok::<(), redis::aio::SendError>(())
        });
        let connection = connector.connect(login.set_redis_settings(settings), config).await?;
        match channels {
            Channels::Anywhere(channel) => drop(connector.ask(&connection, cmd("SUBSCRIBE").arg(channel)).await?),
            Channels::Sharded(channels) => {
                // One after the other: each has an answer of its own.
                for channel in *channels {
                    connector.ask(&connection, cmd("SSUBSCRIBE").arg(channel)).await?;
                }
            }
        }
        subscribed();
        while timeout(LOOK, lost.notified()).await.is_err() {
            connector.ask(&connection, &cmd("PING")).await?;
            if !self.is_right(address, channels).await {
                return Ok(());
            }
        }
        Err(Failure::Lost("the connection was lost"))
    }

    /// Whether what is published there is still heard at this address.
    async fn is_right(&self, address: &Address, channels: &Channels<'_>) -> bool {
        match channels {
            Channels::Anywhere(_) => {
                // For an answer that is fresh enough.
                let _ = self.calls.locate(0).await;
                self.calls.directory.in_charge().contains(address)
            }
            Channels::Sharded(_) => true,
        }
    }
}

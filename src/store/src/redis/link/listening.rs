//! Subscriptions to channels. The receiving task hands a message over, without a queue.
//!
//! A published message reaches every server of a topology, so one connection to any of them receives all. On a cluster
//! each server would pay for each message; there a channel has a slot (sharded publish), and only the owner of the slot
//! receives the message.

use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, Value, cmd};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::api::Link;
use super::directory::AskingOrder;
use super::failure::Failure;
use super::request::slot_of;
use super::topology::{Address, RedisTopology};
use crate::error::StoreError;

/// Interval between two checks that the connection works and that the server still belongs to the topology.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A server of a cluster, and the channels whose slots it owns.
pub(crate) type Shard = (Address, Vec<String>);

/// The channels to subscribe to.
pub(crate) enum Channels<'a> {
    /// One channel, at any server that owns slots.
    Anywhere(&'a str),
    /// Channels of slots that one server owns.
    Sharded(&'a [String]),
}

impl Link {
    /// Returns true if the servers are a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.calls.connector.servers.topology == RedisTopology::Cluster
    }

    /// Returns the known owners of the slots of these channels.
    pub(crate) async fn shards_of(&self, channels: &[String]) -> Vec<Shard> {
        let mut shards: Vec<Shard> = Vec::new();
        let mut has_refreshed = false;
        for channel in channels {
            let slot = slot_of(channel.as_bytes());
            let owner = match self.calls.directory.locate(slot) {
                // Only one refresh is made, because it may take as long as its time limit.
                None if !std::mem::replace(&mut has_refreshed, true) => self.calls.locate(slot).await,
                owner => owner,
            };
            let Some(owner) = owner else { continue };
            let address = &owner.node.address;
            match shards.iter_mut().find(|(known, _)| known == address) {
                Some((_, channels)) => channels.push(channel.clone()),
                None => shards.push((address.clone(), vec![channel.clone()])),
            }
        }
        shards
    }

    /// Returns a server to subscribe to, if one is known; `turn` selects one of several.
    pub(crate) async fn subscription_address(&self, turn: usize) -> Option<Address> {
        // Locating any slot makes the directory learn the owners.
        let owner = self.calls.locate(0).await;
        let addresses = self.calls.directory.owners();
        addresses.get(turn % addresses.len().max(1)).cloned().or_else(|| owner.map(|owner| owner.node.address.clone()))
    }

    /// Hands every message of the channels to `on_message`, until the connection is lost. Calls `on_subscribed` when
    /// the subscription is active. For channels of a cluster, the caller checks that the server still owns their slots.
    pub(crate) async fn listen(
        &self,
        address: &Address,
        channels: &Channels<'_>,
        on_message: impl Fn(&[u8]) + Send + Sync + 'static,
        on_subscribed: impl FnOnce() + Send,
    ) -> StoreError {
        match self.listen_at(address, channels, on_message, on_subscribed).await {
            Ok(()) => StoreError::Unavailable("another node owns the slot".to_owned()),
            Err(failure) => {
                let order = AskingOrder { last: Some(address), ..AskingOrder::default() };
                self.calls.directory.refresh(self.calls.directory.version(), order).await;
                failure.into_error()
            }
        }
    }

    /// Listens as [`Link::listen`] does. Returns `Ok` when the server no longer belongs to the topology.
    async fn listen_at(
        &self,
        address: &Address,
        channels: &Channels<'_>,
        on_message: impl Fn(&[u8]) + Send + Sync + 'static,
        on_subscribed: impl FnOnce() + Send,
    ) -> Result<(), Failure> {
        let connector = &self.calls.connector;
        let login = connector.servers.login_at(address);
        let settings = login.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let connection_lost = Arc::new(Notify::new());
        let notify_lost = Arc::clone(&connection_lost);
        let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
            match (push.kind, push.data.as_slice()) {
                (PushKind::Message | PushKind::SMessage, [_, Value::BulkString(message)]) => on_message(message),
                // A server that no longer owns a slot ends the subscriptions there.
                (PushKind::Disconnection | PushKind::SUnsubscribe, _) => notify_lost.notify_one(),
                _ => {}
            }
            Ok::<(), redis::aio::SendError>(())
        });
        let connection = connector.connect(login.set_redis_settings(settings), config).await?;
        match channels {
            Channels::Anywhere(channel) => drop(connector.ask(&connection, cmd("SUBSCRIBE").arg(channel)).await?),
            Channels::Sharded(channels) => {
                // One after the other, because each subscription has its own answer.
                for channel in *channels {
                    connector.ask(&connection, cmd("SSUBSCRIBE").arg(channel)).await?;
                }
            }
        }
        on_subscribed();
        while timeout(CHECK_INTERVAL, connection_lost.notified()).await.is_err() {
            connector.ask(&connection, &cmd("PING")).await?;
            if !self.still_receives(address, channels).await {
                return Ok(());
            }
        }
        Err(Failure::Lost("the connection was lost"))
    }

    /// Returns true if messages of these channels still arrive at this address.
    async fn still_receives(&self, address: &Address, channels: &Channels<'_>) -> bool {
        match channels {
            Channels::Anywhere(_) => {
                // This refreshes a stale list.
                let _ = self.calls.locate(0).await;
                self.calls.directory.owners().contains(address)
            }
            Channels::Sharded(_) => true,
        }
    }
}

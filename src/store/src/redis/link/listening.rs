//! Hearing what is published on a channel.
//!
//! A published message reaches every server of a topology, so one connection to any of them hears
//! all. Messages are handed over where they arrive, and nothing queues on the way.

use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, Value, cmd};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Link;
use super::failure::Failure;
use super::topology::Address;
use crate::error::StoreError;

/// Between two looks whether the connection is still one, and to a server that belongs to us.
const LOOK: Duration = Duration::from_secs(1);

impl Link {
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
        match self.listen_at(&address, channel, heard, subscribed).await {
            Ok(()) => StoreError::Unavailable("another node is in charge".to_owned()),
            Err(failure) => {
                self.calls.directory.ask_again(self.calls.directory.version(), None, Some(&address)).await;
                failure.into_error()
            }
        }
    }

    async fn listening_post(&self, turn: usize) -> Option<Address> {
        let found = self.calls.locate(0).await;
        let posts = self.calls.directory.in_charge();
        posts.get(turn % posts.len().max(1)).cloned().or_else(|| found.map(|located| located.node.address.clone()))
    }

    async fn listen_at(
        &self,
        address: &Address,
        channel: &str,
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
                (PushKind::Message, [_, Value::BulkString(message)]) => heard(message),
                (PushKind::Disconnection, _) => ended.notify_one(),
                _ => {}
            }
            Ok::<(), redis::aio::SendError>(())
        });
        let mut connection = connector.connect(login.set_redis_settings(settings), config).await?;
        match timeout(self.calls.response_timeout, connection.subscribe(channel)).await {
            Ok(done) => done.map_err(|error| Failure::of(&error))?,
            Err(_) => return Err(Failure::Lost("it did not answer in time")),
        }
        subscribed();
        while timeout(LOOK, lost.notified()).await.is_err() {
            connector.ask(&connection, &cmd("PING")).await?;
            // For an answer that is fresh enough.
            let _ = self.calls.locate(0).await;
            if !self.calls.directory.in_charge().contains(address) {
                return Ok(());
            }
        }
        Err(Failure::Lost("the connection was lost"))
    }
}

//! The connection to Redis, and what its errors mean for a caller.

use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::RedisOptions;
use super::script::Script;
use crate::error::StoreError;

/// Carries commands to Redis. Clones share it.
#[derive(Clone)]
pub(super) struct Link {
    connection: ConnectionManager,
}

impl Link {
    pub(super) async fn open(options: &RedisOptions) -> Result<Self, StoreError> {
        let address = options.addresses.first().ok_or_else(|| StoreError::Unavailable("there is no address".into()))?;
        let client = redis::Client::open(address.as_str()).map_err(|error| translate(&error))?;
        let config = ConnectionManagerConfig::new().set_response_timeout(Some(Duration::from_secs(2)));
        let connection = ConnectionManager::new_with_config(client, config).await.map_err(|error| translate(&error))?;
        Ok(Self { connection })
    }

    /// Runs a script, loading it when the server does not know it.
    pub(super) async fn call(&self, script: &'static Script, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Value, StoreError> {
        match self.send(&command("EVALSHA", script.sha(), &keys, &args)).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(&command("EVAL", script.source, &keys, &args)).await
            }
            answer => answer,
        }
        .map_err(|error| {
            tracing::debug!(script = script.name, %error, "a script was not carried out");
            translate(&error)
        })
    }

    /// The same without an end.
    pub(super) async fn call_until_answered(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        loop {
            match self.call(script, keys.clone(), args.clone()).await {
                Err(StoreError::Unavailable(_) | StoreError::Overloaded) => tokio::time::sleep(Duration::from_millis(100)).await,
                answer => return answer,
            }
        }
    }

    /// A command that may be repeated.
    pub(super) async fn read(&self, command: Cmd) -> Result<Value, StoreError> {
        self.send(&command).await.map_err(|error| translate(&error))
    }

    /// Many of them.
    pub(super) async fn read_all(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, StoreError> {
        try_join_all(commands.into_iter().map(|command| self.read(command))).await
    }

    async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        command.query_async(&mut self.connection.clone()).await
    }
}

fn command(name: &str, script: &str, keys: &[Vec<u8>], args: &[Vec<u8>]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(keys.len());
    for part in keys.iter().chain(args) {
        command.arg(part.as_slice());
    }
    command
}

fn translate(error: &RedisError) -> StoreError {
    match (error.kind(), error.code()) {
        (_, Some("OOM")) => StoreError::Full,
        (ErrorKind::Server(ServerErrorKind::ResponseError), _) => StoreError::Corrupt("Redis refused a script".into()),
        (_, code) => StoreError::Unavailable(code.unwrap_or("Redis does not answer").into()),
    }
}

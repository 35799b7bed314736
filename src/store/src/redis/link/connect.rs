//! Opening a connection: address, credentials, time-outs, and the check that it is to a master.

use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, Value, cmd};
use tokio::time::timeout;

use super::connect_error::Resolver;
use super::failure::Failure;
use super::topology::{Address, RedisServers, RedisTopology};
use crate::redis::data_loss::LossGuard;

/// Opens connections to the configured servers.
pub(super) struct Connector {
    pub(super) servers: RedisServers,
    pub(super) loss_guard: LossGuard,
    connect_timeout: Duration,
    response_timeout: Duration,
}

impl Connector {
    pub(super) fn new(
        servers: RedisServers,
        loss_guard: LossGuard,
        connect_timeout: Duration,
        response_timeout: Duration,
    ) -> Self {
        Self { servers, loss_guard, connect_timeout, response_timeout }
    }

    /// Opens a connection to a server that takes writes, and checks that the server has not lost data. The caller's
    /// runtime drives the connection.
    pub(super) async fn open(&self, address: &Address) -> Result<MultiplexedConnection, Failure> {
        let opened = self.connect(self.servers.login_at(address), AsyncConnectionConfig::new()).await?;
        // A returning master that was replaced during an outage is a master for a moment. A node of a cluster refuses
        // the slots that it does not own.
        if matches!(self.servers.topology, RedisTopology::Sentinel { .. }) {
            let role = self.ask(&opened, &cmd("ROLE")).await?;
            match role.as_sequence().and_then(<[Value]>::first) {
                Some(Value::BulkString(role)) if role == b"master" => {}
                _ => return Err(Failure::NotOwner(None)),
            }
        }
        self.check_for_loss(&opened).await?;
        Ok(opened)
    }

    /// Compares this server's content with this node's knowledge of the store. A loss is noted in the guard.
    async fn check_for_loss(&self, connection: &MultiplexedConnection) -> Result<(), Failure> {
        let comparison = self.loss_guard.comparison();
        let mut pipeline = Pipeline::new();
        for command in comparison.commands() {
            pipeline.add_command(command);
        }
        let mut connection = connection.clone();
        let answers =
            match timeout(self.response_timeout, connection.send_packed_commands(&pipeline, 0, pipeline.len())).await {
                Ok(Ok(answers)) => answers,
                Ok(Err(error)) => return Err(Failure::from_error(&error)),
                Err(_) => return Err(Failure::Lost("it did not answer in time")),
            };
        let answers = answers.into_iter().map(|answer| match Failure::check_reply(answer) {
            Ok(value) => Ok(Some(value)),
            // Another node of the cluster has the key.
            Err(Failure::NotOwner(Some(_)) | Failure::Migrating(_)) => Ok(None),
            Err(failure) => Err(failure),
        });
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        let evaluation = self.loss_guard.evaluate_server(&comparison, answers);
        evaluation.map_err(|_| Failure::Rejected("the marks of the store cannot be read"))
    }

    /// Opens a connection to query the topology. A sentinel that refuses the credentials is queried without them.
    pub(super) async fn open_for_topology(&self, address: &Address) -> Result<MultiplexedConnection, Failure> {
        let opened = self.connect(self.servers.login_at(address), AsyncConnectionConfig::new()).await;
        match (opened, &self.servers.topology) {
            (Err(Failure::TryLater(_)), RedisTopology::Sentinel { .. }) => {
                self.connect(self.servers.anonymous_at(address), AsyncConnectionConfig::new()).await
            }
            (opened, _) => opened,
        }
    }

    /// Opens any connection, within the time-out.
    pub(super) async fn connect(
        &self,
        info: ConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, Failure> {
        if self.servers.is_encrypted() {
            // The call fails if a provider is installed already, which can only be this one.
            let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let client = Client::open(info).map_err(|_| Failure::Unreachable("its address is invalid"))?;
        // The time-outs are set here: one for each attempt, not one for each layer.
        let config = config.set_connection_timeout(None).set_response_timeout(None).set_dns_resolver(Resolver);
        match timeout(self.connect_timeout, client.get_multiplexed_async_connection_with_config(&config)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(Failure::from_connect_error(&error)),
            Err(_) if self.servers.is_encrypted() => {
                Err(Failure::Unreachable("it could not be connected to in time: it may not speak TLS"))
            }
            Err(_) => Err(Failure::Unreachable("it could not be connected to in time")),
        }
    }

    /// Sends one query, within the time-out.
    pub(super) async fn ask(&self, connection: &MultiplexedConnection, query: &Cmd) -> Result<Value, Failure> {
        let mut connection = connection.clone();
        match timeout(self.response_timeout, connection.send_packed_command(query)).await {
            Ok(Ok(answer)) => Failure::check_reply(answer),
            Ok(Err(error)) => Err(Failure::from_error(&error)),
            Err(_) => Err(Failure::Lost("it did not answer in time")),
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("servers", &self.servers).finish_non_exhaustive()
    }
}

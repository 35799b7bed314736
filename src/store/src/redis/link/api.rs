//! [`Link`]: the interface for the rest of the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::{Cmd, Value};
use tracing::{Instrument as _, Span};

use super::call_limit::CallLimit;
use super::calls::Calls;
use super::connect::Connector;
use super::counters::{Counters, LinkFigures};
use super::directory::Directory;
use super::request::{Request, Wait, mark_key};
use super::retry::Until;
use super::topology::RedisServers;
use crate::error::StoreError;
use crate::redis::data_loss::LossGuard;
use crate::redis::script::Script;
use crate::{SCHEMA, Schema};

/// The settings of the link.
#[derive(Clone, Debug)]
pub(crate) struct LinkOptions {
    /// The addresses of the servers.
    pub(crate) servers: RedisServers,
    /// The schema of this release.
    pub(crate) schema: &'static Schema,
    /// Maximum number of calls in flight; further ones are refused at once.
    pub(crate) max_waiting: usize,
    /// Number of replicas that must have confirmed a write before it counts as answered.
    pub(crate) wait_replicas: u32,
    /// Time limit for the replicas' confirmation.
    pub(crate) wait_timeout: Duration,
    /// Time limit for opening a connection.
    pub(crate) connect_timeout: Duration,
    /// Time limit for one attempt.
    pub(crate) response_timeout: Duration,
    /// Time limit for a call with all its attempts.
    pub(crate) call_timeout: Duration,
}

impl LinkOptions {
    /// Returns the usual limits, without waiting for replicas.
    pub(crate) const fn new(servers: RedisServers) -> Self {
        Self {
            servers,
            schema: &SCHEMA,
            max_waiting: 4_096,
            wait_replicas: 0,
            wait_timeout: Duration::from_millis(400),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_millis(500),
            call_timeout: Duration::from_secs(3),
        }
    }
}

/// The link to the Redis servers. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(super) calls: Arc<Calls>,
}

impl Link {
    /// Returns a link that connects when it is first used, and reconnects when needed.
    pub(crate) fn new(options: LinkOptions) -> Self {
        let LinkOptions {
            servers,
            schema,
            max_waiting,
            wait_replicas,
            wait_timeout,
            connect_timeout,
            response_timeout,
            call_timeout,
        } = options;
        let connector = Arc::new(Connector::new(servers, LossGuard::new(schema), connect_timeout, response_timeout));
        let milliseconds = u64::try_from(wait_timeout.as_millis()).unwrap_or(u64::MAX).max(1);
        Self {
            calls: Arc::new(Calls {
                directory: Arc::new(Directory::new(Arc::clone(&connector))),
                connector,
                call_limit: CallLimit::new(max_waiting),
                counters: Counters::default(),
                wait: (wait_replicas > 0).then_some(Wait { replicas: wait_replicas, milliseconds }),
                response_timeout,
                wait_timeout,
                call_timeout,
            }),
        }
    }

    /// Returns true if writes wait for replicas.
    pub(crate) fn waits_for_replicas(&self) -> bool {
        self.calls.wait.is_some()
    }

    /// Runs a script, and repeats it with the same arguments while its reply is lost. A server that does not know the
    /// script gets its source.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] at the limit of calls in flight, [`StoreError::Full`] when a server has no memory
    /// left, [`StoreError::Corrupt`] when the script is refused, [`StoreError::Unavailable`] when the time limit of a
    /// call is reached.
    pub(crate) async fn call(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let _permit = self.calls.acquire()?;
        let request = Request::script(script, &keys, &args, self.calls.wait);
        self.calls.run(&request, Until::Timeout).instrument(call_span(script.name)).await
    }

    /// Calls as [`Link::call`] does, without a time limit and never refused, for outcomes that must be known. Callers
    /// limit the number of such calls themselves.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the script is refused, which no retry would change.
    pub(crate) async fn call_until_answered(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let _permit = self.calls.call_limit.acquire_beyond_limit();
        let request = Request::script(script, &keys, &args, self.calls.wait);
        self.calls.run(&request, Until::Answered).instrument(call_span(script.name)).await
    }

    /// Sends a repeatable command to the node that has its key.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn read(&self, command: Cmd) -> Result<Value, StoreError> {
        let _permit = self.calls.acquire()?;
        self.calls.run(&Request::read(command), Until::Timeout).instrument(call_span("read")).await
    }

    /// Sends repeatable commands, each to the node that has its key, in one round trip for each node. The answers are
    /// in the order of the commands.
    ///
    /// # Errors
    /// As [`Link::call`]; the result has all answers or none.
    pub(crate) async fn read_all(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, StoreError> {
        let _permit = self.calls.acquire()?;
        self.calls.read_all(commands.into_iter().map(Request::read).collect()).instrument(call_span("read_all")).await
    }

    /// Reads as [`Link::read_all`] does, also while the store lacks data.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn read_all_always(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, StoreError> {
        let requests = commands.into_iter().map(|command| Request::read(command).always_sent()).collect();
        self.calls.read_all(requests).instrument(call_span("read_all")).await
    }

    /// Calls as [`Link::call`] does, also while the store lacks data.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn call_always(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let request = Request::script(script, &keys, &args, self.calls.wait).always_sent();
        self.calls.run(&request, Until::Timeout).instrument(call_span(script.name)).await
    }

    /// Returns the guard that detects missing data.
    pub(crate) fn loss_guard(&self) -> &LossGuard {
        &self.calls.connector.loss_guard
    }

    /// Sends a command without a key to one server. Servers are numbered from 0 in the order of their slots; `None`
    /// when there are fewer.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn ask_server(&self, number: u16, command: Cmd) -> Result<Option<Value>, StoreError> {
        let Some(slot) = self.calls.directory.slots_of_owners().get(usize::from(number)).copied() else {
            return Ok(None);
        };
        let _permit = self.calls.acquire()?;
        self.calls
            .run(&Request::for_server(command, slot), Until::Timeout)
            .instrument(call_span("read"))
            .await
            .map(Some)
    }

    /// Runs a script on a key of each server. A server that was replaced as master fails the call, because no replica
    /// confirms its writes any more.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn call_each_server(&self, script: &'static Script, args: &[Vec<u8>]) -> Result<(), StoreError> {
        let slots = self.calls.directory.slots_of_owners();
        let keys = slots.into_iter().map(|slot| vec![mark_key(slot).as_bytes().to_vec()]);
        try_join_all(keys.map(|keys| self.call(script, keys, args.to_vec()))).await.map(drop)
    }

    /// Returns the counters so far.
    pub(crate) fn figures(&self) -> LinkFigures {
        self.calls.counters.snapshot(self.calls.call_limit.in_flight())
    }
}

/// Creates the span of a call.
fn call_span(name: &'static str) -> Span {
    sakshi_trace::store("redis", name)
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("connector", &self.calls.connector).finish_non_exhaustive()
    }
}

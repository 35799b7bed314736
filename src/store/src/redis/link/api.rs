//! [`Link`]: what the rest of the store calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use super::admission::Admission;
use super::calls::Calls;
use super::connect::Connector;
use super::directory::Directory;
use super::figures::{LinkFigures, Tallies};
use super::request::{Request, Wait};
use super::retry::Until;
use super::topology::RedisServers;
use crate::error::StoreError;
use crate::redis::script::Script;

/// How the link behaves.
#[derive(Clone, Debug)]
pub(crate) struct LinkOptions {
    /// Where the servers are.
    pub(crate) servers: RedisServers,
    /// Calls that may be under way; further ones are refused at once.
    pub(crate) max_waiting: usize,
    /// Replicas that must have confirmed a write before it counts as answered.
    pub(crate) wait_replicas: u32,
    /// What they may take for it.
    pub(crate) wait_timeout: Duration,
    /// What opening a connection may take.
    pub(crate) connect_timeout: Duration,
    /// What one attempt may take.
    pub(crate) response_timeout: Duration,
    /// What a call may take with all its attempts.
    pub(crate) patience: Duration,
}

impl LinkOptions {
    /// The usual bounds, without waiting for replicas.
    pub(crate) const fn new(servers: RedisServers) -> Self {
        Self {
            servers,
            max_waiting: 4_096,
            wait_replicas: 0,
            wait_timeout: Duration::from_millis(400),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_millis(500),
            patience: Duration::from_secs(3),
        }
    }
}

/// The link. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(super) calls: Arc<Calls>,
}

impl Link {
    /// A link that connects when it is first used, and again whenever it has to.
    pub(crate) fn new(options: LinkOptions) -> Self {
        let LinkOptions { servers, max_waiting, wait_replicas, wait_timeout, connect_timeout, response_timeout, patience } = options;
        let connector = Arc::new(Connector::new(servers, connect_timeout, response_timeout));
        let milliseconds = u64::try_from(wait_timeout.as_millis()).unwrap_or(u64::MAX).max(1);
        Self {
            calls: Arc::new(Calls {
                directory: Arc::new(Directory::new(Arc::clone(&connector))),
                connector,
                admission: Admission::new(max_waiting),
                tallies: Tallies::default(),
                wait: (wait_replicas > 0).then_some(Wait { replicas: wait_replicas, milliseconds }),
                response_timeout,
                wait_timeout,
                patience,
            }),
        }
    }

    /// Runs a script, and repeats it with the same arguments while its answer is lost. A server that
    /// does not know it is told its text.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] at once, [`StoreError::Full`], [`StoreError::Corrupt`] when the
    /// script is refused, [`StoreError::Unavailable`] within the patience of a call.
    pub(crate) async fn call(&self, script: &'static Script, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Value, StoreError> {
        let _place = self.calls.enter()?;
        self.calls.run(&Request::script(script, &keys, &args, self.calls.wait), Until::Patience).await
    }

    /// As [`Link::call`] without an end and never turned away: for what must be known, however long
    /// it takes. Its callers are few by their own bounds.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the script is refused, which no repetition would change.
    pub(crate) async fn call_until_answered(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let _place = self.calls.admission.enter_in_any_case();
        self.calls.run(&Request::script(script, &keys, &args, self.calls.wait), Until::Answered).await
    }

    /// A command that can be repeated, sent to whoever has its key.
    ///
    /// # Errors
    /// As [`Link::call`].
    pub(crate) async fn read(&self, command: Cmd) -> Result<Value, StoreError> {
        let _place = self.calls.enter()?;
        self.calls.run(&Request::read(command), Until::Patience).await
    }

    /// Commands that can be repeated, each sent to whoever has its key, in one round trip for each
    /// node. The answers are in the order of the commands.
    ///
    /// # Errors
    /// As [`Link::call`]; there are all answers or none.
    pub(crate) async fn read_all(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, StoreError> {
        let _place = self.calls.enter()?;
        self.calls.read_all(commands.into_iter().map(Request::read).collect()).await
    }

    /// What it has done so far.
    pub(crate) fn figures(&self) -> LinkFigures {
        self.calls.tallies.read(self.calls.admission.taken())
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("connector", &self.calls.connector).finish_non_exhaustive()
    }
}

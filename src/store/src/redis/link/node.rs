//! One Redis server and the connections to it.
//!
//! Each calling thread has its own connections, opened on its own runtime. An answer then wakes no other thread, which
//! at least doubles the throughput under load. There are few connections, because a server that syncs each write does
//! so once for all connections. When a thread has ended, its connections are lost and replaced at their next use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::connect::Connector;
use super::failure::Failure;
use super::health::Health;
use super::topology::Address;

/// Number of threads that have their own connections; further threads share these.
const THREADS: usize = 16;

/// Number of connections of one thread for commands that do not wait for replicas. Two are as fast as four.
const PLAIN_CONNECTIONS: usize = 2;

/// Number of connections of one thread for commands that wait for replicas, one command at a time on each.
const WAITING_CONNECTIONS: usize = 6;

/// Minimum interval between two attempts to open the same connection.
const REOPEN_INTERVAL: Duration = Duration::from_millis(50);

/// Effect of a command on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// The command does not block the connection.
    Plain,
    /// The command blocks the connection until replicas have confirmed.
    Waiting,
}

/// A server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    /// Health of the server.
    pub(super) health: Health,
    /// Health of its replication.
    pub(super) replication: Health,
    connections: Vec<PooledConnection>,
    /// Number of connections handed out, which distributes calls over the connections.
    turn: AtomicUsize,
}

/// A connection of the pool, opened at its first use.
#[derive(Debug)]
pub(super) struct PooledConnection {
    open: Mutex<Option<OpenConnection>>,
    /// Held while the connection is opened. Holds the time and reason of the latest failure to open it.
    latest_failure: tokio::sync::Mutex<Option<(Instant, Failure)>>,
}

/// An open connection.
#[derive(Clone, Debug)]
pub(super) struct OpenConnection {
    pub(super) connection: MultiplexedConnection,
    opened_at: Instant,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        let connections = (0..THREADS * (PLAIN_CONNECTIONS + WAITING_CONNECTIONS))
            .map(|_| PooledConnection { open: Mutex::new(None), latest_failure: tokio::sync::Mutex::new(None) })
            .collect();
        Self { address, health: Health::new(), replication: Health::new(), connections, turn: AtomicUsize::new(0) }
    }

    /// Returns a connection for the calling thread.
    pub(super) fn connection(&self, traffic: Traffic) -> Option<&PooledConnection> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let connection = match traffic {
            Traffic::Plain => turn % PLAIN_CONNECTIONS,
            Traffic::Waiting => PLAIN_CONNECTIONS + turn % WAITING_CONNECTIONS,
        };
        self.connections.get(thread_index() * (PLAIN_CONNECTIONS + WAITING_CONNECTIONS) + connection)
    }
}

/// Returns the index of this thread's connections. Threads are numbered at their first call, so that few threads never
/// share connections by chance.
fn thread_index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed) % THREADS;
    }
    INDEX.with(|index| *index)
}

impl PooledConnection {
    /// Returns the connection, and opens it if needed. A failure to open it fails all waiting callers.
    pub(super) async fn get(&self, connector: &Connector, address: &Address) -> Result<OpenConnection, Failure> {
        if let Some(opened) = self.current() {
            return Ok(opened);
        }
        let requested_at = Instant::now();
        let mut latest_failure = self.latest_failure.lock().await;
        if let Some(opened) = self.current() {
            return Ok(opened);
        }
        if let Some((failed_at, failure)) = &*latest_failure
            && (*failed_at >= requested_at || failed_at.elapsed() < REOPEN_INTERVAL)
        {
            return Err(failure.clone());
        }
        match connector.open(address).await {
            Ok(connection) => {
                *latest_failure = None;
                let opened = OpenConnection { connection, opened_at: Instant::now() };
                *self.lock() = Some(opened.clone());
                Ok(opened)
            }
            Err(failure) => {
                *latest_failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Takes a connection out of use, unless another one has replaced it. Replies in flight on it still arrive.
    pub(super) fn retire(&self, opened: &OpenConnection) {
        self.lock().take_if(|current| current.opened_at == opened.opened_at);
    }

    fn current(&self) -> Option<OpenConnection> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tokio::net::TcpListener;

    use super::*;
    use crate::redis::data_loss::LossGuard;
    use crate::redis::link::{RedisServers, RedisTopology};

    #[test]
    fn each_thread_has_its_own_connections_and_separate_ones_for_waiting_commands() {
        let node = Node::new(Address { host: "127.0.0.1".to_owned(), port: 1 });
        let indexes_for = |traffic| -> BTreeSet<usize> {
            let index_of = |pooled| node.connections.iter().position(|other| std::ptr::eq(other, pooled));
            (0..100).filter_map(|_| index_of(node.connection(traffic)?)).collect()
        };
        let check_connections = || {
            let first = thread_index() * (PLAIN_CONNECTIONS + WAITING_CONNECTIONS);
            let waiting = first + PLAIN_CONNECTIONS;
            assert_eq!(indexes_for(Traffic::Plain), (first..waiting).collect());
            assert_eq!(indexes_for(Traffic::Waiting), (waiting..waiting + WAITING_CONNECTIONS).collect());
            thread_index()
        };
        // One after the other, because threads take turns.
        let thread_indexes: BTreeSet<usize> =
            (0..8).map(|_| std::thread::scope(|threads| threads.spawn(check_connections).join().unwrap())).collect();
        assert!(thread_indexes.len() > 1, "{thread_indexes:?}");
        assert_eq!(node.connections.len(), THREADS * (PLAIN_CONNECTIONS + WAITING_CONNECTIONS));
    }

    #[tokio::test]
    async fn a_failed_connection_is_not_retried_within_the_interval() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address { host: "127.0.0.1".to_owned(), port: server.local_addr().unwrap().port() };
        let servers = RedisServers::new(&[format!("redis://{address}")], RedisTopology::Standalone).unwrap();
        let connector = Connector::new(servers, LossGuard::default(), Duration::from_secs(5), Duration::from_secs(5));
        let (node, attempts) = (Node::new(address.clone()), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&attempts);
        // The server closes every connection.
        tokio::spawn(async move {
            while server.accept().await.is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        let pooled = node.connection(Traffic::Plain).unwrap();
        // A busy machine may take longer than the interval.
        for _ in 0..100 {
            tokio::time::sleep(REOPEN_INTERVAL).await;
            let (before, started) = (attempts.load(Ordering::SeqCst), Instant::now());
            for _ in 0..3 {
                assert!(pooled.get(&connector, &address).await.is_err());
            }
            assert!(attempts.load(Ordering::SeqCst) > before, "another attempt after the interval");
            if started.elapsed() < REOPEN_INTERVAL {
                return assert_eq!(attempts.load(Ordering::SeqCst), before + 1);
            }
        }
        panic!("three attempts never took less than the interval");
    }
}

//! One Redis server and the connections to it.
//!
//! A thread that calls has connections of its own, opened on its own runtime: an answer then wakes
//! nobody else, which is worth a factor of two under load and more on a busy machine. They are a
//! few, because a server that syncs each write does so for one round of all its connections.
//! A connection whose thread has ended is lost like any other, and replaced where it is next used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::connect::Connector;
use super::failure::Failure;
use super::health::Health;
use super::topology::Address;

/// Threads that have connections of their own; further ones share.
const BANKS: usize = 16;

/// Connections of one thread for commands that pass. Two are as fast as four.
const PLAIN_LANES: usize = 2;

/// Connections of one thread for commands that wait for replicas, one at a time on each.
const WAITING_LANES: usize = 6;

/// Between two attempts to open the same connection.
const REOPENING: Duration = Duration::from_millis(50);

/// What a command does to the connection it is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// It passes.
    Plain,
    /// It stops there until replicas have answered, and everything behind it too.
    Waiting,
}

/// A server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    /// Whether it answers.
    pub(super) health: Health,
    /// Whether its replicas do.
    pub(super) replication: Health,
    lanes: Vec<Lane>,
    turn: AtomicUsize,
}

/// One connection, when it is open.
#[derive(Debug)]
pub(super) struct Lane {
    open: Mutex<Option<Opened>>,
    opening: tokio::sync::Mutex<Option<(Instant, Failure)>>,
}

/// An open connection.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) connection: MultiplexedConnection,
    at: Instant,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        let lanes = (0..BANKS * (PLAIN_LANES + WAITING_LANES))
            .map(|_| Lane { open: Mutex::new(None), opening: tokio::sync::Mutex::new(None) })
            .collect();
        Self { address, health: Health::new(), replication: Health::new(), lanes, turn: AtomicUsize::new(0) }
    }

    /// A connection for the thread that calls.
    pub(super) fn lane(&self, traffic: Traffic) -> Option<&Lane> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let lane = match traffic {
            Traffic::Plain => turn % PLAIN_LANES,
            Traffic::Waiting => PLAIN_LANES + turn % WAITING_LANES,
        };
        self.lanes.get(bank() * (PLAIN_LANES + WAITING_LANES) + lane)
    }
}

/// Which connections are this thread's. Threads are numbered as they first call, so that the few
/// that do never share by bad luck.
fn bank() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static BANK: usize = THREADS.fetch_add(1, Ordering::Relaxed) % BANKS;
    }
    BANK.with(|bank| *bank)
}

impl Lane {
    /// The connection, opened if it is not. Those who wait while it fails to open have failed too.
    pub(super) async fn get(&self, connector: &Connector, address: &Address) -> Result<Opened, Failure> {
        if let Some(opened) = self.current() {
            return Ok(opened);
        }
        let asked = Instant::now();
        let mut failed = self.opening.lock().await;
        if let Some(opened) = self.current() {
            return Ok(opened);
        }
        if let Some((at, failure)) = &*failed
            && (*at >= asked || at.elapsed() < REOPENING)
        {
            return Err(failure.clone());
        }
        match connector.open(address).await {
            Ok(connection) => {
                *failed = None;
                let opened = Opened { connection, at: Instant::now() };
                *self.place() = Some(opened.clone());
                Ok(opened)
            }
            Err(failure) => {
                *failed = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Takes a connection out of use, unless another has replaced it. Answers that are under way
    /// on it still arrive.
    pub(super) fn retire(&self, opened: &Opened) {
        self.place().take_if(|current| current.at == opened.at);
    }

    fn current(&self) -> Option<Opened> {
        self.place().clone()
    }

    fn place(&self) -> MutexGuard<'_, Option<Opened>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

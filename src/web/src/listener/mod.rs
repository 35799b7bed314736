//! Listening sockets: who is let in, which worker serves it, and what a connection may hold.
//!
//! ```text
//! accept ──▶ worker (a thread with an app of its own) ──▶ [connection] ──▶ the HTTP library ──▶ the app
//! ```
//!
//! Connections go to workers in turn. A worker whose share is used up closes the connection that has
//! been quiet longest ([table]); only when a request is under way on each of them does a newcomer wait.

mod accept;
mod connection;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod worker;

use actix_http::body::MessageBody;
use actix_http::{Request, Response};
use actix_rt::{Arbiter, ArbiterHandle};
use actix_service::{IntoServiceFactory, ServiceFactory};
use actix_web::Error;
use actix_web::dev::AppConfig;
use sakshi_domain::limits::ANSWER_UNSENT_BYTES;
use socket2::SockRef;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

pub(crate) use self::state::Exchange;
pub use self::state::{ConnectionState, Watch};
use self::worker::Worker;
use crate::budget::MemoryBudget;

/// How long a client may take to end a connection that was closed before its request had been read.
const CLIENT_DISCONNECT_MAX: Duration = Duration::from_secs(1);

/// How a listener is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is called in metrics.
    pub name: &'static str,
    /// Threads that serve.
    pub workers: usize,
    /// Connections that one of them may have.
    pub connections_per_worker: usize,
    /// Where answers that wait to be sent are counted.
    pub answers: MemoryBudget,
}

impl Plan {
    /// Connections at which a worker makes room: fewer than it may have, so that who makes room need
    /// not be gone before a newcomer is let in.
    fn share(&self) -> usize {
        (self.connections_per_worker - self.connections_per_worker.div_ceil(8).min(self.connections_per_worker)).max(1)
    }

    /// Connections at which a worker gets no more; with one alone it could never make room.
    fn most(&self) -> usize {
        self.connections_per_worker.max(2)
    }
}

/// A listener at work. It goes on when this is dropped; [`Listener::stop`] ends it.
#[derive(Debug)]
pub struct Listener {
    /// Told to end, whoever accepts says when the socket is closed.
    refuse: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
    workers: Arc<Mutex<Vec<Worker>>>,
    accepting: ArbiterHandle,
}

impl Listener {
    /// Serves an app on every worker, each with one of its own. Must be called within an actix system.
    ///
    /// # Errors
    /// The system's.
    pub fn start<F, I, S, B>(plan: Plan, socket: TcpListener, app: F) -> io::Result<Self>
    where
        F: Fn() -> I + Clone + Send + 'static,
        I: IntoServiceFactory<S, Request> + 'static,
        S: ServiceFactory<Request, Config = AppConfig> + 'static,
        S::Error: Into<Error> + 'static,
        S::InitError: fmt::Debug,
        S::Response: Into<Response<B>> + 'static,
        S::Service: 'static,
        B: MessageBody + 'static,
    {
        socket.set_nonblocking(true)?;
        // Every connection inherits it. A kernel that does not know it queues what it likes.
        if let Err(error) = SockRef::from(&socket).set_tcp_notsent_lowat(ANSWER_UNSENT_BYTES) {
            tracing::warn!(%error, "what the kernel queues for a connection is not bounded");
        }
        let start = move |plan: &Plan| Worker::start(plan, app.clone());
        let workers = Arc::new(Mutex::new((0..plan.workers).map(|_| start(&plan)).collect::<Vec<_>>()));
        let (refuse, refused) = oneshot::channel();
        let arbiter = Arbiter::new();
        let shared = Arc::clone(&workers);
        arbiter.spawn_fn(move || {
            actix_rt::spawn(async move {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(socket) => accept::run(&plan, socket, &shared, start, refused).await,
                    Err(error) => tracing::error!(%error, listener = plan.name, "a socket cannot be listened on"),
                }
            });
        });
        Ok(Self { refuse: Mutex::new(Some(refuse)), workers, accepting: arbiter.handle() })
    }

    /// Closes the socket, so that further clients are refused; those who were let in are served on.
    pub async fn refuse(&self) {
        let refuse = self.refuse.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (done, refused) = oneshot::channel();
        if refuse.is_some_and(|refuse| refuse.send(done).is_ok()) {
            // Whoever accepts may end before it answers; then the socket is closed as well.
            let _ = refused.await;
        }
    }

    /// Closes everything.
    pub async fn stop(&self) {
        self.refuse().await;
        self.accepting.stop();
        for worker in &*self.workers.lock().unwrap_or_else(PoisonError::into_inner) {
            worker.thread.stop();
        }
    }
}

/// Whoever waits for a place among the connections.
type Freed = Arc<Notify>;

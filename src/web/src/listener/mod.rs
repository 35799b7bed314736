//! Listening sockets: accepting connections, distributing them over workers, and bounding what a connection may hold.
//!
//! ```text
//! accept ──▶ worker (a thread with an app of its own) ──▶ [connection] ──▶ the HTTP library ──▶ the app
//! ```
//!
//! Connections go to workers in turn. A worker at its limit closes the connection that has been idle longest ([table]); a new
//! connection waits only while a request is under way on every other one.

mod accept;
mod connection;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_http::body::MessageBody;
use actix_http::{Request, Response};
use actix_rt::{Arbiter, ArbiterHandle};
use actix_service::{IntoServiceFactory, ServiceFactory};
use actix_web::Error;
use actix_web::dev::AppConfig;
use sakshi_domain::limits::ANSWER_UNSENT_BYTES;
use socket2::SockRef;
use tokio::sync::oneshot;

pub(crate) use self::state::ActiveRequest;
pub use self::state::{CloseWatch, ConnectionState};
use self::worker::Worker;
use crate::budget::MemoryBudget;

/// How long a client may take to close its side after the service closed a connection before the end of a request.
const CLIENT_DISCONNECT_MAX: Duration = Duration::from_secs(1);

/// The settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Its name in metrics.
    pub name: &'static str,
    /// Threads that serve connections.
    pub workers: usize,
    /// Connections of one worker at most.
    pub connections_per_worker: usize,
    /// What answers that wait to be sent are charged to.
    pub answers: MemoryBudget,
}

impl ListenerConfig {
    /// Connections from which on a worker closes idle ones: fewer than its maximum, so that a new connection need not wait until
    /// another is closed.
    fn eviction_threshold(&self) -> usize {
        (self.connections_per_worker - self.connections_per_worker.div_ceil(8).min(self.connections_per_worker)).max(1)
    }

    /// Connections at which a worker gets no more. It needs two at least: one is open while another is closed.
    fn max_connections(&self) -> usize {
        self.connections_per_worker.max(2)
    }
}

/// A running listener. Dropping it does not stop it; [`Listener::stop`] does.
#[derive(Debug)]
pub struct Listener {
    /// Tells the accept loop to end; it answers when the socket is closed.
    stop_accepting: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
    workers: Arc<Mutex<Vec<Worker>>>,
    accepting: ArbiterHandle,
}

impl Listener {
    /// Starts the workers, each with an app of its own. Must be called within an actix system.
    ///
    /// # Errors
    /// The system's.
    pub fn start<F, I, S, B>(config: ListenerConfig, socket: TcpListener, app: F) -> io::Result<Self>
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
        // Every connection inherits it. A kernel that does not know the option queues without this bound.
        if let Err(error) = SockRef::from(&socket).set_tcp_notsent_lowat(ANSWER_UNSENT_BYTES) {
            tracing::warn!(%error, "the kernel's send queue of a connection is not bounded");
        }
        let start = move |config: &ListenerConfig| Worker::start(config, app.clone());
        let workers = Arc::new(Mutex::new((0..config.workers).map(|_| start(&config)).collect::<Vec<_>>()));
        let (stop_accepting, stop) = oneshot::channel();
        let arbiter = Arbiter::new();
        let shared = Arc::clone(&workers);
        arbiter.spawn_fn(move || {
            actix_rt::spawn(async move {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(socket) => accept::run(&config, socket, &shared, start, stop).await,
                    Err(error) => tracing::error!(%error, listener = config.name, "cannot listen on a socket"),
                }
            });
        });
        Ok(Self { stop_accepting: Mutex::new(Some(stop_accepting)), workers, accepting: arbiter.handle() })
    }

    /// Closes the listening socket. Connections that were accepted are served on.
    pub async fn stop_accepting(&self) {
        let stop = self.stop_accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (done, closed) = oneshot::channel();
        if stop.is_some_and(|stop| stop.send(done).is_ok()) {
            // The accept loop may end before it answers; then the socket is closed as well.
            let _ = closed.await;
        }
    }

    /// Closes the listening socket and stops all threads.
    pub async fn stop(&self) {
        self.stop_accepting().await;
        self.accepting.stop();
        for worker in &*self.workers.lock().unwrap_or_else(PoisonError::into_inner) {
            worker.thread.stop();
        }
    }
}

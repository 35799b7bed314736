//! Listening sockets: accepting connections, distributing them over workers, and bounding their resources.
//!
//! ```text
//! accept ──▶ worker (a thread with its own app) ──▶ [connection], with TLS or without ──▶ the HTTP library ──▶ the app
//! ```
//!
//! Connections go to workers in turn. A worker near its limit closes a connection of the address with the most
//! connections ([table]). A new connection waits only while every open connection computes a response.

mod accept;
mod config;
mod connection;
mod expiry;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod transport;
mod worker;

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
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
use tokio::time::{Instant, sleep};

pub use self::config::ListenerConfig;
pub(crate) use self::state::{ActiveRequest, ConnectionState};
pub use self::state::{CloseWatch, close_connection_when};
pub use self::tls::{ListenerPem, ListenerTls, ListenerTlsError};
use self::worker::{Worker, serve};

/// Minimum time for the workers to close idle connections at the end.
const CLOSE_IDLE_MAX: Duration = Duration::from_millis(100);
/// Interval between checks that all connections are closed.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A running listener. Dropping it closes the listening socket; [`Listener::stop`] also stops its threads.
#[derive(Debug)]
pub struct Listener {
    /// Ends of two channels. Dropping the sender ends the accept loop. The receiver learns when the socket is closed.
    accept_loop: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
    workers: Arc<Mutex<Vec<Worker>>>,
    accepting: ArbiterHandle,
}

impl Listener {
    /// Starts the workers, each with its own app. Must be called within an actix system.
    ///
    /// # Errors
    /// Any error of the operating system.
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
        // Every connection inherits this option. On a kernel without it the queue is unbounded.
        if let Err(error) = SockRef::from(&socket).set_tcp_notsent_lowat(ANSWER_UNSENT_BYTES) {
            tracing::warn!(%error, "the kernel's send queue of a connection is not bounded");
        }
        let settings = config.clone();
        let start = move || {
            let (config, app) = (settings.clone(), app.clone());
            Worker::start(move |accepted| serve(config, app, accepted))
        };
        let workers = Arc::new(Mutex::new((0..config.workers).map(|_| start()).collect::<Vec<_>>()));
        let (stop, stopped) = oneshot::channel();
        let (open_guard, closed) = oneshot::channel();
        let arbiter = Arbiter::new();
        let shared = Arc::clone(&workers);
        arbiter.spawn_fn(move || {
            actix_rt::spawn(async move {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(socket) => accept::run_accept_loop(&config, socket, &shared, start, stopped).await,
                    Err(error) => tracing::error!(%error, listener = config.name, "cannot listen on a socket"),
                }
                drop(open_guard);
            });
        });
        Ok(Self { accept_loop: Mutex::new(Some((stop, closed))), workers, accepting: arbiter.handle() })
    }

    /// Closes the listening socket. Open connections are still served.
    pub async fn stop_accepting(&self) {
        let accept_loop = self.accept_loop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, closed)) = accept_loop {
            drop(stop);
            // Nothing is ever sent; the sender is dropped.
            let _ = closed.await;
        }
    }

    /// Closes the listening socket, and each connection as soon as it has sent its response. Stops all threads when
    /// no connection is open, or after `time_max`. Returns the number of connections that were cut off.
    pub async fn stop(&self, time_max: Duration) -> usize {
        self.stop_accepting().await;
        self.accepting.stop();
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        let closing: Vec<_> = workers.into_iter().map(Worker::close_connections).collect();
        let open = || closing.iter().map(|(count, _)| count.load(Ordering::Acquire)).sum::<usize>();
        let end = Instant::now() + time_max.max(CLOSE_IDLE_MAX);
        while open() > 0 && Instant::now() < end {
            sleep(CHECK_INTERVAL).await;
        }
        let cut_off = open();
        for (_, thread) in &closing {
            thread.stop();
        }
        cut_off
    }
}

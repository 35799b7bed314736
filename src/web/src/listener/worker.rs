//! A worker: a thread that serves connections, one task for each.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use actix_http::body::MessageBody;
use actix_http::{HttpService, Request, Response};
use actix_rt::{Arbiter, ArbiterHandle};
use actix_service::{IntoServiceFactory, Service as _, ServiceFactory, ServiceFactoryExt as _, map_config};
use actix_web::Error;
use actix_web::dev::AppConfig;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::config::ListenerConfig;
use super::connection::Connection;
use super::table::{ConnectionSlot, ConnectionTable};
use super::transport::Transport;
use crate::rate_limit::subscriber;

/// Maximum time for a client to close its side after the service closed the connection in the middle of a request.
const CLIENT_DISCONNECT_MAX: Duration = Duration::from_secs(1);

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Accepted {
    socket: StdTcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
}

/// A worker as the accept loop sees it.
#[derive(Debug)]
pub(super) struct Worker {
    connections: UnboundedSender<Accepted>,
    count: Arc<AtomicUsize>,
    thread: ArbiterHandle,
}

impl Worker {
    /// Starts a thread that runs [`serve`] on accepted connections.
    pub(super) fn start<F: Future<Output = ()> + 'static>(
        serve: impl FnOnce(UnboundedReceiver<Accepted>) -> F + Send + 'static,
    ) -> Self {
        let (connections, accepted) = unbounded_channel();
        let arbiter = Arbiter::new();
        // The future is not `Send`, so only the function that builds it goes to the thread.
        arbiter.spawn_fn(move || {
            actix_rt::spawn(serve(accepted));
        });
        Self { connections, count: Arc::default(), thread: arbiter.handle() }
    }

    /// Returns the number of open connections.
    pub(super) fn load(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns true while the thread runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.connections.is_closed()
    }

    /// Hands a connection to the worker. The connection is closed if the worker has just died.
    pub(super) fn serve_connection(&self, socket: StdTcpStream, peer: SocketAddr, slot_freed: &Arc<Notify>) {
        drop(self.connections.send(Accepted { socket, peer, slot: ConnectionSlot::new(&self.count, slot_freed) }));
    }

    /// Tells the worker to close each connection as soon as it has sent its response. Returns the count of open
    /// connections, and the thread.
    pub(super) fn close_connections(self) -> (Arc<AtomicUsize>, ArbiterHandle) {
        drop(self.connections);
        (self.count, self.thread)
    }
}

/// Serves connections with an app, one task per connection. When the sender of `accepted` is dropped, closes them: idle
/// ones at once, the others after their response.
pub(super) async fn serve<F, I, S, B>(config: ListenerConfig, app: F, mut accepted: UnboundedReceiver<Accepted>)
where
    F: Fn() -> I,
    I: IntoServiceFactory<S, Request> + 'static,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let app = app().into_factory().map_err(|error| error.into().error_response());
    let is_closing = Rc::<Cell<bool>>::default();
    let signal = Rc::clone(&is_closing);
    let http = HttpService::build()
        .client_disconnect_timeout(CLIENT_DISCONNECT_MAX)
        .graceful_shutdown_signal(move || until_set(Rc::clone(&signal)))
        .on_connect_ext(|connection: &Connection, data| {
            data.insert(Rc::clone(&connection.entry.state));
        })
        .h1(map_config(app, |()| AppConfig::default()));
    let Ok(service) = http.new_service(()).await else {
        tracing::error!(listener = config.name, "a worker could not start its app");
        return;
    };
    let table = ConnectionTable::new(config.name, config.table_bounds());
    while let Some(Accepted { socket, peer, slot }) = accepted.recv().await {
        let Ok(socket) = TcpStream::from_std(socket) else { continue };
        let transport = Transport::new(socket, config.tls.as_ref());
        let connection =
            Connection::new(transport, peer.ip(), table.enter(slot, subscriber(peer.ip())), config.answers.clone());
        let state = Rc::clone(&connection.entry.state);
        let serving = service.call((connection, Some(peer)));
        actix_rt::spawn(async move {
            let mut serving = pin!(serving);
            // The result concerns the client only. The connection may send a last response when it is dropped.
            let _ = serving.as_mut().await;
            state.note_end();
        });
    }
    is_closing.set(true);
    table.wake_all();
}

/// Completes when the flag is set. Does not wake its task for that.
async fn until_set(flag: Rc<Cell<bool>>) {
    poll_fn(|_| if flag.get() { Poll::Ready(()) } else { Poll::Pending }).await;
}

//! A worker: a thread that serves connections, one task for each.

use std::fmt;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_http::body::MessageBody;
use actix_http::{HttpService, Request, Response};
use actix_rt::{Arbiter, ArbiterHandle};
use actix_service::{IntoServiceFactory, Service as _, ServiceFactory, ServiceFactoryExt as _, map_config};
use actix_web::Error;
use actix_web::dev::AppConfig;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connection::Connection;
use super::table::ConnectionTable;
use super::{CLIENT_DISCONNECT_MAX, ListenerConfig};

/// An accepted connection.
pub(super) struct Accepted {
    pub(super) socket: StdTcpStream,
    pub(super) peer: SocketAddr,
    pub(super) slot: ConnectionSlot,
}

/// Counts one open connection of a worker, until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    count: Arc<AtomicUsize>,
    freed: Arc<Notify>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Release);
        self.freed.notify_one();
    }
}

/// A worker, as the accept loop sees it.
#[derive(Debug)]
pub(super) struct Worker {
    connections: UnboundedSender<Accepted>,
    count: Arc<AtomicUsize>,
    pub(super) thread: ArbiterHandle,
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted").finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts a thread with an app of its own.
    pub(super) fn start<F, I, S, B>(config: &ListenerConfig, app: F) -> Self
    where
        F: Fn() -> I + Send + 'static,
        I: IntoServiceFactory<S, Request> + 'static,
        S: ServiceFactory<Request, Config = AppConfig> + 'static,
        S::Error: Into<Error> + 'static,
        S::InitError: fmt::Debug,
        S::Response: Into<Response<B>> + 'static,
        S::Service: 'static,
        B: MessageBody + 'static,
    {
        let (connections, accepted) = unbounded_channel();
        let arbiter = Arbiter::new();
        let config = config.clone();
        // The app is not `Send`; only the function that makes it can be sent to the thread.
        arbiter.spawn_fn(move || {
            actix_rt::spawn(serve(config, app, accepted));
        });
        Self { connections, count: Arc::default(), thread: arbiter.handle() }
    }

    /// Open connections.
    pub(super) fn load(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether its thread still runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.connections.is_closed()
    }

    /// Hands a connection over. One whose worker has just died is closed.
    pub(super) fn take(&self, socket: StdTcpStream, peer: SocketAddr, freed: &Arc<Notify>) {
        self.count.fetch_add(1, Ordering::AcqRel);
        let slot = ConnectionSlot { count: Arc::clone(&self.count), freed: Arc::clone(freed) };
        drop(self.connections.send(Accepted { socket, peer, slot }));
    }
}

async fn serve<F, I, S, B>(config: ListenerConfig, app: F, mut accepted: UnboundedReceiver<Accepted>)
where
    F: Fn() -> I + Send + 'static,
    I: IntoServiceFactory<S, Request> + 'static,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let app = app().into_factory().map_err(|error| error.into().error_response());
    let http = HttpService::build()
        .client_disconnect_timeout(CLIENT_DISCONNECT_MAX)
        .on_connect_ext(|connection: &Connection, data| {
            data.insert(Rc::clone(&connection.entry.state));
        })
        .h1(map_config(app, |()| AppConfig::default()));
    let Ok(service) = http.new_service(()).await else {
        tracing::error!(listener = config.name, "a worker could not start its app");
        return;
    };
    let table = ConnectionTable::new(config.name, config.eviction_threshold());
    while let Some(Accepted { socket, peer, slot }) = accepted.recv().await {
        let Ok(socket) = TcpStream::from_std(socket) else { continue };
        let connection = Connection::new(socket, peer.ip(), table.enter(), config.answers.clone(), slot);
        let state = Rc::clone(&connection.entry.state);
        let served = service.call((connection, Some(peer)));
        actix_rt::spawn(async move {
            let mut served = pin!(served);
            // The result concerns the client only. The connection may send a last answer when it is dropped.
            let _ = served.as_mut().await;
            state.end();
        });
    }
}

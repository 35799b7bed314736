//! A receiver on hyper that counts ids: plain HTTP behind a proxy, or TLS with HTTP/1.1 and HTTP/2, with and without
//! session tickets. On command it drains or cuts its connections.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;

use crate::role::{commands, send_line};
use crate::{Failure, load};

/// The mode that answers at once.
const FAST: u8 = 0;
/// The mode that answers within 20 ms.
const SLOW: u8 = 1;
/// The mode that answers like [`SLOW`], but resets or hangs some requests after it has counted them.
const FAULTY: u8 = 2;

/// The fate of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Connections {
    #[default]
    Keep,
    /// The receiver sends GOAWAY, finishes requests in flight, and closes them.
    Drain,
    /// The receiver closes them at once.
    Cut,
}

#[derive(Clone)]
struct Receiver {
    /// Number of arrivals by id.
    arrivals: Arc<Mutex<HashMap<u64, u32>>>,
    /// Fate of the connections, with the number of the change.
    connections: watch::Sender<(u64, Connections)>,
    mode: Arc<AtomicU8>,
}

/// Runs the role of the receiver; the directory holds the certificate.
pub(crate) fn serve(directory: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(load::cores()).enable_all().build()?;
    runtime.block_on(async {
        let receiver =
            Receiver { arrivals: Arc::default(), connections: watch::Sender::default(), mode: Arc::default() };
        let mut ports = json!({ "plain": receiver.listen(None).await? });
        for (name, protocol, tickets) in [
            ("h2", "h2", true),
            ("h1", "http/1.1", true),
            ("h2_no_tickets", "h2", false),
            ("h1_no_tickets", "http/1.1", false),
        ] {
            ports[name] = json!(receiver.listen(Some(acceptor(directory, protocol, tickets)?)).await?);
        }
        send_line(&ports)?;
        let mut commands = commands();
        let mut close_count = 0;
        while let Some(command) = commands.recv().await {
            if let Some(ids) = command["seen_ids"].as_array() {
                send_line(&receiver.take_counts(ids))?;
            } else if let Some(mode) = command["mode"].as_str() {
                let mode =
                    [(FAST, "fast"), (SLOW, "slow"), (FAULTY, "faulty")].into_iter().find(|(_, name)| *name == mode);
                receiver.mode.store(mode.map_or(FAST, |(mode, _)| mode), Ordering::SeqCst);
                send_line(&json!({}))?;
            } else {
                close_count += 1;
                receiver.connections.send_replace((
                    close_count,
                    if command["now"] == "drain" { Connections::Drain } else { Connections::Cut },
                ));
                send_line(&json!({}))?;
            }
        }
        Ok(())
    })
}

/// Returns an acceptor of TLS that offers one protocol by ALPN, with or without session tickets.
fn acceptor(directory: &Path, protocol: &str, has_tickets: bool) -> Result<TlsAcceptor, Failure> {
    let chain = CertificateDer::pem_file_iter(directory.join("certificate.pem"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem"))?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.into()];
    if has_tickets {
        config.ticketer = tokio_rustls::rustls::crypto::aws_lc_rs::Ticketer::new()?;
    } else {
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl Receiver {
    /// Serves a new port, and returns it; without an acceptor it serves plain HTTP/1.1.
    async fn listen(&self, acceptor: Option<TlsAcceptor>) -> Result<u16, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (port, receiver) = (listener.local_addr()?.port(), self.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(receiver.clone().serve_stream(stream, acceptor.clone()));
            }
        });
        Ok(port)
    }

    async fn serve_stream(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        let mut connections = self.connections.subscribe();
        let service = service_fn(move |request| {
            let receiver = self.clone();
            async move { receiver.handle(request).await }
        });
        let Some(acceptor) = acceptor else {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            return;
        };
        let Ok(stream) = acceptor.accept(stream).await else { return };
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            return;
        }
        let mut connection =
            pin!(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => return,
            changed = connections.changed() => if changed.is_err() || connections.borrow().1 == Connections::Cut {
                return;
            },
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }

    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, io::Error> {
        let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        let id: Option<u64> = text.split_once("\"id\":").and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).entry(id.unwrap_or(u64::MAX)).or_default() += 1;
        let mode = self.mode.load(Ordering::Relaxed);
        if mode != FAST {
            sleep(Duration::from_millis(id.unwrap_or(0) % 20)).await;
        }
        match id.unwrap_or(0) % 2_000 {
            77 if mode == FAULTY => Err(io::Error::other("it fails")),
            78 if mode == FAULTY => pending().await,
            _ => Ok(Response::new(Full::default())),
        }
    }

    /// Counts the ids that arrived since the last call: all, those that arrived twice, and those among the given ones.
    fn take_counts(&self, ids: &[Value]) -> Value {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let doubled = arrivals.values().filter(|count| **count > 1).count();
        let known = ids.iter().filter(|id| id.as_u64().is_some_and(|id| arrivals.contains_key(&id))).count();
        let counts = json!({ "received": arrivals.len(), "doubled": doubled, "of": known });
        arrivals.clear();
        counts
    }
}

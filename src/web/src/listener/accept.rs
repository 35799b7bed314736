//! The accept loop: hands connections to workers in turn.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::config::ListenerConfig;
use super::worker::Worker;

/// Pause after an error that no client caused, usually a lack of file descriptors.
const BACKOFF: Duration = Duration::from_millis(500);

/// Accepts connections until the sender of `stopped` is dropped. Then accepts those that the kernel has queued, and
/// closes the socket.
pub(super) async fn run_accept_loop(
    config: &ListenerConfig,
    socket: TcpListener,
    workers: &Mutex<Vec<Worker>>,
    start: impl Fn() -> Worker,
    stopped: oneshot::Receiver<()>,
) {
    let slot_freed = Arc::new(Notify::new());
    let mut next_index = 0;
    let accepting = async {
        loop {
            let Some(worker) = choose_worker(config, workers, &start, &mut next_index) else {
                slot_freed.notified().await;
                continue;
            };
            match accept(&socket).await {
                Ok((client, peer)) => hand_over(workers, worker, client, peer, &slot_freed),
                Err(error) if is_caused_by_client(&error) => {}
                Err(error) => {
                    tracing::error!(%error, listener = config.name, "a connection could not be accepted");
                    sleep(BACKOFF).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = stopped => {}
        () = accepting => {}
    }
    // The kernel has opened these connections already; closing the socket would reset them.
    if let Ok(socket) = socket.into_std() {
        while let Some(worker) = choose_worker(config, workers, &start, &mut next_index)
            && let Ok((client, peer)) = socket.accept()
        {
            if client.set_nonblocking(true).is_ok() {
                hand_over(workers, worker, client, peer, &slot_freed);
            }
        }
    }
}

fn lock(workers: &Mutex<Vec<Worker>>) -> MutexGuard<'_, Vec<Worker>> {
    workers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the index of the next worker in turn that is below its limit; `None` if all are full. Restarts workers whose
/// thread has died.
fn choose_worker(
    config: &ListenerConfig,
    workers: &Mutex<Vec<Worker>>,
    start: impl Fn() -> Worker,
    next_index: &mut usize,
) -> Option<usize> {
    let mut workers = lock(workers);
    for _ in 0..workers.len() {
        let index = *next_index % workers.len();
        *next_index = index + 1;
        if !workers[index].is_alive() {
            tracing::error!(listener = config.name, worker = index, "a worker thread has died and is restarted");
            workers[index] = start();
        }
        if workers[index].load() < config.max_connections() {
            return Some(index);
        }
    }
    None
}

async fn accept(socket: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (client, peer) = socket.accept().await?;
    // The socket is registered with the worker's reactor later, so it must leave this reactor.
    Ok((client.into_std()?, peer))
}

fn hand_over(
    workers: &Mutex<Vec<Worker>>,
    worker: usize,
    client: TcpStream,
    peer: SocketAddr,
    slot_freed: &Arc<Notify>,
) {
    if let Some(worker) = lock(workers).get(worker) {
        worker.serve_connection(client, peer, slot_freed);
    }
}

/// Returns true if the client closed the connection before it was accepted.
fn is_caused_by_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::Interrupted
    )
}

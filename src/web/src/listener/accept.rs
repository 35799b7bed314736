//! Letting clients in, one after the other, and giving them to workers in turn.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::worker::Worker;
use super::{Freed, Plan};

/// Pause after a failure that is not the client's, most often too few file descriptors.
const BACKOFF: Duration = Duration::from_millis(500);

/// Accepts until it is told to end; then lets in who waits already and closes the socket.
pub(super) async fn run(
    plan: &Plan,
    socket: TcpListener,
    workers: &Mutex<Vec<Worker>>,
    start: impl Fn(&Plan) -> Worker,
    refused: oneshot::Receiver<oneshot::Sender<()>>,
) {
    let freed: Freed = Arc::new(Notify::new());
    let mut turn = 0;
    let accepting = async {
        loop {
            let Some(worker) = choose(plan, workers, &start, &mut turn) else {
                freed.notified().await;
                continue;
            };
            match next(&socket).await {
                Ok((client, peer)) => give(workers, worker, client, peer, &freed),
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    tracing::error!(%error, listener = plan.name, "a connection could not be accepted");
                    sleep(BACKOFF).await;
                }
            }
        }
    };
    let done = tokio::select! {
        biased;
        done = refused => done,
        () = accepting => return,
    };
    // They were let in by the kernel, and closing the socket would cut them off.
    if let Ok(socket) = socket.into_std() {
        while let Some(worker) = choose(plan, workers, &start, &mut turn)
            && let Ok((client, peer)) = socket.accept()
        {
            if client.set_nonblocking(true).is_ok() {
                give(workers, worker, client, peer, &freed);
            }
        }
    }
    if let Ok(done) = done {
        // Whoever asked may not wait for it.
        let _ = done.send(());
    }
}

fn workers_of(workers: &Mutex<Vec<Worker>>) -> MutexGuard<'_, Vec<Worker>> {
    workers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next worker in turn that has room, started anew if its thread has died; `None` when none has.
fn choose(plan: &Plan, workers: &Mutex<Vec<Worker>>, start: impl Fn(&Plan) -> Worker, turn: &mut usize) -> Option<usize> {
    let mut workers = workers_of(workers);
    for _ in 0..workers.len() {
        let at = *turn % workers.len();
        *turn = at + 1;
        if !workers[at].is_alive() {
            tracing::error!(listener = plan.name, worker = at, "a worker has died; another takes its place");
            workers[at] = start(plan);
        }
        if workers[at].load() < plan.most() {
            return Some(at);
        }
    }
    None
}

async fn next(socket: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (client, peer) = socket.accept().await?;
    // It belongs to the worker's thread from now on.
    Ok((client.into_std()?, peer))
}

fn give(workers: &Mutex<Vec<Worker>>, worker: usize, client: TcpStream, peer: SocketAddr, freed: &Freed) {
    if let Some(worker) = workers_of(workers).get(worker) {
        worker.take(client, peer, freed);
    }
}

/// The client gave up before it was let in.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused | ErrorKind::Interrupted
    )
}

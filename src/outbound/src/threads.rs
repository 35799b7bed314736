//! Threads that do the work of TLS, so that handshakes take more than the one thread which begins
//! all attempts. They start with the first attempt that needs them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

/// With more than this the receivers' side is what a handshake waits for.
const MOST: usize = 8;

/// As many threads as there are cores, within reason.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    runtime: Mutex<Option<Runtime>>,
}

impl Threads {
    /// Has the future run there. Dropping the task ends it.
    ///
    /// # Errors
    /// This machine has no thread to give.
    pub(crate) fn run<F>(&self, future: F) -> io::Result<Task<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match &mut *runtime {
            Some(running) => running,
            none => none.insert(start()?),
        };
        Ok(Task(running.spawn(future)))
    }
}

fn start() -> io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    Builder::new_multi_thread().worker_threads(threads).thread_name("webhooks-tls").enable_all().build()
}

impl Drop for Threads {
    /// Does not wait: the last client may be dropped where waiting is not allowed.
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// A future that runs on the threads.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

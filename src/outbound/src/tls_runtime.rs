//! Threads for TLS, so that handshakes can use several cores. They start with the first attempt over TLS.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

/// Limit on the threads. With more, handshakes would only wait for the receivers.
const THREADS_MAX: usize = 8;

/// A tokio runtime with one thread per core, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct TlsRuntime {
    runtime: Mutex<Option<Runtime>>,
}

impl TlsRuntime {
    /// Runs the future on the threads for TLS. Dropping the task aborts the future.
    ///
    /// # Errors
    /// [`io::Error`] when the system cannot start a thread.
    pub(crate) fn run<F>(&self, future: F) -> io::Result<Task<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match &mut *runtime {
            Some(running) => running,
            none => none.insert(start_runtime()?),
        };
        Ok(Task(running.spawn(future)))
    }
}

fn start_runtime() -> io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    Builder::new_multi_thread().worker_threads(threads).thread_name("webhooks-tls").enable_all().build()
}

impl Drop for TlsRuntime {
    /// Does not wait, because the last client may be dropped in async code.
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// A future that runs on the threads for TLS; dropping the task aborts it.
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

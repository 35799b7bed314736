//! The thread on which a node receives notices and sends heartbeats, however busy the callers' threads are.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{membership, notices};
use crate::error::StoreError;
use crate::operations::Store;
use crate::redis::shared::Shared;

/// Handle of the thread, which ends with the last clone of the store. If the store did not leave before, the other
/// nodes treat this one as dead.
#[derive(Debug)]
pub(crate) struct Background {
    leaving: Option<mpsc::Sender<membership::Leave>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start(shared: &Arc<Shared>, store: &Store, interval: Duration) -> Result<Self, StoreError> {
        let thread_error = |error: io::Error| StoreError::Unavailable(format!("no thread for heartbeats: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread_error)?;
        let (leaving, requests) = mpsc::channel(1);
        // A store starts one thread, so nothing was set before.
        let _ = shared.leaving.set(leaving.downgrade());
        let (shared, store) = (Arc::clone(shared), store.clone());
        let run = move || {
            runtime.block_on(async {
                let notices =
                    tokio::spawn(notices::follow(shared.link.clone(), shared.node, shared.ended_elsewhere.clone()));
                membership::run(shared, store, interval, requests).await;
                notices.abort();
            });
        };
        let thread = Builder::new().name("store-presence".to_owned()).spawn(run).map_err(thread_error)?;
        Ok(Self { leaving: Some(leaving), thread: Mutex::new(Some(thread)) })
    }

    /// Returns the handle of no thread, for a store without a server.
    #[cfg(feature = "fuzzing")]
    pub(crate) const fn none() -> Self {
        Self { leaving: None, thread: Mutex::new(None) }
    }
}

impl Shared {
    /// Sends the last heartbeat, so that other nodes take over at once.
    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let leaving = self.leaving.get().and_then(mpsc::WeakSender::upgrade).ok_or_else(closed)?;
        let (done, outcome) = oneshot::channel();
        leaving.send(done).await.map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.leaving.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A panic of the thread was logged when it happened.
        let _ = thread.map(JoinHandle::join);
    }
}

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

/// Handle of the thread, which ends with the last clone of the store. The other nodes treat this node as dead if it did
/// not announce its end ([`Shared::leave`]) before.
#[derive(Debug)]
pub(crate) struct Background {
    leave_requests: Option<mpsc::Sender<membership::Leave>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start(shared: &Arc<Shared>, store: &Store, interval: Duration) -> Result<Self, StoreError> {
        let thread_error = |error: io::Error| StoreError::Unavailable(format!("no thread for heartbeats: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread_error)?;
        let (leave_requests, received_requests) = mpsc::channel(1);
        // A store starts one thread, so nothing was set before.
        let _ = shared.leave_requests.set(leave_requests.downgrade());
        let (shared, store) = (Arc::clone(shared), store.clone());
        let run = move || {
            runtime.block_on(async {
                let notices = tokio::spawn(notices::forward_all(
                    shared.link.clone(),
                    shared.node,
                    shared.ended_elsewhere.clone(),
                ));
                membership::send_heartbeats(shared, store, interval, received_requests).await;
                notices.abort();
            });
        };
        let thread = Builder::new().name("store-presence".to_owned()).spawn(run).map_err(thread_error)?;
        Ok(Self { leave_requests: Some(leave_requests), thread: Mutex::new(Some(thread)) })
    }

    /// Returns a handle without a thread, for a store without a server.
    #[cfg(feature = "fuzzing")]
    pub(crate) const fn none() -> Self {
        Self { leave_requests: None, thread: Mutex::new(None) }
    }
}

impl Shared {
    /// Sends the last heartbeat, so that other nodes take over at once.
    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let requests = self.leave_requests.get().and_then(mpsc::WeakSender::upgrade).ok_or_else(closed)?;
        let (reply, outcome) = oneshot::channel();
        requests.send(reply).await.map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.leave_requests.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A panic of the thread was logged when it happened.
        let _ = thread.map(JoinHandle::join);
    }
}

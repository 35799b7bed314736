//! The thread on which a node listens, beats and follows the server's clock, whatever the threads of its callers are busy with.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{Shared, clock, notices, presence};
use crate::error::StoreError;

/// Ends with the last clone of the store. A store that did not leave before looks to others as one
/// whose process died.
#[derive(Debug)]
pub(super) struct Background {
    leaving: Option<mpsc::Sender<presence::Leaving>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Listens and beats from now on.
    pub(super) fn start(shared: &Arc<Shared>, every: Duration) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::Unavailable(format!("no thread to beat on: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (leaving, asked) = mpsc::channel(1);
        let shared = Arc::clone(shared);
        let run = move || {
            runtime.block_on(async {
                let listening = tokio::spawn(notices::follow(shared.link.clone(), shared.node, shared.ended_elsewhere.clone()));
                let telling = tokio::spawn(clock::follow(Arc::downgrade(&shared)));
                presence::be_present(shared, every, asked).await;
                listening.abort();
                telling.abort();
            });
        };
        let thread = Builder::new().name("store-presence".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { leaving: Some(leaving), thread: Mutex::new(Some(thread)) })
    }

    /// Leaves: others take what waits for this node, at once. It beats no more afterwards.
    pub(super) async fn leave(&self) -> Result<(), StoreError> {
        let gone = || StoreError::Unavailable("the store is closed".to_owned());
        let (done, outcome) = oneshot::channel();
        self.leaving.as_ref().ok_or_else(gone)?.send(done).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.leaving.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // It waits for nothing else; a thread that panicked has said so itself.
        let _ = thread.map(JoinHandle::join);
    }
}

//! Limit on concurrent reads of flows from the store, because the size of a flow is known only after it was read.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::error::ServiceError;

/// Maximum concurrent reads; further ones wait.
const CONCURRENT_MAX: usize = 8;
/// Time for which a read waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Permits to read a flow from the store, shared by all workers.
#[derive(Clone, Debug)]
pub struct FlowFetches(Arc<Semaphore>);

impl Default for FlowFetches {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENT_MAX)))
    }
}

impl FlowFetches {
    /// Waits for a permit to read a flow.
    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, ServiceError> {
        let permit = timeout(PERMIT_TIMEOUT, self.0.acquire()).await.map_err(|_| ServiceError::Overloaded)?;
        permit.map_err(ServiceError::internal)
    }
}

//! The request behind the current work. It travels with the work to the actors; a panic there can name it.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::task_local;
use tracing::Span;

task_local! {
    static REQUEST: RefCell<Arc<str>>;
}

/// Runs `work` on behalf of the request with this id.
pub async fn in_request<F: Future>(id: Arc<str>, work: F) -> F::Output {
    REQUEST.scope(RefCell::new(id), work).await
}

/// Replaces the id of the current request.
pub fn adopt_request(id: Arc<str>) {
    // Does nothing outside a request.
    let _ = REQUEST.try_with(|request| request.replace(id));
}

/// Returns the id of the current request. A panic hook may call it.
#[must_use]
pub fn request_id() -> Option<Arc<str>> {
    REQUEST.try_with(|request| request.try_borrow().ok().map(|id| Arc::clone(&id))).ok().flatten()
}

/// The span and the request that started some work, for work that runs elsewhere.
#[derive(Clone, Debug)]
pub struct Origin {
    span: Span,
    request: Option<Arc<str>>,
}

impl Origin {
    /// Captures the current span and request.
    #[must_use]
    pub fn current() -> Self {
        Self { span: super::current(), request: request_id() }
    }

    /// Runs `work` in the captured span and request.
    pub fn in_scope<R>(&self, work: impl FnOnce() -> R) -> R {
        match &self.request {
            Some(id) => REQUEST.sync_scope(RefCell::new(Arc::clone(id)), || self.span.in_scope(work)),
            None => self.span.in_scope(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_runs_elsewhere_belongs_to_the_request_that_started_it() {
        let id = |text: &str| Arc::<str>::from(text);
        assert_eq!(request_id(), None);
        let origin = in_request(id("first"), async {
            adopt_request(id("second"));
            Origin::current()
        });
        let origin = origin.await;
        assert_eq!((request_id(), origin.in_scope(request_id)), (None, Some(id("second"))));
        adopt_request(id("third"));
        assert_eq!(Origin::current().in_scope(request_id), None);
    }
}

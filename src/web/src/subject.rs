//! The subject of a request, for its log line: the client and app or the operator who called, and the transaction or
//! event.
//!
//! A handler notes the subjects that only the handler knows. An id in the path is read when the line is written. Ids
//! are logged in canonical form, never as received.

use std::sync::Arc;

use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::tenancy::App;

/// The authenticated app.
struct Caller(Arc<App>);

/// Notes the app that called.
pub(crate) fn note_caller(request: &HttpRequest, app: &Arc<App>) {
    request.extensions_mut().insert(Caller(Arc::clone(app)));
}

/// The authenticated operator.
struct Operator(Arc<str>);

/// Notes the operator who called.
pub fn note_operator(request: &HttpRequest, id: &str) {
    request.extensions_mut().insert(Operator(id.into()));
}

/// Notes the transaction that a request has opened.
pub fn note_transaction(request: &HttpRequest, id: TxnId) {
    request.extensions_mut().insert(id);
}

/// Notes the event that a request has created.
pub fn note_event(request: &HttpRequest, id: EventId) {
    request.extensions_mut().insert(id);
}

/// The known subjects of an answered request.
#[derive(Default)]
pub(crate) struct Subject {
    pub(crate) app: Option<Arc<App>>,
    pub(crate) operator: Option<Arc<str>>,
    pub(crate) txn: Option<TxnId>,
    pub(crate) event: Option<EventId>,
}

impl Subject {
    /// Reads the subjects that were noted or are in the path.
    pub(crate) fn from_request(request: &HttpRequest) -> Self {
        let (extensions, path) = (request.extensions(), request.match_info());
        let in_path = |name| path.get(name);
        Self {
            app: extensions.get::<Caller>().map(|Caller(app)| Arc::clone(app)),
            operator: extensions.get().map(|Operator(id)| Arc::clone(id)),
            txn: extensions.get().copied().or_else(|| in_path("txnId")?.parse().ok()),
            event: extensions.get().copied().or_else(|| in_path("eventId")?.parse().ok()),
        }
    }
}

//! Refused requests of an app, for its developers. They are sealed, because the names of fields and the id are the client's own.

use sakshi_domain::ids::AppId;
use sakshi_domain::refused_request::RefusedRequest;

use crate::error::StoreFuture;

/// Refused requests.
pub trait Refusals {
    /// Keeps a refused request. Of an app the newest [`REFUSALS_KEPT_MAX`] are kept, each for [`REFUSAL_TTL`].
    ///
    /// [`REFUSALS_KEPT_MAX`]: sakshi_domain::limits::REFUSALS_KEPT_MAX
    /// [`REFUSAL_TTL`]: sakshi_domain::limits::REFUSAL_TTL
    fn keep_refusal(&self, app: AppId, refused: RefusedRequest) -> StoreFuture<()>;

    /// The refused requests of an app that are kept, the newest first.
    fn refusals(&self, app: AppId) -> StoreFuture<Vec<RefusedRequest>>;
}

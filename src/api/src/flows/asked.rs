//! What the requests that open a flow have in common.

use sakshi_domain::request_id::RequestId;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, text};

/// A request with the correlation id that it is carried out under.
pub(super) struct Asked<T> {
    pub(super) request: T,
    pub(super) request_id: RequestId,
}

/// Ends the reading of a request that opens a flow; all of them may name their correlation id.
///
/// # Errors
/// Every field that is not acceptable, at once.
pub(super) fn asked<T>(mut fields: Fields, request: Option<T>, minted: RequestId) -> Result<Asked<T>, ApiError> {
    let request_id = fields.optional("request_id", text(RequestId::parse)).unwrap_or(minted);
    fields.finish(request.map(|request| Asked { request, request_id }))
}

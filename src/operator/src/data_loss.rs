//! `POST /admin/v1/store/accept-loss`: resumes a store that has lost data.

use actix_web::web::Json;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::data_loss::AcceptLossResponse;

use super::bearer::Operator;

/// Accepts that the store has lost data, so that all nodes use it again.
pub(super) async fn accept(Operator(deps): Operator) -> Result<Json<AcceptLossResponse>, ApiError> {
    let since = deps.store.accept_loss().await?;
    if let Some(since) = since {
        tracing::warn!(%since, "an operator has accepted that the store lost data");
    }
    Ok(Json(AcceptLossResponse { accepted: since.is_some(), since }))
}

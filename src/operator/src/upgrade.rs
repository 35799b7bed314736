//! `POST /admin/v1/store/finish-upgrade`: completes the store's upgrade to this release.

use actix_web::web::Json;
use sakshi_store::redis::{Finish, FinishState};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::upgrade::FinishUpgradeResponse;

use super::bearer::Operator;

/// Rewrites records of the store in the form of this release, once every node runs it.
pub(super) async fn finish(Operator(deps): Operator) -> Result<Json<FinishUpgradeResponse>, ApiError> {
    let Finish { schema, state, looked_at, changed } = deps.store.finish_upgrade().await?;
    let (state_name, behind) = match state {
        FinishState::Nothing => ("nothing", vec![]),
        FinishState::Behind(nodes) => ("behind", nodes),
        FinishState::Walking => ("walking", vec![]),
        FinishState::Finished => ("finished", vec![]),
    };
    tracing::info!(
        schema,
        state = state_name,
        behind = behind.len(),
        looked_at,
        changed,
        "an operator finishes the upgrade of the store"
    );
    let behind = behind.iter().map(ToString::to_string).collect();
    Ok(Json(FinishUpgradeResponse { schema, state: state_name.to_owned(), behind, looked_at, changed }))
}

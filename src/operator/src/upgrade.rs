//! `POST /admin/v1/store/finish-upgrade`: completes the store's upgrade to this release.

use actix_web::web::Json;
use sakshi_store::redis::{Finish, FinishState};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::upgrade::FinishUpgradeResponse;

use super::bearer::Operator;

pub(super) async fn finish(Operator(deps): Operator) -> Result<Json<FinishUpgradeResponse>, ApiError> {
    let Finish { schema, state, looked_at, changed } = deps.store.finish_upgrade().await?;
    let (word, behind) = match state {
        FinishState::Nothing => ("nothing", vec![]),
        FinishState::Behind(nodes) => ("behind", nodes),
        FinishState::Walking => ("walking", vec![]),
        FinishState::Finished => ("finished", vec![]),
    };
    tracing::info!(
        schema,
        state = word,
        behind = behind.len(),
        looked_at,
        changed,
        "an operator finishes the upgrade of the store"
    );
    let behind = behind.iter().map(ToString::to_string).collect();
    Ok(Json(FinishUpgradeResponse { schema, state: word.to_owned(), behind, looked_at, changed }))
}

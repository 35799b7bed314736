//! `/admin/v1/operators`: the operators of the service. A token is shown once, when its operator is added.

use actix_web::web::Json;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_service::ServiceError;
use sakshi_service::operator_token::OperatorToken;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::keys::KeyText;
use sakshi_wire::operator::operators::{AddOperatorRequest, AddOperatorResponse, OperatorResponse, OperatorsResponse};

use super::arguments::{Id, RequestBody};
use super::bearer::Operator;

pub(super) async fn add(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<AddOperatorRequest>,
) -> Result<Json<AddOperatorResponse>, ApiError> {
    let token = OperatorToken::issue()
        .ok_or_else(|| ServiceError::Internal("the system provides no random bytes".to_owned()))?;
    let operator_id = OperatorId::generate();
    let operator = OperatorRecord {
        operator_id: operator_id.clone(),
        name: body.name.0.0,
        role: body.role,
        created_at: deps.clock.now(),
        expires_at: body.expires_at,
        revoked_at: None,
    };
    deps.store.add_operator(operator, token.digest()).await?;
    tracing::info!(operator.id = %operator_id, "operator added");
    Ok(Json(AddOperatorResponse { operator_id, token: KeyText(token.reveal().to_owned()) }))
}

pub(super) async fn list(Operator(deps): Operator) -> Result<Json<OperatorsResponse>, ApiError> {
    let operators = deps.store.operators().await?;
    Ok(Json(OperatorsResponse { operators: operators.into_iter().map(Into::into).collect() }))
}

pub(super) async fn revoke(
    Operator(deps): Operator,
    Id(id): Id<OperatorId>,
) -> Result<Json<OperatorResponse>, ApiError> {
    let operator = deps.store.revoke_operator(id, deps.clock.now()).await?.ok_or(ServiceError::NotFound("operator"))?;
    tracing::info!(operator.id = %operator.operator_id, "operator revoked");
    Ok(Json(operator.into()))
}

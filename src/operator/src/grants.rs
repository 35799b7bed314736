//! `/admin/v1/credits/requests`: movements of credits above a limit, which a second operator must confirm.

use actix_web::HttpRequest;
use actix_web::web::Json;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::grant_request::{DecisionRefusal, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_service::ServiceError;
use sakshi_service::api_key::sha256;
use sakshi_store::{DecideGrant, DecideGrantOutcome, RequestGrant, RequestGrantOutcome};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::credits::{GrantRequestResponse, GrantRequestsResponse, MoveCreditsResponse};

use super::InternalDeps;
use super::arguments::Id;
use super::bearer::{Operator, caller};
use super::credits::{REFERENCE_REUSED, balance_of, move_credits};

/// The refusal to let the operator who requested a movement confirm it.
pub(super) const SECOND_PERSON: ServiceError =
    ServiceError::Conflict { code: "second_person_required", message: "Another operator must confirm this request." };
/// The refusal to decide a request twice.
pub(super) const DECIDED: ServiceError =
    ServiceError::Conflict { code: "already_decided", message: "This request was confirmed or refused before." };

/// Returns true if a movement needs a second person. A movement that was carried out before does not.
pub(super) async fn needs_second_person(
    deps: &InternalDeps,
    client: &ClientId,
    movement: &CreditMove,
) -> Result<bool, ApiError> {
    let is_above_limit =
        deps.second_person_above.is_some_and(|limit| i64::try_from(limit).is_ok_and(|limit| movement.amount > limit));
    Ok(is_above_limit && !deps.store.has_moved(client.clone(), movement.kind, movement.reference.clone()).await?)
}

/// Stores a movement until a second person decides. The same movement and reference give the same request.
pub(super) async fn request_movement(
    deps: &InternalDeps,
    request: &HttpRequest,
    client: ClientId,
    movement: CreditMove,
) -> Result<Json<MoveCreditsResponse>, ApiError> {
    let balance = balance_of(&deps.store, &client).await?;
    let requested_by = caller(request)?.signatory();
    let grant = RequestGrant { id: derive_id(&client, &movement)?, client, movement, by: requested_by };
    match deps.store.ask_grant(grant).await? {
        // The confirming node stopped between the decision and the movement.
        RequestGrantOutcome::Requested(confirmed) if confirmed.state == GrantState::Confirmed => {
            let Json(moved) = move_credits(deps, confirmed.client.clone(), confirmed.movement.clone()).await?;
            Ok(Json(MoveCreditsResponse { request: Some(confirmed.into()), ..moved }))
        }
        RequestGrantOutcome::Requested(pending) => {
            tracing::info!(client.id = %pending.client, grant.id = %pending.id, "credits wait for a second operator");
            Ok(Json(MoveCreditsResponse { balance, entry: None, request: Some(pending.into()) }))
        }
        RequestGrantOutcome::ReferenceReused => Err(REFERENCE_REUSED.into()),
    }
}

/// Derives the id of a request from client, kind and reference.
fn derive_id(client: &ClientId, CreditMove { kind, reference, .. }: &CreditMove) -> Result<GrantId, ApiError> {
    let digest = sha256(&[client.as_str().as_bytes(), b" ", kind.as_str().as_bytes(), b" ", reference.as_bytes()]);
    let digits: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("gr_{digits}").parse().map_err(ApiError::internal)
}

pub(super) async fn list(Operator(deps): Operator) -> Result<Json<GrantRequestsResponse>, ApiError> {
    let requests = deps.store.grant_requests().await?;
    Ok(Json(GrantRequestsResponse { requests: requests.into_iter().map(Into::into).collect() }))
}

/// Confirms a request, then moves the credits. A caller that got no response may confirm again.
pub(super) async fn confirm(
    Operator(deps): Operator,
    request: HttpRequest,
    Id(id): Id<GrantId>,
) -> Result<Json<MoveCreditsResponse>, ApiError> {
    let grant = decide(&deps, &request, id, GrantState::Confirmed).await?;
    let movement = CreditMove { kind: grant.kind, amount: grant.amount, reference: grant.reference.clone() };
    let Json(moved) = move_credits(&deps, grant.client_id.clone(), movement).await?;
    Ok(Json(MoveCreditsResponse { request: Some(grant), ..moved }))
}

/// Refuses a request, or withdraws the operator's own.
pub(super) async fn refuse(
    Operator(deps): Operator,
    request: HttpRequest,
    Id(id): Id<GrantId>,
) -> Result<Json<GrantRequestResponse>, ApiError> {
    Ok(Json(decide(&deps, &request, id, GrantState::Refused).await?))
}

/// Stores an operator's decision on a request.
async fn decide(
    deps: &InternalDeps,
    request: &HttpRequest,
    id: GrantId,
    decision: GrantState,
) -> Result<GrantRequestResponse, ApiError> {
    let by = caller(request)?.signatory();
    match deps.store.decide_grant(DecideGrant { id, by, decision }).await? {
        DecideGrantOutcome::Decided(decided) => {
            tracing::info!(client.id = %decided.client, grant.id = %decided.id, grant.state = decision.as_str(),
                "credits decided");
            Ok(decided.into())
        }
        DecideGrantOutcome::Refused(DecisionRefusal::SamePerson) => Err(SECOND_PERSON.into()),
        DecideGrantOutcome::Refused(DecisionRefusal::Decided(_)) => Err(DECIDED.into()),
        DecideGrantOutcome::NotFound => Err(ServiceError::NotFound("grant request").into()),
    }
}

//! `GET /sandbox/status/{state}/{credential_id}`: the signed status of a credential (authority protocol, section 8).
//!
//! The URL contains the state, so that every node of a sandbox gives the same answer.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use serde::Deserialize;
use url::Url;
use uuid::Uuid;

use super::error::AppError;
use super::state::SandboxApp;
use crate::residents::{PublishedState, Resident};

/// Path segment instead of a state, for an issuer that does not answer.
const UNAVAILABLE_SEGMENT: &str = "unavailable";

/// Behaviour of the issuer's status service for a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StatusService {
    /// The issuer answers.
    #[default]
    Available,
    /// Requests for the credential's status get 503.
    Unavailable,
}

/// Returns the status URL of a resident's credential.
pub(super) fn status_url(
    public_base: &Url,
    resident: &Resident,
    service: StatusService,
    credential_id: Uuid,
) -> String {
    let state = match service {
        StatusService::Available => resident.state.as_str(),
        StatusService::Unavailable => UNAVAILABLE_SEGMENT,
    };
    format!("{}/sandbox/status/{state}/{credential_id}", public_base.as_str().trim_end_matches('/'))
}

/// Responds with the signed status of a credential.
pub(super) async fn show(app: Data<SandboxApp>, path: Path<(String, Uuid)>) -> Result<HttpResponse, AppError> {
    let (segment, credential_id) = path.into_inner();
    let state = PublishedState::from_word(&segment).ok_or(AppError::NoStatus)?;
    let answer = app.issuer.status_answer(credential_id, state, app.clock.now()).map_err(|_| AppError::Signing)?;
    Ok(HttpResponse::Ok().content_type("application/jwt").body(answer))
}

//! The JSON API through which scripts use the identity app: one endpoint answers an intent, another lists the
//! residents.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json};
use sakshi_domain::claims::{Claim, ClaimSet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::action::Action;
use super::answer::{CallbackFormat, Decision, carry_out};
use super::error::AppError;
use super::intent::Intent;
use super::state::SandboxApp;
use super::status::StatusService;
use crate::residents::Resident;

/// The resident who answers when the script does not name one.
pub(super) const DEFAULT_RESIDENT: &str = "asha";

/// The request of a script that answers an intent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerRequest {
    /// The intent JWT or a QR payload.
    intent: String,
    resident: Option<String>,
    action: Option<String>,
    /// Format of the callback.
    #[serde(default)]
    form: CallbackFormat,
    /// Presents the credential with a key binding. Default: true.
    key_binding: Option<bool>,
    /// The issuer's answer about the status of this credential.
    #[serde(default)]
    status: StatusService,
}

/// Answers an intent and returns the service's reply.
pub(super) async fn answer(app: Data<SandboxApp>, request: Json<AnswerRequest>) -> Result<HttpResponse, AppError> {
    let request = request.into_inner();
    let action =
        request.action.as_deref().map_or(Some(Action::default()), Action::from_name).ok_or(AppError::UnknownAction)?;
    let intent = Intent::read(&request.intent, &app.public_base)?;
    let resident =
        Resident::find(request.resident.as_deref().unwrap_or(DEFAULT_RESIDENT)).ok_or(AppError::UnknownResident)?;
    let key_binding = request.key_binding.unwrap_or(true);
    let decision = Decision { resident, action, format: request.form, key_binding, status: request.status };
    let reply = carry_out(&app, &intent, &decision).await?;
    // A callback that the service refused is not a success, although it was posted.
    let success = reply.as_ref().is_none_or(|reply| reply.status < 300);
    Ok(HttpResponse::Ok()
        .json(json!({"success": success, "txnId": intent.txn, "posted": reply.is_some(), "callback": reply})))
}

/// Lists the residents, with their missing claims.
pub(super) async fn list_residents(app: Data<SandboxApp>) -> HttpResponse {
    let now = app.clock.now();
    let residents: Vec<Value> = Resident::all()
        .iter()
        .map(|resident| {
            let missing: ClaimSet = Claim::ALL.into_iter().filter(|claim| !resident.has(*claim, now)).collect();
            json!({"id": resident.id, "name": &resident.name, "about": resident.about, "state": resident.state.as_str(),
                "missing_claims": missing})
        })
        .collect();
    HttpResponse::Ok().json(json!({"success": true, "residents": residents}))
}

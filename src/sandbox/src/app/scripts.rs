//! The JSON side of the app: one call answers an intent, another lists the residents.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json};
use sakshi_domain::claims::{Claim, ClaimSet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::SandboxApp;
use super::answer::{Action, Decision, Form, carry_out};
use super::error::AppError;
use super::intent::Intent;
use crate::residents::Resident;

/// The resident when a script names none.
pub(super) const DEFAULT_RESIDENT: &str = "asha";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerRequest {
    /// The intent JWT or a QR payload.
    intent: String,
    resident: Option<String>,
    action: Option<String>,
    #[serde(default)]
    form: Form,
    key_binding: Option<bool>,
}

/// Answers an intent and says what the service replied.
pub(super) async fn answer(app: Data<SandboxApp>, request: Json<AnswerRequest>) -> Result<HttpResponse, AppError> {
    let request = request.into_inner();
    let action = request.action.as_deref().map_or(Ok(Action::default()), Action::named)?;
    let intent = Intent::read(&request.intent, &app.public_base)?;
    let resident = Resident::find(request.resident.as_deref().unwrap_or(DEFAULT_RESIDENT)).ok_or(AppError::UnknownResident)?;
    let key_binding = request.key_binding.unwrap_or(true);
    let decision = Decision { resident, action, form: request.form, key_binding };
    let reply = carry_out(&app, &intent, &decision).await?;
    Ok(HttpResponse::Ok().json(json!({"success": true, "txnId": intent.txn, "posted": reply.is_some(), "callback": reply})))
}

/// Lists the residents, with the claims that each lacks.
pub(super) async fn residents(app: Data<SandboxApp>) -> HttpResponse {
    let now = app.clock.now();
    let list: Vec<Value> = Resident::all()
        .iter()
        .map(|resident| {
            let missing: ClaimSet = Claim::ALL.into_iter().filter(|claim| !resident.has(*claim, now)).collect();
            json!({"id": resident.id, "name": resident.name, "about": resident.about, "missing_claims": missing})
        })
        .collect();
    HttpResponse::Ok().json(json!({"success": true, "residents": list}))
}

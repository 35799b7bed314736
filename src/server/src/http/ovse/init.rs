//! `POST /api/v1/nationalid-ovse/init`: opens a transaction and debits its credit.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, CREDITS_PER_VERIFICATION, NAME_HINT_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Extras, Pending, Terms};
use sakshi_store::{OpenOutcome, OpenTransaction};
use serde::{Deserialize, Serialize};

use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::idempotency::{OnceOnly, replayed};
use crate::http::language::LanguageField;
use crate::http::rate::Rates;
use crate::http::request_id::request_id;
use crate::http::schema;
use crate::service::{GivenAddresses, Service};

/// What a client asks for.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct InitRequest {
    #[schema(schema_with = schema::claims, required = true)]
    claims: Option<Vec<String>>,
    #[schema(schema_with = schema::channel, required = true)]
    channel: Option<String>,
    #[schema(schema_with = schema::language, required = false)]
    language: Option<LanguageField>,
    /// Whether a face scan is required.
    #[schema(default = true)]
    #[serde(alias = "faceAuth")]
    face_auth: Option<bool>,
    /// Receives one webhook when the transaction completes.
    #[schema(format = "uri", max_length = 2048)]
    #[serde(alias = "webhookUrl")]
    webhook_url: Option<String>,
    /// Android package id; channel `app` on Android only, together with `app_signature`.
    #[schema(max_length = 255)]
    #[serde(alias = "appId")]
    app_id: Option<String>,
    /// Base64 SHA-256 of the signing certificate; together with `app_id`.
    #[serde(alias = "appSignature")]
    app_signature: Option<String>,
    /// Helps the identity app to choose a profile.
    #[schema(min_length = 1, max_length = 100)]
    #[serde(alias = "nameHint")]
    name_hint: Option<String>,
    /// The client's own reference, echoed in result and webhook.
    #[schema(min_length = 1, max_length = 128)]
    #[serde(alias = "clientReferenceId")]
    client_reference_id: Option<String>,
    /// Where the verify page sends the user afterwards.
    #[schema(format = "uri", max_length = 2048)]
    #[serde(alias = "redirectUrl")]
    redirect_url: Option<String>,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[schema(min_length = 1, max_length = 128)]
    #[serde(alias = "requestId")]
    request_id: Option<String>,
}

/// The opened transaction.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitResponse {
    /// Identifies the transaction.
    #[schema(value_type = String, format = "uuid")]
    txn_id: sakshi_domain::ids::TxnId,
    /// Launches the identity app.
    intent_jwt: String,
    /// The end of the 15-minute window.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The verify page; channels `web` and `qr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_url: Option<String>,
    /// The Android intent URI; channel `app` on Android.
    #[serde(skip_serializing_if = "Option::is_none")]
    national_id_app_uri: Option<String>,
}

/// Opens a transaction.
///
/// # Errors
/// 400, 401, 402, 422, 429 and 503 of the error table; only an answer of 200 has cost a credit.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/init", tag = "OVSE", request_body = InitRequest,
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
        description = "Repeats of the request under this key get the first answer for 24 hours; nothing is debited again.")),
    responses((status = 200, body = InitResponse, description = "The transaction is open and one credit was debited.",
               headers(("Idempotency-Replayed" = String, description = "`true` on an answer that was given before."))),
              (status = 400, description = "Unknown claim, invalid channel, or another field that is not acceptable."),
              (status = 402, description = "Insufficient credits."),
              (status = 422, description = "The Idempotency-Key came before with another body."),
              (status = 429, description = "The app opens more transactions per second than it may.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    called: Called<Body<InitRequest>>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    rates.init.take(&caller.app.app_id)?;
    let once = OnceOnly::of(&request, &caller, "init", &body.bytes)?;
    let terms = body.value.into_terms(request_id(&request), service.rules.addresses)?;
    request.extensions_mut().insert(terms.request_id.clone());
    if let Some(once) = &once
        && let Some(kept) = service.store.load_idempotent_answer(once.scope).await?
        && kept.until > service.clock.now()
    {
        return Ok(replayed(once.replay(&service.vault, &kept)?));
    }

    let now = service.clock.now();
    let pending = Pending {
        id: service.transactions.new_id(&caller.client),
        client: caller.client,
        app: caller.app.app_id.clone(),
        event: None,
        opened_at: now,
        expires_at: now + service.rules.window,
        terms,
    };
    match once {
        None => {
            open(&service, OpenTransaction { pending: pending.clone(), cost: CREDITS_PER_VERIFICATION, idempotency: None }).await?;
            Ok(HttpResponse::Ok().json(answer(&service, &pending, now)?))
        }
        // The answer is kept in the step that debits, so it must exist before.
        Some(once) => {
            let json = serde_json::to_vec(&answer(&service, &pending, now)?).map_err(|error| ApiError::Internal(error.to_string()))?;
            let kept = once.keep(&service.vault, &json, now);
            let opening = OpenTransaction { pending, cost: CREDITS_PER_VERIFICATION, idempotency: Some(kept) };
            match open(&service, opening).await? {
                Opened::Now => Ok(HttpResponse::Ok().content_type("application/json").body(json)),
                Opened::Before(sealed) => Ok(replayed(once.reveal(&service.vault, &sealed)?)),
            }
        }
    }
}

/// Opened by this request, or by an earlier one with the same idempotency key.
#[derive(Debug)]
pub(crate) enum Opened {
    /// By this request.
    Now,
    /// By an earlier one, with this answer.
    Before(sakshi_store::Sealed),
}

/// Opens a transaction and debits its credits.
///
/// # Errors
/// When it is not opened; nothing is debited then.
pub(crate) async fn open(service: &Service, opening: OpenTransaction) -> Result<Opened, ApiError> {
    let id = opening.pending.id;
    match service.transactions.open(opening).await? {
        OpenOutcome::Opened { .. } => {
            metrics::counter!("sakshi_transactions_opened_total").increment(1);
            tracing::info!(txn.id = %id, "transaction opened");
            Ok(Opened::Now)
        }
        OpenOutcome::InsufficientCredits => Err(ApiError::InsufficientCredits),
        OpenOutcome::Replayed(sealed) => Ok(Opened::Before(sealed)),
        OpenOutcome::KeyReused => Err(ApiError::IdempotencyKeyReused),
        OpenOutcome::EventRefused(refusal) => Err(refusal.into()),
        OpenOutcome::EventNotFound => Err(ApiError::NotFound("event")),
    }
}

fn answer(service: &Service, pending: &Pending, now: Timestamp) -> Result<InitResponse, ApiError> {
    let agreement = &service.agreement;
    let intent_jwt = agreement.intent(pending, now).map_err(|error| ApiError::Internal(error.to_string()))?;
    let (request_url, national_id_app_uri) = match pending.terms.channel {
        Channel::Web | Channel::Qr => (Some(agreement.request_url(pending.id)), None),
        Channel::Android(_) => (None, Some(agreement.links.android_native(&intent_jwt))),
        Channel::Ios => (None, None),
    };
    Ok(InitResponse { txn_id: pending.id, intent_jwt, expires_at: pending.expires_at, request_url, national_id_app_uri })
}

impl InitRequest {
    /// Reads every field into its type and reports all problems at once.
    fn into_terms(self, minted: RequestId, addresses: GivenAddresses) -> Result<Terms, Invalid> {
        let mut invalid = Invalid::none();
        let claims = match &self.claims {
            Some(claims) => ClaimSet::parse(claims).map_err(|problems| invalid.extend(problems)).ok(),
            None => invalid.check("claims", Err("is required")),
        };
        let channel = match self.channel.as_deref() {
            Some(channel) => Channel::parse(channel, self.app_id.as_deref(), self.app_signature.as_deref())
                .map_err(|problems| invalid.extend(problems))
                .ok(),
            None => invalid.check("channel", Err("is required: web, qr or app")),
        };
        let language = LanguageField::read(self.language.as_ref(), &mut invalid);
        let webhook_url = self.webhook_url.as_deref().and_then(|text| invalid.check("webhook_url", addresses.webhook(text)));
        let redirect_url = self.redirect_url.as_deref().and_then(|text| invalid.check("redirect_url", addresses.page(text)));
        let mut words = |field, text: Option<String>, most| text.and_then(|text| invalid.check(field, short_text(text, most)));
        let name_hint = words("name_hint", self.name_hint, NAME_HINT_CHARS_MAX);
        let client_reference_id = words("client_reference_id", self.client_reference_id, CLIENT_REFERENCE_CHARS_MAX);
        let request_id = match self.request_id.as_deref() {
            Some(text) => invalid.check("request_id", RequestId::parse(text)),
            None => Some(minted),
        };
        let extras = Extras { name_hint, client_reference_id, redirect_url };
        let extras = (extras != Extras::default()).then(|| Box::new(extras));
        match (claims, channel, language, request_id) {
            (Some(claims), Some(channel), Some(language), Some(request_id)) => {
                invalid.or_ok()?;
                let face_auth = self.face_auth.unwrap_or(true);
                Ok(Terms { claims, channel, language, face_auth, webhook_url, request_id, extras })
            }
            _ => Err(invalid),
        }
    }
}

fn short_text(text: String, most: usize) -> Result<String, String> {
    let count = text.chars().count();
    if count == 0 || count > most || text.chars().any(char::is_control) {
        return Err(format!("must be 1 to {most} characters without control characters"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(json: &str) -> Vec<String> {
        let request: InitRequest = crate::http::body::parse(json.as_bytes()).unwrap();
        let refused = request.into_terms(RequestId::mint(), GivenAddresses::PUBLIC).unwrap_err();
        refused.fields().iter().map(|problem| problem.field.clone()).collect()
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let json = r#"{"claims":["name","shoe_size"],"channel":"fax","language":"klingon","webhook_url":"http://a.example/",
            "name_hint":"","request_id":"two words","redirect_url":"nowhere"}"#;
        let fields = problems(json);
        for field in ["claims[1]", "channel", "language", "webhook_url", "name_hint", "request_id", "redirect_url"] {
            assert!(fields.contains(&field.to_owned()), "{field} is missing in {fields:?}");
        }
        assert_eq!(problems("{}"), ["claims", "channel"]);
    }

    #[test]
    fn both_spellings_and_both_forms_of_a_language_are_read() {
        for language in [r#""TAMIL""#, "20", r#""20""#] {
            let json = format!(r#"{{"claims":["name"],"channel":"qr","language":{language},"faceAuth":false}}"#);
            let request: InitRequest = crate::http::body::parse(json.as_bytes()).unwrap();
            let terms = request.into_terms(RequestId::mint(), GivenAddresses::PUBLIC).unwrap();
            assert_eq!((terms.language.name(), terms.face_auth), ("tamil", false));
        }
    }

    #[test]
    fn the_same_field_in_both_spellings_is_refused() {
        let json = r#"{"claims":["name"],"channel":"qr","face_auth":true,"faceAuth":true}"#;
        assert!(crate::http::body::parse::<InitRequest>(json.as_bytes()).is_err());
    }
}

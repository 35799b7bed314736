//! `POST /api/v1/nationalid-ovse/init`: opens a transaction and debits its credit.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::channel::Channel;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, NAME_HINT_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{OptionalTerms, Pending, Terms};
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_service::transactions::{OPERATION, open_transaction};
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, flag, string, text, words};
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::terms::{claims, language, page, webhook};
use serde::Serialize;

use crate::requests::InitRequest;

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
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = InitResponse, description = "The transaction is open and one credit was debited."),
              (status = 400, description = "Unknown claim, invalid channel, or another field that is not acceptable."),
              (status = 402, description = "Insufficient credits."),
              (status = 422, description = "The Idempotency-Key came before with another body."),
              (status = 429, description = "The app opens more transactions per second than it may.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let once = idempotency::of(&request, &caller, OPERATION, &body.bytes)?;
    let terms = read(body.fields, request_id(&request), service.rules.urls)?;
    request.extensions_mut().insert(terms.request_id.clone());
    let answered = open_transaction(&service, caller, terms, once, |pending, now| answer(&service, pending, now)).await?;
    Ok(idempotency::answer(answered))
}

/// The answer to whoever opened a transaction.
///
/// # Errors
/// Only if the cryptographic library fails.
pub fn answer(service: &Service, pending: &Pending, now: Timestamp) -> Result<InitResponse, ServiceError> {
    let authority = &service.authority;
    let intent_jwt = authority.intent(pending, now).map_err(|error| ServiceError::Internal(error.to_string()))?;
    let (request_url, national_id_app_uri) = match pending.terms.channel {
        Channel::Web | Channel::Qr => (Some(authority.request_url(pending.id)), None),
        Channel::Android(_) => (None, Some(authority.links.android_native(&intent_jwt))),
        Channel::Ios => (None, None),
    };
    Ok(InitResponse { txn_id: pending.id, intent_jwt, expires_at: pending.expires_at, request_url, national_id_app_uri })
}

/// Reads what a client asks for.
///
/// # Errors
/// Every field that is not acceptable, at once.
pub fn read(mut fields: Fields, minted: RequestId, addresses: UrlPolicy) -> Result<Terms, ApiError> {
    let claims = fields.required("claims", claims);
    let channel = fields.required("channel", |value| string(value).map_err(|_| "must be web, qr or app".into()));
    let app_id = fields.optional("app_id", string);
    let app_signature = fields.optional("app_signature", string);
    let channel = channel.and_then(|word| fields.agreed(Channel::parse(&word, app_id.as_deref(), app_signature.as_deref())));
    let language = fields.optional("language", language).unwrap_or_default();
    let face_auth = fields.optional("face_auth", flag).unwrap_or(true);
    let webhook_url = fields.optional("webhook_url", webhook(addresses));
    let redirect_url = fields.optional("redirect_url", page(addresses));
    let name_hint = fields.optional("name_hint", words(NAME_HINT_CHARS_MAX));
    let client_reference_id = fields.optional("client_reference_id", words(CLIENT_REFERENCE_CHARS_MAX));
    let request_id = fields.optional("request_id", text(RequestId::parse)).unwrap_or(minted);
    let extras = OptionalTerms { name_hint, client_reference_id, redirect_url };
    let extras = (extras != OptionalTerms::default()).then(|| Box::new(extras));
    let both = claims.zip(channel);
    fields.finish(both.map(|(claims, channel)| Terms { claims, channel, language, face_auth, webhook_url, request_id, extras }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: &str) -> Result<Terms, ApiError> {
        read(Fields::of(json.as_bytes())?, RequestId::mint(), UrlPolicy::PUBLIC)
    }

    #[test]
    fn both_spellings_and_both_forms_of_a_language_are_read() {
        for language in [r#""TAMIL""#, "20", r#""20""#] {
            let terms = asked(&format!(r#"{{"claims":["name"],"channel":"qr","language":{language},"faceAuth":false}}"#)).unwrap();
            assert_eq!((terms.language.name(), terms.face_auth), ("tamil", false));
        }
    }

    #[test]
    fn what_is_left_out_or_null_has_its_default() {
        for more in ["", r#","language":null,"face_auth":null,"webhook_url":null,"name_hint":null,"request_id":null"#] {
            let terms = asked(&format!(r#"{{"claims":["name"],"channel":"qr"{more}}}"#)).unwrap();
            assert_eq!((terms.language.name(), terms.face_auth, terms.webhook_url, terms.extras), ("english", true, None, None));
        }
    }
}

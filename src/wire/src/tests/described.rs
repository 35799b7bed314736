//! Bodies as the OpenAPI document describes them.

use sakshi_domain::limits::{FILE_CHARS_MAX, GUESTS_MAX, SIGNERS_MAX};
use serde_json::{Value, json};

use crate::esign::EsignRequest;
use crate::events::{CreateEventRequest, PatchEventRequest};
use crate::ovse::InitRequest;
use crate::{Describe, credits, doclocker, esign, estamp, events, ovse, pan, refusal, wealth, webhook_urls};

fn schema<T: Describe>(name: &str) -> Value {
    let mut schemas = crate::Schemas::new();
    T::collect(&mut schemas);
    schemas.remove(name).unwrap()
}

#[test]
fn bounds_are_the_limits_and_what_a_request_must_have_is_required() {
    let event = schema::<CreateEventRequest>("CreateEventRequest");
    assert_eq!(event["required"], json!(["name", "claims", "max_guests", "expires_at"]));
    assert_eq!(event["properties"]["max_guests"]["maximum"], json!(GUESTS_MAX));
    let url = json!({"type": ["string", "null"], "format": "uri", "maxLength": 2048, "description": "Receives one webhook per registered guest."});
    assert_eq!(event["properties"]["webhook_url"], url);
    assert_eq!(schema::<PatchEventRequest>("PatchEventRequest").get("required"), None);
    assert_eq!(schema::<InitRequest>("InitRequest")["required"], json!(["claims", "channel"]));
}

#[test]
fn parts_have_names_and_are_referred_to() {
    let request = schema::<EsignRequest>("EsignRequest");
    let document = json!({"$ref": "#/components/schemas/SourceDocument", "description": "The document."});
    assert_eq!(request["properties"]["documentInfo"], document);
    assert_eq!(request["properties"]["signerInfo"]["maxItems"], json!(SIGNERS_MAX));
    let content = &schema::<EsignRequest>("SourceDocument")["properties"]["content"];
    assert_eq!((&content["maxLength"], &content["contentEncoding"]), (&json!(FILE_CHARS_MAX), &json!("base64")));
}

/// Holds what utoipa makes of every schema against the schema.
macro_rules! understood {
    ($($body:ty),+ $(,)?) => {
        $({
            let mut schemas = crate::Schemas::new();
            <$body>::collect(&mut schemas);
            let mut found = Vec::new();
            <$body as utoipa::ToSchema>::schemas(&mut found);
            let found: crate::Schemas = found.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())).collect();
            assert_eq!(found, schemas);
        })+
    };
}

#[test]
fn utoipa_understands_every_schema_as_it_is() {
    understood! {
        InitRequest, ovse::InitResponse, ovse::QrIntentRequest, ovse::QrIntentResponse, ovse::OvseResult,
        CreateEventRequest, PatchEventRequest, events::CreateEventResponse, events::EventsPage, events::RegistrationsPage,
        EsignRequest, esign::EsignResponse, esign::EsignStatusRequest, esign::EsignStatus,
        doclocker::DocLockerInitRequest, doclocker::DocLockerResponse, doclocker::DocLockerDetails,
        estamp::EStampInitRequest, estamp::EStampResponse, estamp::EStampOutcome,
        wealth::WealthConsentRequest, wealth::WealthConsentResponse, wealth::WealthConsentChange,
        wealth::WealthDataNotice, wealth::WealthHistoricalNotice,
        pan::PanRequest, pan::PanAnswer, credits::Balance, credits::Statement, refusal::Refusal, refusal::Pong,
        webhook_urls::RegisterWebhookRequest, webhook_urls::RegisterWebhookResponse, webhook_urls::WebhookSettings,
    }
}

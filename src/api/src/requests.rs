//! Shapes of request bodies for the OpenAPI document.
//!
//! Nothing here is ever made: bodies are read field by field, each by its own parser, and a test
//! holds each shape against its reader.

#![allow(dead_code, reason = "the fields are read by the derive macro alone")]

use utoipa::ToSchema;

use crate::schema;

/// What a client asks for.
#[derive(ToSchema)]
pub struct InitRequest {
    #[schema(schema_with = schema::claims, required = true)]
    claims: Option<Vec<String>>,
    #[schema(schema_with = schema::channel, required = true)]
    channel: Option<String>,
    #[schema(schema_with = schema::language, required = false)]
    language: Option<String>,
    /// Whether a face scan is required.
    #[schema(default = true)]
    face_auth: Option<bool>,
    /// Receives one webhook when the transaction completes.
    #[schema(format = "uri", max_length = 2048)]
    webhook_url: Option<String>,
    /// Android package id; channel `app` on Android only, together with `app_signature`.
    #[schema(max_length = 255)]
    app_id: Option<String>,
    /// Base64 SHA-256 of the signing certificate; together with `app_id`.
    app_signature: Option<String>,
    /// Helps the identity app to choose a profile.
    #[schema(min_length = 1, max_length = 100)]
    name_hint: Option<String>,
    /// The client's own reference, echoed in result and webhook.
    #[schema(min_length = 1, max_length = 128)]
    client_reference_id: Option<String>,
    /// Where the verify page sends the user afterwards.
    #[schema(format = "uri", max_length = 2048)]
    redirect_url: Option<String>,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// Which transaction.
#[derive(ToSchema)]
pub struct QrIntentRequest {
    /// A pending transaction of the calling app.
    #[serde(rename = "txnId")]
    #[schema(value_type = String, required = true, format = "uuid")]
    txn_id: Option<String>,
}

/// Which document.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EsignStatusRequest {
    /// As returned when the document was given.
    #[schema(required = true)]
    document_id: Option<String>,
}

/// Where webhooks are to go.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisterWebhookRequest {
    #[schema(schema_with = schema::api_type, required = true)]
    api_type: Option<String>,
    /// The new receiver; null for none.
    #[schema(required = true, format = "uri", max_length = 2048)]
    webhook_url: Option<String>,
}

/// Which PAN, and what is to be compared with its record.
#[derive(ToSchema)]
pub struct PanRequest {
    /// Five letters, four digits and a letter, in either case.
    #[schema(required = true, min_length = 10, max_length = 10, example = "ABCPE1234F")]
    pan: Option<String>,
    /// `Y`, given by the end user.
    #[schema(required = true, pattern = "^Y$")]
    consent: Option<String>,
    /// The declaration that was shown to the end user.
    #[schema(required = true, min_length = 1, max_length = 4096)]
    consent_text: Option<String>,
    /// A name to compare with the one on record.
    #[schema(min_length = 1, max_length = 100)]
    name_as_per_pan: Option<String>,
    /// A date of birth to compare with the one on record.
    #[schema(format = "date")]
    date_of_birth: Option<String>,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// What an organiser asks for.
#[derive(ToSchema)]
pub struct CreateEventRequest {
    /// 1 to 200 characters; shown to guests.
    #[schema(required = true, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// What each guest is asked to share.
    #[schema(schema_with = schema::claims, required = true)]
    claims: Option<Vec<String>>,
    /// The language of the event's pages.
    #[schema(schema_with = schema::language, required = false)]
    language: Option<String>,
    /// Caps successful verifications, not scans.
    #[schema(required = true, minimum = 1, maximum = 1_000_000)]
    max_guests: Option<u64>,
    /// In the future, at most 366 days from now.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    /// Receives one webhook per registered guest.
    webhook_url: Option<String>,
}

/// What is to change; an absent field stays as it is.
#[derive(ToSchema)]
pub struct PatchEventRequest {
    /// False disables the event at once, true enables it again.
    #[serde(default)]
    is_active: Option<Option<bool>>,
    /// At least the registration count.
    #[serde(default)]
    max_guests: Option<Option<u64>>,
    /// In the future, at most 366 days from now.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<String>>,
    /// 1 to 200 characters.
    #[serde(default)]
    name: Option<Option<String>>,
    /// A new receiver; null for none.
    #[serde(default)]
    webhook_url: Option<Option<String>>,
}

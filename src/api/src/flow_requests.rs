//! Shapes of the requests that open flows, for the OpenAPI document.
//!
//! Nothing here is ever made: bodies are read field by field, each by its own parser, and a test
//! holds each shape against its reader.

#![allow(dead_code, reason = "the fields are read by the derive macro alone")]

use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

/// A document and who shall sign it.
#[derive(ToSchema)]
#[schema(as = EsignRequest)]
#[serde(rename_all = "camelCase")]
pub struct EsignRequestBody {
    /// The document.
    document_info: SourceDocument,
    /// Its signers, in the order of signing.
    #[schema(min_items = 1, max_items = 20)]
    signer_info: Vec<SignerToInvite>,
    /// Receives the webhook; without it the URL that is registered for `ESign` does.
    #[schema(format = "uri", max_length = 2048)]
    response_url: Option<String>,
    /// The client's own reference, echoed in answer, polls and webhook.
    #[schema(min_length = 1, max_length = 128)]
    document_reference_id: Option<String>,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[serde(rename = "request_id")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// The document as it is before anybody has signed.
#[derive(ToSchema)]
pub struct SourceDocument {
    /// What signers see it called.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The PDF in standard Base64 with padding, at most 10 MiB.
    #[schema(content_encoding = "base64", max_length = 13_981_016)]
    content: String,
}

/// Somebody who shall sign.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignerToInvite {
    /// The name.
    #[schema(min_length = 1, max_length = 100)]
    signer_name: String,
    /// The client's own reference.
    #[schema(min_length = 1, max_length = 128)]
    signer_ref_id: Option<String>,
    /// The end of the invitation: with an offset, in the future, at most 90 days from now. A week from now when it is left out.
    #[schema(format = DateTime)]
    invitation_expire_time_stamp: Option<String>,
}

/// A document to be stamped, and who signs it.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EStampInitRequest {
    #[schema(schema_with = stamp_kind, required = true)]
    api_type: String,
    /// The document.
    document: DocumentToStamp,
    /// Who signs it.
    #[schema(min_items = 1, max_items = 20)]
    signatories_info: Vec<NamedSignatory>,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[serde(rename = "request_id")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// The document as it is before it is stamped.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentToStamp {
    /// Its name.
    #[schema(min_length = 1, max_length = 100)]
    document_name: String,
    /// The PDF in standard Base64 with padding, at most 10 MiB.
    #[serde(rename = "base64FileData")]
    #[schema(content_encoding = "base64", max_length = 13_981_016)]
    file_data: String,
}

/// Somebody who signs a stamped document.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedSignatory {
    /// The name.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The e-mail address.
    #[serde(rename = "emailID")]
    #[schema(max_length = 1024)]
    email_id: String,
    /// How it is signed, in the upstream's words.
    #[schema(min_length = 1, max_length = 100)]
    sign_type: String,
}

/// Which documents to fetch, with the person's consent.
#[derive(ToSchema)]
pub struct DocLockerInitRequest {
    /// The kinds of document, each once; 1 to 100 characters each.
    #[schema(min_items = 1, max_items = 20)]
    docs: Vec<String>,
    #[schema(schema_with = consent, required = true)]
    consent: String,
    /// The declaration that the person was shown.
    #[schema(min_length = 1, max_length = 4096)]
    consent_text: String,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// The person's consent to being asked.
#[derive(ToSchema)]
pub struct WealthConsentRequest {
    #[schema(schema_with = consent, required = true)]
    consent: String,
    /// The declaration that the person was shown.
    #[schema(min_length = 1, max_length = 4096)]
    consent_text: String,
    /// The correlation id, when it is not sent as `X-Request-ID`.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

fn stamp_kind() -> Object {
    let words = ["RegistryEStamp", "PhysicalEStamp"];
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Of the registry, or on paper; also whose registered URL gets the webhook."))
        .enum_values(Some(words))
        .build()
}

fn consent() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("`Y`: the person has agreed to what `consent_text` says."))
        .enum_values(Some(["Y"]))
        .build()
}

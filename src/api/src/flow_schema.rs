//! Shapes of flows for the OpenAPI document: what their polls answer and their webhooks carry.
//!
//! Nothing here is ever made: tests hold each shape against what the code writes.

#![allow(dead_code, reason = "the fields are read by the derive macro alone")]

use sakshi_domain::flow::statuses::{LockerStatus, SigningStatus};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

/// The answer to a poll: the outcome, or a stub while signatures are awaited.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum EsignStatus {
    /// The document has ended.
    Outcome(EsignOutcome),
    /// Signatures are awaited.
    Pending(EsignPending),
}

/// How a document ended: the body of the webhook and of a finished poll.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EsignOutcome {
    /// The document; deduplicate by it.
    #[schema(format = "uuid")]
    document_id: String,
    /// As given in the request.
    #[schema(required = true)]
    document_reference_id: Option<String>,
    /// The signed PDF in Base64; null unless the document is completed.
    #[schema(required = true)]
    content: Option<String>,
    #[schema(schema_with = signing_status)]
    document_status: String,
    /// The signers in the order of signing.
    signer_info: Vec<EsignSigner>,
}

/// One signer.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EsignSigner {
    /// The signer within the document.
    signer_id: String,
    /// As given in the request.
    #[schema(required = true)]
    signer_ref_id: Option<String>,
    #[schema(schema_with = signing_status)]
    signer_status: String,
    /// The signer's name.
    signer_name: String,
    /// The end of the invitation.
    #[schema(format = DateTime)]
    invitation_expire_time_stamp: String,
    /// Why the signer refused.
    #[schema(required = true)]
    reject_reason: Option<String>,
    /// What the national ID said of the signer; null until there is a signature.
    #[schema(required = true)]
    national_id_audit_info: Option<NationalIdAuditInfo>,
}

/// What the national ID said of a signer.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NationalIdAuditInfo {
    /// The name.
    name: String,
    /// The postal code.
    pincode: String,
    /// The state.
    state: String,
    /// The year of birth.
    year_of_birth: String,
    /// The gender.
    gender: String,
}

/// The answer to a poll while signatures are awaited.
#[derive(ToSchema)]
pub struct EsignPending {
    /// Always true.
    success: bool,
    /// Always true.
    pending: bool,
    /// How far the document has come.
    data: EsignPendingData,
}

/// How far a document has come.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EsignPendingData {
    /// The document.
    #[schema(format = "uuid")]
    document_id: String,
    /// Always true.
    pending: bool,
    /// As given in the request.
    #[schema(required = true)]
    document_reference_id: Option<String>,
    #[schema(schema_with = signing_status)]
    document_status: String,
    /// The signers in the order of signing.
    signer_info: Vec<EsignSigner>,
}

/// The answer to a poll: the outcome, or a stub while a document is awaited.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum DocLockerDetails {
    /// Nothing is awaited any more.
    Outcome(DocLockerOutcome),
    /// A document is awaited.
    Pending(DocLockerPending),
}

/// What came out of the locker: the body of the webhook and of a finished poll.
#[derive(ToSchema)]
pub struct DocLockerOutcome {
    /// Whether a document was fetched.
    success: bool,
    /// An HTTP status that says the same in another way.
    #[serde(rename = "statusCode")]
    #[schema(minimum = 100, maximum = 599)]
    status_code: u16,
    /// A sentence.
    message: String,
    /// The correlation id of the request that began the fetch.
    #[schema(required = true)]
    request_id: Option<String>,
    /// The documents.
    data: DocLockerData,
}

/// The documents of one fetch.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocLockerData {
    /// The fetch; deduplicate by it.
    #[schema(format = "uuid")]
    transaction_id: String,
    /// One entry for each document; none when the person refused.
    docs: Vec<LockerDocument>,
}

/// One document; what describes it is null unless it was fetched.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockerDocument {
    /// Which kind of document.
    doc_type: String,
    #[schema(schema_with = locker_status)]
    status: String,
    /// When it came.
    #[schema(required = true, format = DateTime)]
    fetched_at: Option<String>,
    /// The document as a PDF in Base64.
    #[schema(required = true)]
    data_pdf: Option<String>,
    /// What its issuer says of it.
    #[schema(required = true)]
    issued: Option<IssuedDocument>,
    /// The fields inside it, by their names.
    #[schema(required = true)]
    details: Option<BTreeMap<String, Value>>,
}

/// What an issuer says of a document.
#[derive(ToSchema)]
pub struct IssuedDocument {
    /// Its title.
    name: String,
    /// Its media type.
    r#type: String,
    /// Its size, as a string.
    size: String,
    /// When it was issued.
    date: String,
    /// Its address in the locker.
    uri: String,
    /// Its type in the locker.
    doctype: String,
    /// Who issued it.
    issuer: String,
}

/// The answer to a poll while a document is awaited.
#[derive(ToSchema)]
pub struct DocLockerPending {
    /// Always true.
    success: bool,
    /// Always true.
    pending: bool,
    /// What has come so far.
    data: DocLockerPendingData,
}

/// What has come so far.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocLockerPendingData {
    /// The fetch.
    #[schema(format = "uuid")]
    transaction_id: String,
    /// Always true.
    pending: bool,
    /// Absent until something is known of a document.
    #[schema(required = false)]
    docs: Vec<LockerDocument>,
}

/// One of these words.
pub(super) fn words(description: &str, words: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description)).enum_values(Some(words)).build()
}

fn signing_status() -> Object {
    words("How it stands.", SigningStatus::ALL.iter().map(|status| status.as_str()))
}

fn locker_status() -> Object {
    words("Whether it came.", LockerStatus::ALL.iter().map(|status| status.as_str()))
}

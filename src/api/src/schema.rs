//! Shapes for the OpenAPI document, where the code writes or reads them by hand.
//!
//! Nothing here is ever made: tests hold each shape against what the code writes.

#![allow(dead_code, reason = "the fields are read by the derive macro alone")]

use sakshi_domain::claims::Claim;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::language::Language;
use sakshi_domain::limits::CLAIMS_MAX;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Array, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type};

/// The body of every answer that is neither 2xx nor 3xx, whatever path it comes from.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Always false.
    success: bool,
    /// The reason phrase of the status.
    error: String,
    /// One sentence that a developer can act on.
    message: String,
    /// A word that stays the same; decide by it, not by the sentence.
    code: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status_code: u16,
    /// The request's id, as in `X-Request-ID`; quote it when you ask about the refusal.
    error_id: String,
    /// Every field that is not acceptable; with `validation_failed` only.
    #[schema(required = false)]
    errors: Vec<FieldProblem>,
}

/// One field and what is wrong with it.
#[derive(ToSchema)]
pub struct FieldProblem {
    /// The field's path as it was sent, for example `claims[2]`; or a header or query parameter.
    field: String,
    /// What would be accepted.
    message: String,
}

/// The answer of the health endpoint.
#[derive(ToSchema)]
pub struct Pong {
    /// Always true.
    success: bool,
    /// Always `pong`.
    message: String,
}

/// The answer to a poll: the outcome, or a stub while there is none.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum OvseResult {
    /// There is one.
    Outcome(OvseOutcome),
    /// There is none yet.
    Pending(OvsePending),
}

/// The outcome of a verification: the body of the webhook and of a finished result.
#[derive(ToSchema)]
pub struct OvseOutcome {
    /// Whether the verification passed.
    success: bool,
    /// Always 200: the transaction ended as it should, whatever its outcome.
    #[serde(rename = "statusCode")]
    status_code: u16,
    /// A sentence, or the reason of a failure.
    message: String,
    /// The correlation id of the request that opened the transaction.
    request_id: String,
    /// The outcome itself.
    data: OvseData,
}

/// The outcome itself; a setting of the app says how its keys are spelled.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum OvseData {
    /// `snake_case`, the default.
    Snake(OvseDataSnakeCase),
    /// `camelCase`.
    Camel(OvseDataCamelCase),
}

/// The outcome with its keys in `snake_case`.
#[derive(ToSchema)]
pub struct OvseDataSnakeCase {
    /// The transaction; deduplicate by it.
    #[schema(format = "uuid")]
    txn_id: String,
    /// Always false.
    pending: bool,
    /// Whether the person was verified and shared every requested claim.
    verification_passed: bool,
    /// The claims by their names in the credential, for example `residentName`, `dob`, `gender`, `address`, `pincode`.
    verified_claims: BTreeMap<String, Value>,
    /// When the transaction was completed.
    #[schema(format = DateTime)]
    verified_at: String,
    /// The reason of a failure.
    #[schema(required = false)]
    message: String,
    /// The identity app's code of a failure, or `claims_missing` or `claims_malformed`.
    #[schema(required = false)]
    error_code: String,
    /// As given at init.
    #[schema(required = false)]
    client_reference_id: String,
}

/// The outcome with its keys in `camelCase`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OvseDataCamelCase {
    /// The transaction; deduplicate by it.
    #[schema(format = "uuid")]
    txn_id: String,
    /// Always false.
    pending: bool,
    /// Whether the person was verified and shared every requested claim.
    verification_passed: bool,
    /// The claims by their names in the credential, for example `residentName`, `dob`, `gender`, `address`, `pincode`.
    verified_claims: BTreeMap<String, Value>,
    /// When the transaction was completed.
    #[schema(format = DateTime)]
    verified_at: String,
    /// The reason of a failure.
    #[schema(required = false)]
    message: String,
    /// The identity app's code of a failure, or `claims_missing` or `claims_malformed`.
    #[schema(required = false)]
    error_code: String,
    /// As given at init.
    #[schema(required = false)]
    client_reference_id: String,
}

/// The answer to a poll while the transaction waits for the person.
#[derive(ToSchema)]
pub struct OvsePending {
    /// Always true.
    success: bool,
    /// Always true.
    pending: bool,
    /// Which transaction waits, in both spellings.
    data: OvsePendingData,
}

/// Which transaction waits.
#[derive(ToSchema)]
pub struct OvsePendingData {
    /// The transaction.
    #[serde(rename = "txnId")]
    #[schema(format = "uuid")]
    camel: String,
    /// The same.
    #[schema(format = "uuid")]
    txn_id: String,
    /// Always true.
    pending: bool,
}

/// What is known of a PAN.
#[derive(ToSchema)]
pub struct PanAnswer {
    /// Always true: the source has answered, whatever it says.
    success: bool,
    /// Always 200.
    #[serde(rename = "statusCode")]
    status_code: u16,
    /// A sentence.
    message: String,
    /// The correlation id of the request.
    request_id: String,
    /// What the source says.
    data: PanData,
}

/// What the source says of a PAN; null is what it did not say, or was not asked to compare.
#[derive(ToSchema)]
pub struct PanData {
    /// The number, in capitals.
    pan: String,
    /// Whether it is in use, known and not in use, or not known.
    #[schema(schema_with = pan_status)]
    status: String,
    /// Who holds it.
    #[schema(required = true)]
    category: Option<String>,
    /// Whether the name is the one on record.
    #[schema(required = true)]
    name_as_per_pan_match: Option<bool>,
    /// Whether the date of birth is the one on record.
    #[schema(required = true)]
    date_of_birth_match: Option<bool>,
    /// Whether it is linked with a national ID: `y`, `n`, or `na` where it need not be.
    #[schema(required = true)]
    nationalid_seeding_status: Option<String>,
}

/// One movement of credits.
#[derive(ToSchema)]
pub struct StatementEntry {
    /// Its place in the client's ledger, from 1 without gaps.
    #[schema(minimum = 1)]
    seq: u64,
    /// `grant` adds, `debit` takes, `adjust` does either.
    #[schema(schema_with = entry_kind)]
    kind: String,
    /// Credits: positive for a grant and for a debit, signed for an adjustment.
    amount: i64,
    /// The balance after it.
    balance_after: u64,
    /// What it was for; of a debit the transaction's id.
    reference: String,
    /// When it was written.
    #[schema(format = DateTime)]
    at: String,
}

fn words<const N: usize>(description: &str, words: [&'static str; N]) -> Object {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description)).enum_values(Some(words)).build()
}

fn pan_status() -> Object {
    words("Whether it is in use, known and not in use, or not known.", ["valid", "invalid", "not_found"])
}

fn entry_kind() -> Object {
    words("`grant` adds, `debit` takes, `adjust` does either.", ["grant", "debit", "adjust"])
}

/// The `apiType` of a webhook setting.
#[must_use]
pub fn api_type() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The API whose webhooks are meant."))
        .enum_values(Some(ApiType::ALL.iter().map(|api_type| api_type.as_str())))
        .build()
}

/// The `claims` of a request.
#[must_use]
pub fn claims() -> Array {
    ArrayBuilder::new()
        .items(words("A claim by its name in this API.", Claim::ALL.map(Claim::name)))
        .description(Some("The claims that the person is asked to share."))
        .min_items(Some(1))
        .max_items(Some(CLAIMS_MAX))
        .unique_items(true)
        .build()
}

/// The `channel` of a request.
#[must_use]
pub fn channel() -> Object {
    words("How the person reaches the identity app: a mobile browser, a QR code, or a native app.", ["web", "qr", "app"])
}

/// The `language` of a request.
#[must_use]
pub fn language() -> Schema {
    let known = (1..=23).filter_map(|code| Language::from_code(code).ok());
    let names: Vec<&str> = known.map(Language::name).filter(|name| Language::parse(name).is_ok()).collect();
    let by_name = format!("By name, in any case: {}; or the code as text.", names.join(", "));
    let code = ObjectBuilder::new().schema_type(Type::Integer).description(Some("By code.")).minimum(Some(1)).maximum(Some(23));
    OneOfBuilder::new()
        .description(Some("The language of the pages and of the identity app."))
        .default(Some(json!("english")))
        .item(ObjectBuilder::new().schema_type(Type::String).description(Some(by_name)))
        .item(code)
        .build()
        .into()
}

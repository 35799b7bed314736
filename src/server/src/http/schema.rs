//! Shapes of answers for the OpenAPI document, where the code writes them by hand.

use utoipa::ToSchema;

/// The outcome of a verification: the body of the webhook and of a finished result. The keys of
/// `data` are spelled as the app's setting says: `snake_case` or `camelCase`.
#[derive(ToSchema)]
#[schema(as = OvseResult)]
#[allow(dead_code)]
pub struct OvseResult {
    /// Whether the verification passed; true in a stub too.
    success: bool,
    /// True in a stub, while the transaction waits; absent afterwards.
    pending: Option<bool>,
    /// Absent in a stub.
    #[serde(rename = "statusCode")]
    status_code: Option<u16>,
    /// A sentence, or the reason of a failure; absent in a stub.
    message: Option<String>,
    /// The correlation id of the request that opened the transaction; absent in a stub.
    request_id: Option<String>,
    /// The outcome itself.
    data: OvseData,
}

/// The outcome itself, in `snake_case`.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct OvseData {
    /// The transaction (`txnId` in camelCase; a stub has both).
    txn_id: String,
    /// Whether it still waits.
    pending: bool,
    /// Whether the person was verified and shared every requested claim.
    verification_passed: Option<bool>,
    /// The claims by their credential names, for example `residentName`, `dob`, `gender`, `address`, `pincode`.
    verified_claims: Option<std::collections::BTreeMap<String, serde_json::Value>>,
    /// When it was completed.
    #[schema(format = DateTime)]
    verified_at: Option<String>,
    /// The reason of a failure.
    message: Option<String>,
    /// The identity app's code, or `claims_missing`.
    error_code: Option<String>,
    /// As given at init.
    client_reference_id: Option<String>,
}

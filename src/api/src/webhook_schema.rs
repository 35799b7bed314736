//! Shapes of the webhooks that have no poll, for the OpenAPI document: e-stamps and the three streams
//! of wealth data.
//!
//! Nothing here is ever made: tests hold each shape against what the code writes.

#![allow(dead_code, reason = "the fields are read by the derive macro alone")]

use sakshi_domain::flow::statuses::{ConsentStatus, DataType, FiDataStatus, HistoricalStatus, WorkflowStatus};
use utoipa::ToSchema;
use utoipa::openapi::schema::Object;

use crate::flow_schema::words;

/// How an e-stamp ended.
#[derive(ToSchema)]
pub struct EStampOutcome {
    /// Whether it is completed.
    success: bool,
    /// An HTTP status that says the same in another way.
    #[serde(rename = "statusCode")]
    #[schema(minimum = 100, maximum = 599)]
    status_code: u16,
    /// A sentence.
    message: String,
    /// The e-stamp.
    data: EStampData,
}

/// One e-stamp.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EStampData {
    /// The e-stamp; deduplicate by it.
    #[schema(format = "uuid")]
    e_stamp_id: String,
    #[schema(schema_with = workflow_status)]
    workflow_status: String,
    /// Who signs it.
    signatories_info: Vec<EStampSignatory>,
    /// The stamped documents; at least one when it is completed.
    file_list: Vec<StampedFile>,
}

/// One signatory.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EStampSignatory {
    /// The e-mail address.
    #[serde(rename = "emailID")]
    email_id: String,
    /// The name.
    name: String,
    #[schema(schema_with = workflow_status)]
    status: String,
    /// What was remarked.
    #[schema(required = true)]
    remarks: Option<String>,
    /// How it is signed.
    sign_type: String,
    /// When it was signed; null until then.
    #[schema(required = true, format = DateTime)]
    signed_date: Option<String>,
}

/// One stamped document.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StampedFile {
    /// Its name.
    document_name: String,
    /// Its content in Base64.
    #[serde(rename = "base64FileData")]
    file_data: String,
}

/// What a wealth-data consent has moved to.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WealthConsentChange {
    /// As returned when the consent was asked for.
    #[schema(format = "uuid")]
    unique_identifier: String,
    /// As returned when the consent was asked for.
    consent_handle: String,
    #[schema(schema_with = consent_status)]
    status: String,
    /// The consent; deduplicate by it together with `status`.
    consent_id: String,
    /// From when it holds, `YYYY-MM-DD HH:MM:SS`; null when it never held.
    #[schema(required = true)]
    consent_start_date: Option<String>,
    /// Until when it holds; null when it never held.
    #[schema(required = true)]
    consent_end_date: Option<String>,
    /// The accounts that it covers.
    accounts: Vec<WealthAccount>,
    /// The session in which the person decided.
    #[schema(required = true)]
    user_session_id: Option<String>,
}

/// One account under a consent.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WealthAccount {
    /// Its id.
    account_id: String,
    /// The type of financial information.
    fi_type: String,
    /// Who provides it.
    fip_id: String,
    /// Its number, masked.
    masked_account_number: String,
}

/// Financial data is ready, raw or analysed, or will not be.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WealthDataNotice {
    /// As returned when the consent was asked for.
    #[schema(format = "uuid")]
    unique_identifier: String,
    /// The consent under which it was fetched.
    consent_id: String,
    /// As returned when the consent was asked for.
    consent_handle: String,
    /// The session of the fetch.
    #[schema(required = true)]
    session_id: Option<String>,
    /// The account.
    #[schema(required = true)]
    account_id: Option<String>,
    /// The type of financial information.
    #[schema(required = true)]
    fi_type: Option<String>,
    #[schema(schema_with = fi_data_status)]
    fi_data_status: String,
    #[schema(schema_with = data_type)]
    data_type: String,
    /// The kind of source, for example an account aggregator.
    data_origin: String,
    /// Who provides it.
    #[schema(required = true)]
    fip_id: Option<String>,
    /// A description.
    #[schema(required = true)]
    desc: Option<String>,
    /// What went wrong; never null on failure.
    #[schema(required = true)]
    err_msg: Option<String>,
    /// Where it went wrong; never null on failure.
    #[schema(required = true)]
    err_stage: Option<String>,
    /// What caused the fetch.
    #[schema(required = true)]
    fi_request_trigger: Option<String>,
    /// The account's number, masked.
    #[schema(required = true)]
    masked_account_number: Option<String>,
    /// The fetch; deduplicate by it together with `dataType`.
    txn_id: String,
}

/// A historical fetch has completed; deduplicate by `consentId`, `accountId`, `fromDate` and `toDate`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WealthHistoricalNotice {
    /// As returned when the consent was asked for.
    #[schema(format = "uuid")]
    unique_identifier: String,
    /// The account.
    account_id: String,
    /// The consent under which it was fetched.
    consent_id: String,
    #[schema(schema_with = historical_status)]
    status: String,
    /// The first day.
    #[schema(format = Date)]
    from_date: String,
    /// The last day.
    #[schema(format = Date)]
    to_date: String,
    /// The type of financial information.
    fi_type: String,
    /// What the other two webhooks call `consentHandle`.
    consent_handle_id: String,
    /// The account's number, masked.
    masked_account_number: String,
    /// Who provides it.
    fip_id: String,
}

fn workflow_status() -> Object {
    words("How it stands.", WorkflowStatus::ALL.iter().map(|status| status.as_str()))
}

fn consent_status() -> Object {
    words("What it has moved to.", ConsentStatus::ALL.iter().map(|status| status.as_str()))
}

fn fi_data_status() -> Object {
    words("Whether the data is ready.", FiDataStatus::ALL.iter().map(|status| status.as_str()))
}

fn data_type() -> Object {
    words("Which of the two forms.", DataType::ALL.iter().map(|data_type| data_type.as_str()))
}

fn historical_status() -> Object {
    words("How it ended.", HistoricalStatus::ALL.iter().map(|status| status.as_str()))
}

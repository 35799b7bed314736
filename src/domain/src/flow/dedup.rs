//! The deduplication key of a webhook. At most one webhook is sent per key (specification, "Deduplication keys").

use std::fmt;

use serde::{Deserialize, Serialize};

use super::dates::Day;
use super::flow_id::FlowId;
use super::report_kind::ReportKind;
use super::statuses::{ConsentStatus, DataType};
use super::text::ForeignId;
use crate::ids::AppId;

/// The deduplication key of a webhook, including its app.
///
/// Spaces separate the parts. No id contains a space, and the only status that does (`Expiring Soon`) comes
/// last, so different parts never make the same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupKey(Box<str>);

impl DedupKey {
    fn new(kind: ReportKind, app: &AppId, parts: fmt::Arguments<'_>) -> Self {
        Self(format!("{kind} {app} {parts}").into())
    }

    /// Builds a key from `documentId`.
    #[must_use]
    pub fn esign(app: &AppId, document: FlowId) -> Self {
        Self::new(ReportKind::ESign, app, format_args!("{document}"))
    }

    /// Builds a key from `data.transactionId`.
    #[must_use]
    pub fn doclocker(app: &AppId, transaction: FlowId) -> Self {
        Self::new(ReportKind::DocLocker, app, format_args!("{transaction}"))
    }

    /// Builds a key from `data.eStampId`.
    #[must_use]
    pub fn estamp(app: &AppId, estamp: FlowId) -> Self {
        Self::new(ReportKind::EStamp, app, format_args!("{estamp}"))
    }

    /// Builds a key from `consentId` and `status`.
    #[must_use]
    pub fn wealth_consent(app: &AppId, consent: &ForeignId, status: ConsentStatus) -> Self {
        Self::new(ReportKind::WealthConsent, app, format_args!("{consent} {status}"))
    }

    /// Builds a key from `txnId` and `dataType`: raw and analysed data each have a webhook.
    #[must_use]
    pub fn wealth_data(app: &AppId, txn: &ForeignId, data_type: DataType) -> Self {
        Self::new(ReportKind::WealthData, app, format_args!("{txn} {data_type}"))
    }

    /// Builds a key from `consentId`, `accountId`, `fromDate` and `toDate`.
    #[must_use]
    pub fn wealth_historical(app: &AppId, consent: &ForeignId, account: &ForeignId, from: Day, to: Day) -> Self {
        Self::new(ReportKind::WealthHistorical, app, format_args!("{consent} {account} {from} {to}"))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DedupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first sixteen bytes of the SHA-256 of a key, for places where the key is too long or would reveal ids.
/// The store computes the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DedupDigest(pub [u8; 16]);

impl fmt::Display for DedupDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

//! The deduplication key of a webhook: each key is sent once (specification, "Deduplication keys").

use std::fmt;

use serde::{Deserialize, Serialize};

use super::dates::Day;
use super::flow_id::FlowId;
use super::report_kind::ReportKind;
use super::statuses::{ConsentStatus, DataType};
use super::text::ForeignId;
use crate::ids::AppId;

/// Identity of a webhook within an app.
///
/// Spaces separate its parts. No id contains a space, and the one status that does (`Expiring Soon`)
/// comes last, so different parts never make the same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupKey(Box<str>);

impl DedupKey {
    fn of(kind: ReportKind, app: &AppId, parts: fmt::Arguments<'_>) -> Self {
        Self(format!("{kind} {app} {parts}").into())
    }

    /// Builds a key from `documentId`.
    #[must_use]
    pub fn esign(app: &AppId, document: FlowId) -> Self {
        Self::of(ReportKind::ESign, app, format_args!("{document}"))
    }

    /// Builds a key from `data.transactionId`.
    #[must_use]
    pub fn doclocker(app: &AppId, transaction: FlowId) -> Self {
        Self::of(ReportKind::DocLocker, app, format_args!("{transaction}"))
    }

    /// Builds a key from `data.eStampId`.
    #[must_use]
    pub fn estamp(app: &AppId, estamp: FlowId) -> Self {
        Self::of(ReportKind::EStamp, app, format_args!("{estamp}"))
    }

    /// Builds a key from `consentId` and `status`.
    #[must_use]
    pub fn wealth_consent(app: &AppId, consent: &ForeignId, status: ConsentStatus) -> Self {
        Self::of(ReportKind::WealthConsent, app, format_args!("{consent} {status}"))
    }

    /// Builds a key from `txnId` and `dataType`: raw and analysed data each have a webhook.
    #[must_use]
    pub fn wealth_data(app: &AppId, txn: &ForeignId, data_type: DataType) -> Self {
        Self::of(ReportKind::WealthData, app, format_args!("{txn} {data_type}"))
    }

    /// Builds a key from `consentId`, `accountId`, `fromDate` and `toDate`.
    #[must_use]
    pub fn wealth_historical(app: &AppId, consent: &ForeignId, account: &ForeignId, from: Day, to: Day) -> Self {
        Self::of(ReportKind::WealthHistorical, app, format_args!("{consent} {account} {from} {to}"))
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

/// First sixteen bytes of a key's SHA-256. Replaces the key where that would be too long or reveal ids.
/// The store computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DedupDigest(pub [u8; 16]);

impl fmt::Display for DedupDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

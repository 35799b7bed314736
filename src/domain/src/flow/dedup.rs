//! The deduplication key of a webhook: one POST for each, ever (specification, "Deduplication
//! keys").

use std::fmt;

use serde::{Deserialize, Serialize};

use super::dates::Day;
use super::flow_id::FlowId;
use super::states::{ConsentStatus, DataType};
use super::text::ForeignId;
use crate::ids::AppId;

/// What a receiver recognises a webhook by, within the app that it is for.
///
/// Its parts stand apart by spaces. No id holds one, and the only word that does comes last, so
/// different parts never make the same key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupKey(Box<str>);

impl DedupKey {
    /// `documentId`.
    #[must_use]
    pub fn esign(app: &AppId, document: FlowId) -> Self {
        Self(format!("esign {app} {document}").into())
    }

    /// `data.transactionId`.
    #[must_use]
    pub fn doclocker(app: &AppId, transaction: FlowId) -> Self {
        Self(format!("doclocker {app} {transaction}").into())
    }

    /// `data.eStampId`.
    #[must_use]
    pub fn estamp(app: &AppId, estamp: FlowId) -> Self {
        Self(format!("estamp {app} {estamp}").into())
    }

    /// `consentId` and `status`.
    #[must_use]
    pub fn wealth_consent(app: &AppId, consent: &ForeignId, status: ConsentStatus) -> Self {
        Self(format!("wealth-consent {app} {consent} {status}").into())
    }

    /// `txnId`, and `dataType` because the webhook is sent once for each of the two.
    #[must_use]
    pub fn wealth_data(app: &AppId, txn: &ForeignId, data_type: DataType) -> Self {
        Self(format!("wealth-data {app} {txn} {data_type}").into())
    }

    /// `consentId`, `accountId`, `fromDate` and `toDate`.
    #[must_use]
    pub fn wealth_historical(app: &AppId, consent: &ForeignId, account: &ForeignId, from: Day, to: Day) -> Self {
        Self(format!("wealth-historical {app} {consent} {account} {from} {to}").into())
    }

    /// The key as text.
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

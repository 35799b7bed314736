//! The wealth-data historical webhook (specification, "Wealth-data historical webhook").

use serde::Serialize;

use crate::flow::dates::Day;
use crate::flow::flow_id::FlowId;
use crate::flow::reading::Fields;
use crate::flow::statuses::HistoricalStatus;
use crate::flow::text::{ForeignId, Text};

/// A historical fetch has completed.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WealthHistoricalPayload {
    /// The flow's id.
    pub unique_identifier: FlowId,
    /// The account.
    pub account_id: ForeignId,
    /// The consent under which it was fetched.
    pub consent_id: ForeignId,
    /// How it ended.
    pub status: HistoricalStatus,
    /// The first day.
    pub from_date: Day,
    /// The last day.
    pub to_date: Day,
    /// The type of financial information.
    pub fi_type: Text,
    /// The handle that the consent was asked for under; the other two streams say `consentHandle`.
    pub consent_handle_id: ForeignId,
    /// The account's number, masked.
    pub masked_account_number: Text,
    /// Who provides it.
    pub fip_id: ForeignId,
}

impl WealthHistoricalPayload {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (unique_identifier, account_id) = (fields.required("uniqueIdentifier"), fields.required("accountId"));
        let (consent_id, status) = (fields.required("consentId"), fields.required("status"));
        let (from_date, to_date): (Option<Day>, Option<Day>) = (fields.required("fromDate"), fields.required("toDate"));
        if let (Some(from), Some(to)) = (from_date, to_date)
            && to < from
        {
            fields.problem("toDate", "must not be before fromDate");
        }
        let (fi_type, consent_handle_id) = (fields.required("fiType"), fields.required("consentHandleId"));
        let (masked_account_number, fip_id) = (fields.required("maskedAccountNumber"), fields.required("fipId"));
        Some(Self {
            unique_identifier: unique_identifier?,
            account_id: account_id?,
            consent_id: consent_id?,
            status: status?,
            from_date: from_date?,
            to_date: to_date?,
            fi_type: fi_type?,
            consent_handle_id: consent_handle_id?,
            masked_account_number: masked_account_number?,
            fip_id: fip_id?,
        })
    }
}

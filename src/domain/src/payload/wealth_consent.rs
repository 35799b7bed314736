//! The wealth-data consent webhook (specification, "Wealth-data consent webhook").

use serde::Serialize;

use crate::flow::dates::LocalTime;
use crate::flow::flow_id::FlowId;
use crate::flow::reading::Fields;
use crate::flow::statuses::ConsentStatus;
use crate::flow::text::{ForeignId, Text};
use crate::limits::ACCOUNTS_MAX;

/// What a consent has moved to.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WealthConsentPayload {
    /// The flow's id.
    pub unique_identifier: FlowId,
    /// The handle that the consent was asked for under.
    pub consent_handle: ForeignId,
    /// What it has moved to.
    pub status: ConsentStatus,
    /// The consent's id.
    pub consent_id: ForeignId,
    /// From when it holds; null when it never held.
    pub consent_start_date: Option<LocalTime>,
    /// Until when it holds; null when it never held.
    pub consent_end_date: Option<LocalTime>,
    /// The accounts that it covers.
    pub accounts: Vec<Account>,
    /// The session in which the person decided; null when nobody did.
    pub user_session_id: Option<ForeignId>,
}

/// One account under a consent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Its id.
    pub account_id: ForeignId,
    /// The type of financial information.
    pub fi_type: Text,
    /// Who provides it.
    pub fip_id: ForeignId,
    /// Its number, masked.
    pub masked_account_number: Text,
}

impl WealthConsentPayload {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (unique_identifier, consent_handle) = (fields.required("uniqueIdentifier"), fields.required("consentHandle"));
        let (status, consent_id): (Option<ConsentStatus>, _) = (fields.required("status"), fields.required("consentId"));
        // A consent that was declined, or not answered in time, never held and covers nothing.
        let held = !matches!(status, None | Some(ConsentStatus::Rejected | ConsentStatus::Expired));
        let start: Option<Option<LocalTime>> = fields.optional("consentStartDate", held);
        let end: Option<Option<LocalTime>> = fields.optional("consentEndDate", held);
        if let (Some(Some(start)), Some(Some(end))) = (start, end)
            && end < start
        {
            fields.problem("consentEndDate", "must not be before consentStartDate");
        }
        let accounts = fields.list("accounts", held, (usize::from(held), ACCOUNTS_MAX), Account::read);
        let user_session_id = fields.optional("userSessionId", false);
        Some(Self {
            unique_identifier: unique_identifier?,
            consent_handle: consent_handle?,
            status: status?,
            consent_id: consent_id?,
            consent_start_date: start?,
            consent_end_date: end?,
            accounts: accounts?,
            user_session_id: user_session_id?,
        })
    }
}

impl Account {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (account_id, fi_type) = (fields.required("accountId"), fields.required("fiType"));
        let (fip_id, masked_account_number) = (fields.required("fipId"), fields.required("maskedAccountNumber"));
        Some(Self { account_id: account_id?, fi_type: fi_type?, fip_id: fip_id?, masked_account_number: masked_account_number? })
    }
}

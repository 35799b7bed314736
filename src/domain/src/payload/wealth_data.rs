//! The wealth-data data webhook (specification, "Wealth-data data webhook").

use serde::Serialize;

use crate::flow::flow_id::FlowId;
use crate::flow::reading::Fields;
use crate::flow::statuses::{DataType, FiDataStatus};
use crate::flow::text::{ForeignId, Text};

/// Financial data is ready, raw or analysed, or will not be.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WealthDataPayload {
    /// The flow's id.
    pub unique_identifier: FlowId,
    /// The consent under which it was fetched.
    pub consent_id: ForeignId,
    /// The handle that the consent was asked for under.
    pub consent_handle: ForeignId,
    /// The session of the fetch; null when it failed before one.
    pub session_id: Option<ForeignId>,
    /// The account; null when it failed before one was known, as the next field.
    pub account_id: Option<ForeignId>,
    /// The type of financial information.
    pub fi_type: Option<Text>,
    /// Whether it is ready.
    pub fi_data_status: FiDataStatus,
    /// Which of the two forms.
    pub data_type: DataType,
    /// The kind of source, for example an account aggregator.
    pub data_origin: Text,
    /// Who provides it.
    pub fip_id: Option<ForeignId>,
    /// A description, if there is one.
    pub desc: Option<Text>,
    /// What went wrong; never null on failure.
    pub err_msg: Option<Text>,
    /// Where it went wrong; never null on failure.
    pub err_stage: Option<Text>,
    /// What caused the fetch, if that is known.
    pub fi_request_trigger: Option<Text>,
    /// The account's number, masked.
    pub masked_account_number: Option<Text>,
    /// The fetch.
    pub txn_id: ForeignId,
}

impl WealthDataPayload {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (unique_identifier, consent_id) = (fields.required("uniqueIdentifier"), fields.required("consentId"));
        let consent_handle = fields.required("consentHandle");
        let fi_data_status: Option<FiDataStatus> = fields.required("fiDataStatus");
        let (ready, failed) = (fi_data_status == Some(FiDataStatus::Success), fi_data_status == Some(FiDataStatus::Failed));
        let (session_id, account_id) = (fields.optional("sessionId", ready), fields.optional("accountId", ready));
        let (fi_type, fip_id) = (fields.optional("fiType", ready), fields.optional("fipId", ready));
        let masked_account_number = fields.optional("maskedAccountNumber", ready);
        let (data_type, data_origin) = (fields.required("dataType"), fields.required("dataOrigin"));
        let (desc, fi_request_trigger) = (fields.optional("desc", false), fields.optional("fiRequestTrigger", false));
        let (err_msg, err_stage) = (fields.optional("errMsg", failed), fields.optional("errStage", failed));
        let txn_id = fields.required("txnId");
        Some(Self {
            unique_identifier: unique_identifier?,
            consent_id: consent_id?,
            consent_handle: consent_handle?,
            session_id: session_id?,
            account_id: account_id?,
            fi_type: fi_type?,
            fi_data_status: fi_data_status?,
            data_type: data_type?,
            data_origin: data_origin?,
            fip_id: fip_id?,
            desc: desc?,
            err_msg: err_msg?,
            err_stage: err_stage?,
            fi_request_trigger: fi_request_trigger?,
            masked_account_number: masked_account_number?,
            txn_id: txn_id?,
        })
    }
}

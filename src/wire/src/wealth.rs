//! Wealth data: a consent, and the data under it (specification, "Wealth-data consent webhook" and the two after it).

use sakshi_domain::flow::dates::{Day, LocalTime};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::statuses::{ConsentStatus, DataType, FiDataStatus, HistoricalStatus};
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::flow::wealth_consent::{ConsentReport, WealthReport};
use sakshi_domain::flow::wealth_data::DataReport;
use sakshi_domain::flow::wealth_historical::HistoricalReport;
use sakshi_domain::limits::ACCOUNTS_MAX;
use sakshi_domain::request_id::RequestId;

use crate::body::body;
use crate::consent::Consent;
use crate::page_url::PageUrl;
use crate::text::OptionalList;

body! { request
    /// The consent to request from the person.
    #[derive(Clone, PartialEq)]
    pub struct WealthConsentRequest {
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// The correlation id. It overrides the header `X-Request-ID`. Default: that header, or a new id.
        request_id: Option<RequestId>,
    }
}

body! { response
    /// A consent that was requested.
    pub struct WealthConsentResponse {
        /// Identifies the flow in webhooks.
        unique_identifier as "uniqueIdentifier": FlowId,
        /// The handle of the consent in webhooks.
        consent_handle as "consentHandle": ForeignId,
        /// The page where the person decides; absent if the upstream has none. Anyone with this link can decide. Share
        /// it with the person only.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        request_url as "requestUrl": Option<PageUrl>,
    }
}

body! { report
    /// A change of a consent: the body of a webhook.
    #[derive(PartialEq)]
    pub struct WealthConsentChange {
        /// As returned by `requestWealthConsent`.
        unique_identifier as "uniqueIdentifier": FlowId,
        /// As returned by `requestWealthConsent`.
        consent_handle as "consentHandle": ForeignId,
        /// The new status of the consent.
        status: ConsentStatus,
        /// The id of the consent. Deduplicate webhooks by it together with `status`.
        consent_id as "consentId": ForeignId,
        /// The start of the consent, `YYYY-MM-DD HH:MM:SS` without a time zone; null if it never applied.
        consent_start_date as "consentStartDate": Option<LocalTime>,
        /// The end of the consent, `YYYY-MM-DD HH:MM:SS` without a time zone; null if it never applied.
        consent_end_date as "consentEndDate": Option<LocalTime>,
        /// The accounts under the consent; empty if it never applied.
        accounts: OptionalList<WealthAccount, ACCOUNTS_MAX>,
        /// The session in which the person decided, or null.
        user_session_id as "userSessionId": Option<ForeignId>,
    }
    check(fields) {
        // A consent that was declined, or that expired unanswered, never applied and covers nothing.
        let has_applied = !matches!(status, None | Some(ConsentStatus::Rejected | ConsentStatus::Expired));
        fields.require_if(has_applied, "consentStartDate", consent_start_date.as_ref());
        fields.require_if(has_applied, "consentEndDate", consent_end_date.as_ref());
        if let (Some(Some(start)), Some(Some(end))) = (consent_start_date, consent_end_date)
            && end < start
        {
            fields.refuse("consentEndDate", "must not be before consentStartDate");
        }
        if has_applied {
            fields.require_some("accounts", accounts.as_ref().map(|list| &list.0), ACCOUNTS_MAX);
        }
    }
}

body! { report
    /// An account under a consent.
    #[derive(Clone, PartialEq)]
    pub struct WealthAccount {
        /// The id of the account.
        account_id as "accountId": ForeignId,
        /// The type of financial information, such as `DEPOSIT`.
        fi_type as "fiType": Text,
        /// The id of the financial information provider.
        fip_id as "fipId": ForeignId,
        /// The masked account number.
        masked_account_number as "maskedAccountNumber": Text,
    }
}

body! { report
    /// The result of fetching financial data, raw or analysed: the body of a webhook.
    #[derive(PartialEq)]
    pub struct WealthDataNotice {
        /// As returned by `requestWealthConsent`.
        unique_identifier as "uniqueIdentifier": FlowId,
        /// The id of the consent under which the data was fetched.
        consent_id as "consentId": ForeignId,
        /// As returned by `requestWealthConsent`.
        consent_handle as "consentHandle": ForeignId,
        /// The session of the fetch; never null on success.
        session_id as "sessionId": Option<ForeignId>,
        /// The id of the account; never null on success.
        account_id as "accountId": Option<ForeignId>,
        /// The type of financial information, such as `DEPOSIT`.
        fi_type as "fiType": Option<Text>,
        /// `SUCCESS` if the data is ready, else `FAILED`.
        fi_data_status as "fiDataStatus": FiDataStatus,
        /// `RAW` or `ANALYSED`.
        data_type as "dataType": DataType,
        /// The kind of source, such as `ACCOUNT_AGGREGATOR`.
        data_origin as "dataOrigin": Text,
        /// The id of the financial information provider.
        fip_id as "fipId": Option<ForeignId>,
        /// A description of the data, or null.
        desc: Option<Text>,
        /// The error message; never null on failure.
        err_msg as "errMsg": Option<Text>,
        /// The stage in which the error occurred; never null on failure.
        err_stage as "errStage": Option<Text>,
        /// The trigger of the fetch, such as `CONSENT`, or null.
        fi_request_trigger as "fiRequestTrigger": Option<Text>,
        /// The masked account number.
        masked_account_number as "maskedAccountNumber": Option<Text>,
        /// The id of the fetch. Deduplicate webhooks by it together with `dataType`.
        txn_id as "txnId": ForeignId,
    }
    check(fields) {
        let is_ready = fi_data_status == Some(FiDataStatus::Success);
        fields.require_if(is_ready, "sessionId", session_id.as_ref());
        fields.require_if(is_ready, "accountId", account_id.as_ref());
        fields.require_if(is_ready, "fiType", fi_type.as_ref());
        fields.require_if(is_ready, "fipId", fip_id.as_ref());
        fields.require_if(is_ready, "maskedAccountNumber", masked_account_number.as_ref());
        let has_failed = fi_data_status == Some(FiDataStatus::Failed);
        fields.require_if(has_failed, "errMsg", err_msg.as_ref());
        fields.require_if(has_failed, "errStage", err_stage.as_ref());
    }
}

body! { report
    /// A completed historical fetch: the body of a webhook. Deduplicate webhooks by `consentId`, `accountId`,
    /// `fromDate` and `toDate`.
    #[derive(PartialEq)]
    pub struct WealthHistoricalNotice {
        /// As returned by `requestWealthConsent`.
        unique_identifier as "uniqueIdentifier": FlowId,
        /// The id of the account.
        account_id as "accountId": ForeignId,
        /// The id of the consent under which the data was fetched.
        consent_id as "consentId": ForeignId,
        /// The result of the fetch.
        status: HistoricalStatus,
        /// The first day of the data.
        from_date as "fromDate": Day,
        /// The last day of the data.
        to_date as "toDate": Day,
        /// The type of financial information, such as `DEPOSIT`.
        fi_type as "fiType": Text,
        /// The handle of the consent, which is `consentHandle` in the other two webhooks.
        consent_handle_id as "consentHandleId": ForeignId,
        /// The masked account number.
        masked_account_number as "maskedAccountNumber": Text,
        /// The id of the financial information provider.
        fip_id as "fipId": ForeignId,
    }
    check(fields) {
        if let (Some(from), Some(to)) = (from_date, to_date)
            && to < from
        {
            fields.refuse("toDate", "must not be before fromDate");
        }
    }
}

/// Implements [`WealthReport`] for a body of one of the three streams.
macro_rules! wealth_report {
    ($body:ident $handle:literal $field:ident) => {
        impl WealthReport for $body {
            const HANDLE: &'static str = $handle;

            fn flow(&self) -> FlowId {
                self.unique_identifier
            }

            fn handle(&self) -> &ForeignId {
                &self.$field
            }

            fn consent(&self) -> &ForeignId {
                &self.consent_id
            }
        }
    };
}

wealth_report! { WealthConsentChange "consentHandle" consent_handle }
wealth_report! { WealthDataNotice "consentHandle" consent_handle }
wealth_report! { WealthHistoricalNotice "consentHandleId" consent_handle_id }

impl ConsentReport for WealthConsentChange {
    fn status(&self) -> ConsentStatus {
        self.status
    }
}

impl DataReport for WealthDataNotice {
    fn fetch(&self) -> (&ForeignId, DataType) {
        (&self.txn_id, self.data_type)
    }
}

impl HistoricalReport for WealthHistoricalNotice {
    fn account(&self) -> &ForeignId {
        &self.account_id
    }

    fn days(&self) -> (Day, Day) {
        (self.from_date, self.to_date)
    }
}

//! The statuses of documents, signers, consents and data (specification, "Other state sets"). Any other
//! status is refused.
//!
//! The specification lists some sets only in part. They are completed with its words from elsewhere: those
//! of an eSign document for signers, signatories and e-stamps; `Pending` and `Failed` for locker documents;
//! `FAILED` for data.

use crate::string_enum::string_enum;

string_enum!(
    /// The status of an eSign document and of each signer.
    SigningStatus {
        /// Signed.
        Completed = "Completed",
        /// A signer rejected the document.
        Rejected = "Rejected",
        /// The invitation expired unanswered.
        Expired = "Expired",
        /// A signature is pending.
        Pending = "Pending",
    }
);

string_enum!(
    /// The status of an e-stamp workflow and of each signatory.
    WorkflowStatus {
        /// Stamped and signed.
        Completed = "Completed",
        /// The registry or a signatory rejected the document.
        Rejected = "Rejected",
        /// The workflow was not finished in time.
        Expired = "Expired",
        /// In progress.
        Pending = "Pending",
    }
);

string_enum!(
    /// The status of one document of the locker.
    LockerStatus {
        /// The payload contains the document.
        Fetched = "Fetched",
        /// The document may still arrive.
        Pending = "Pending",
        /// The document will not arrive.
        Failed = "Failed",
    }
);

string_enum!(
    /// The status of a wealth-data consent.
    ConsentStatus {
        /// The person agreed.
        Accepted = "Accepted",
        /// The person declined.
        Rejected = "Rejected",
        /// The person withdrew the consent.
        Revoked = "Revoked",
        /// The consent will expire soon.
        ExpiringSoon = "Expiring Soon",
        /// The consent has expired.
        Expired = "Expired",
    }
);

string_enum!(
    /// The result of fetching financial data.
    FiDataStatus {
        /// The data is ready.
        Success = "SUCCESS",
        /// The fetch failed; `errMsg` and `errStage` state the reason.
        Failed = "FAILED",
    }
);

string_enum!(
    /// The two forms of financial data.
    DataType {
        /// As the source delivered it.
        Raw = "RAW",
        /// As evaluated by the upstream.
        Analysed = "ANALYSED",
    }
);

string_enum!(
    /// The outcome of a historical fetch.
    HistoricalStatus {
        /// All data was fetched.
        Success = "HISTORICAL_DATA_FETCH_SUCCESS",
        /// Part of the data was fetched.
        PartialSuccess = "HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS",
        /// No data was fetched.
        Failed = "HISTORICAL_DATA_FETCH_FAILED",
    }
);

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn an_error_for_an_unknown_status_lists_the_known_ones() {
        assert_eq!(
            SigningStatus::from_str("Signed").unwrap_err(),
            "must be one of Completed, Rejected, Expired, Pending"
        );
        assert_eq!(
            ConsentStatus::from_str("ACTIVE").unwrap_err(),
            "must be one of Accepted, Rejected, Revoked, Expiring Soon, Expired"
        );
        assert_eq!(LockerStatus::from_str("fetched").unwrap_err(), "must be one of Fetched, Pending, Failed");
        assert_eq!(DataType::from_str("Raw").unwrap_err(), "must be one of RAW, ANALYSED");
        assert_eq!(
            HistoricalStatus::from_str("SUCCESS").unwrap_err(),
            "must be one of HISTORICAL_DATA_FETCH_SUCCESS, HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS, \
                HISTORICAL_DATA_FETCH_FAILED"
        );
        assert_eq!("Expiring Soon".parse(), Ok(ConsentStatus::ExpiringSoon));
        assert_eq!((FiDataStatus::ALL.len(), WorkflowStatus::ALL.len()), (2, 4));
    }
}

//! The status words of documents, signers, consents and data (specification, "Other state sets"). Any
//! other word is refused.
//!
//! A set that the specification shows only in part is completed with words that it uses elsewhere:
//! those of an eSign document for signers, signatories and e-stamps; `Pending` and `Failed`
//! for locker documents; `FAILED` for data.

use crate::string_enum::string_enum;

string_enum!(
    /// The status of an eSign document and of each signer.
    SigningStatus {
        /// Signed.
        Completed = "Completed",
        /// A signer rejected it.
        Rejected = "Rejected",
        /// The invitation expired unanswered.
        Expired = "Expired",
        /// Waits for a signature.
        Pending = "Pending",
    }
);

string_enum!(
    /// The status of an e-stamp workflow and of each signatory.
    WorkflowStatus {
        /// Stamped and signed.
        Completed = "Completed",
        /// The registry or a signatory rejected it.
        Rejected = "Rejected",
        /// It was not finished in time.
        Expired = "Expired",
        /// In progress.
        Pending = "Pending",
    }
);

string_enum!(
    /// The status of one document of the locker.
    LockerStatus {
        /// The payload contains it.
        Fetched = "Fetched",
        /// It may still arrive.
        Pending = "Pending",
        /// It will not arrive.
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
        /// It will expire soon.
        ExpiringSoon = "Expiring Soon",
        /// It has expired.
        Expired = "Expired",
    }
);

string_enum!(
    /// The result of fetching financial data.
    FiDataStatus {
        /// Fetched.
        Success = "SUCCESS",
        /// Not fetched; `errMsg` and `errStage` say why.
        Failed = "FAILED",
    }
);

string_enum!(
    /// The two forms of financial data.
    DataType {
        /// As the source delivered it.
        Raw = "RAW",
        /// Evaluated.
        Analysed = "ANALYSED",
    }
);

string_enum!(
    /// The outcome of a historical fetch.
    HistoricalStatus {
        /// With all data.
        Success = "HISTORICAL_DATA_FETCH_SUCCESS",
        /// With part of the data.
        PartialSuccess = "HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS",
        /// With no data.
        Failed = "HISTORICAL_DATA_FETCH_FAILED",
    }
);

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_specification_and_a_refusal_names_them_all() {
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

//! The words for how documents, signers, consents and data stand (specification, "Other state
//! sets"); any other word is refused.
//!
//! Where the specification shows one word of a set and says that the others are not shown, the
//! set is completed with the words that it uses elsewhere: those of an eSign document for signers,
//! signatories and e-stamps; `Pending` and `Failed` for locker documents; `FAILED` for data.

/// Declares a closed set of words.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $($(#[$word_doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word of the set.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of payloads.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                found.ok_or_else(|| format!("must be one of {}", [$($word),+].join(", ")))
            }
        }

        impl $crate::flow::reading::FromJson for $name {
            fn from_json(json: $crate::flow::reading::Json) -> Result<Self, $crate::flow::reading::fields::Sentence> {
                $crate::flow::reading::fields::text(json, str::parse)
            }
        }
    };
}
pub(crate) use string_enum;

string_enum!(
    /// How an eSign document stands, and each of its signers.
    SigningStatus {
        /// Signed.
        Completed = "Completed",
        /// A signer refused.
        Rejected = "Rejected",
        /// The invitation ended before it was answered.
        Expired = "Expired",
        /// Waits for a signature.
        Pending = "Pending",
    }
);

string_enum!(
    /// How an e-stamp workflow stands, and each of its signatories.
    WorkflowStatus {
        /// Stamped and signed.
        Completed = "Completed",
        /// The registry or a signatory refused.
        Rejected = "Rejected",
        /// It was not finished in time.
        Expired = "Expired",
        /// In progress.
        Pending = "Pending",
    }
);

string_enum!(
    /// How one document of the locker stands.
    LockerStatus {
        /// It is in the payload.
        Fetched = "Fetched",
        /// It is still awaited.
        Pending = "Pending",
        /// It will not come.
        Failed = "Failed",
    }
);

string_enum!(
    /// What a wealth-data consent has moved to.
    ConsentStatus {
        /// The person agreed.
        Accepted = "Accepted",
        /// The person declined.
        Rejected = "Rejected",
        /// The person took an agreement back.
        Revoked = "Revoked",
        /// It will end soon.
        ExpiringSoon = "Expiring Soon",
        /// It has ended.
        Expired = "Expired",
    }
);

string_enum!(
    /// Whether financial data could be had.
    FiDataStatus {
        /// It is ready.
        Success = "SUCCESS",
        /// It is not; `errMsg` and `errStage` say why.
        Failed = "FAILED",
    }
);

string_enum!(
    /// Which of the two forms of financial data is meant.
    DataType {
        /// As the source gave it.
        Raw = "RAW",
        /// As it was evaluated.
        Analysed = "ANALYSED",
    }
);

string_enum!(
    /// How a historical fetch ended.
    HistoricalStatus {
        /// With everything.
        Success = "HISTORICAL_DATA_FETCH_SUCCESS",
        /// With a part.
        PartialSuccess = "HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS",
        /// With nothing.
        Failed = "HISTORICAL_DATA_FETCH_FAILED",
    }
);

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_specification_and_a_refusal_names_them_all() {
        assert_eq!(SigningStatus::from_str("Signed").unwrap_err(), "must be one of Completed, Rejected, Expired, Pending");
        assert_eq!(ConsentStatus::from_str("ACTIVE").unwrap_err(), "must be one of Accepted, Rejected, Revoked, Expiring Soon, Expired");
        assert_eq!(LockerStatus::from_str("fetched").unwrap_err(), "must be one of Fetched, Pending, Failed");
        assert_eq!(DataType::from_str("Raw").unwrap_err(), "must be one of RAW, ANALYSED");
        assert_eq!(
            HistoricalStatus::from_str("SUCCESS").unwrap_err(),
            "must be one of HISTORICAL_DATA_FETCH_SUCCESS, HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS, HISTORICAL_DATA_FETCH_FAILED"
        );
        assert_eq!("Expiring Soon".parse(), Ok(ConsentStatus::ExpiringSoon));
        assert_eq!((FiDataStatus::ALL.len(), WorkflowStatus::ALL.len()), (2, 4));
    }
}

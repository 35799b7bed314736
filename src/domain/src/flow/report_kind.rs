//! The kinds of report, by the words of the connectors' paths.

use super::statuses::string_enum;

string_enum!(
    /// What a connector reports on; each kind is a webhook of its own.
    ReportKind {
        /// Document signing.
        ESign = "esign",
        /// Documents of the locker.
        DocLocker = "doclocker",
        /// E-stamps, of the registry and on paper.
        EStamp = "estamp",
        /// Consents of the wealth-data flow.
        WealthConsent = "wealth-consent",
        /// Data of the wealth-data flow.
        WealthData = "wealth-data",
        /// Historical data of the wealth-data flow.
        WealthHistorical = "wealth-historical",
    }
);

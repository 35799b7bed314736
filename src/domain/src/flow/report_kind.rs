//! The kinds of report, by their names in the paths for connectors.

use crate::string_enum::string_enum;

string_enum!(
    /// The kind of a connector's report. Each kind has its own webhook.
    ReportKind {
        /// Document signing.
        ESign = "esign",
        /// Documents of the locker.
        DocLocker = "doclocker",
        /// E-stamps of the registry and on paper.
        EStamp = "estamp",
        /// Consents of the wealth-data flow.
        WealthConsent = "wealth-consent",
        /// Data of the wealth-data flow.
        WealthData = "wealth-data",
        /// Historical data of the wealth-data flow.
        WealthHistorical = "wealth-historical",
    }
);

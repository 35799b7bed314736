//! The environments in which the service runs.

use crate::string_enum::string_enum;

string_enum!(
    /// An environment; it decides which issuers are trusted and which test features exist.
    Profile {
        /// A developer's machine: sandbox issuer, generated keys, demo client.
        Sandbox = "sandbox",
        /// The operator's test of production.
        Stage = "stage",
        /// Real residents, real credits.
        Production = "production",
    }
);

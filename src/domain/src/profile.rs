//! The environments in which the service runs.

use crate::string_enum::string_enum;

string_enum!(
    /// An environment, which decides about trusted issuers and test features.
    Profile {
        /// A developer's machine, with a sandbox issuer, generated keys and a demo client.
        Sandbox = "sandbox",
        /// The operator's test environment.
        Stage = "stage",
        /// The environment of real people and real credits.
        Production = "production",
    }
);

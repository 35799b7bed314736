//! Verifies the authority's credentials: SD-JWT (RFC 9901) in the authority's profile (protocol,
//! section 6).
//!
//! `verifier` runs these steps in order: `segments` splits the text, `jose` checks headers, `keys` finds the issuer's
//! key, `processing` replaces each digest by its `disclosure`, `validity` checks issuer and times, `key_binding` checks
//! the holder, and `normalise` selects the requested claims. `status` reads where the credential's state is published,
//! and later the answer from there. Every refusal has its own reason. The text comes from a public endpoint, so nothing
//! may panic.

mod disclosure;
mod jose;
mod key_binding;
mod keys;
mod minimised;
mod normalise;
mod processing;
mod refusal;
mod segments;
mod status;
mod status_list;
#[cfg(test)]
mod tests;
mod traits;
mod validity;
mod verifier;

pub use key_binding::{Expectation, KeyBinding};
pub use keys::{JwkProblem, Jwks, JwksError, TrustedIssuer};
pub use minimised::minimise;
pub use refusal::CredentialRefusal;
pub use status::{CredentialState, CredentialStatus, StatusDocument, StatusFault, StatusReference, status_key_id};
pub use verifier::{VerifiedCredential, Verifier, credential_digest, credential_key_id};

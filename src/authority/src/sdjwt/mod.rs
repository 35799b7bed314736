//! Verifies the authority's credentials: SD-JWT (RFC 9901) in the authority's profile (protocol,
//! section 6).
//!
//! A credential passes these stages, each in a file of its own: `segments` takes the text apart,
//! `jose` judges headers, `keys` finds the issuer's key, `processing` puts each `disclosure` where
//! its digest is, `validity` checks issuer and times, `key_binding` the holder, and `normalise`
//! keeps what was asked for. `verifier` runs them in that order.
//! Every refusal has a reason of its own. The text comes from a public endpoint: nothing panics.

mod disclosure;
mod jose;
mod key_binding;
mod keys;
mod normalise;
mod processing;
mod refusal;
mod segments;
#[cfg(test)]
mod tests;
mod validity;
mod verifier;

pub use key_binding::KeyBinding;
pub use keys::{Jwks, JwksError, TrustedIssuer};
pub use refusal::CredentialRefusal;
pub use verifier::{Expectation, VerifiedCredential, Verifier, credential_digest};

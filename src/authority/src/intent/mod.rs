//! The intent JWT: the signed request that the identity app shows to the person (protocol,
//! section 1).
//!
//! [`IntentSigner`] is on the path of every new transaction, and its cost is one RSA signature:
//! the key is parsed once, the header encoded once, and the payload serialised straight into the
//! text that is signed. Reading an intent is for the other side, and for tests.

mod jwk;
mod key;
mod payload;
mod reader;
mod signer;
#[cfg(test)]
mod tests;

pub use key::{IntentKey, IntentKeyError};
pub use reader::{IntentClaims, IntentReadError, decode_unverified, verify};
pub use signer::{IntentError, IntentSettings, IntentSigner};

//! The intent JWT: the signed request that the identity app shows to the person (protocol, section 1).
//!
//! [`IntentSigner`] is on the path of every new transaction, and costs little more than one RSA signature: the
//! key is parsed and the header encoded only once. Only the sandbox and tests read intents.

mod jwk;
mod key;
mod payload;
mod reader;
mod signer;
mod stored_intent;
#[cfg(test)]
mod tests;

pub(crate) use jwk::{SignatureFault, verify as verify_with_jwk};
pub use key::{IntentKey, IntentKeyError, RemoteKey, RsaPublicNumbers, SignatureFuture};
pub use payload::{IntentSettings, LanguageForm, ModeForm};
pub use reader::{IntentClaims, IntentReadError, decode_unverified, verify};
pub use signer::{FurtherIntentKey, IntentError, IntentKeyView, IntentSigner, SealedFile, SignedIntent};

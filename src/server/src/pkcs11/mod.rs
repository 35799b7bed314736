//! Keys on PKCS#11 tokens (hardware security modules), which never enter this process. The token signs with the intent
//! key (`signer`) and unwraps the encryption key at the start (`unwrap`). An RFC 7512 URI names a key (`uri`).

mod module;
mod signer;
mod unwrap;
mod uri;

pub use module::{TokenError, finalize_libraries};
pub(crate) use signer::{TokenKey, check};
pub(crate) use unwrap::unwrap_key;
pub use uri::KeyUri;

//! Keys on PKCS#11 tokens (hardware security modules), which never enter this process: the intent key signs there (`signer`), and the
//! encryption key is unwrapped there at the start (`unwrap`). A key is named by an RFC 7512 URI (`uri`) and found through its token's
//! library (`module`).

mod module;
mod signer;
mod unwrap;
mod uri;

pub use module::{TokenError, end};
pub(crate) use signer::{TokenKey, check};
pub(crate) use unwrap::unwrap_key;
pub use uri::KeyUri;

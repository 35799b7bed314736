//! A 32-byte key from the settings.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Thirty-two secret bytes, zeroed on drop and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Zeroizing<Vec<u8>>);

impl SecretKey {
    /// Decodes standard Base64.
    ///
    /// # Errors
    /// A sentence with the accepted form.
    pub fn from_base64(text: &str) -> Result<Self, &'static str> {
        let refusal = "must be 32 random bytes in Base64, as `openssl rand -base64 32` prints them";
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| refusal)?);
        let is_repetitive = bytes.windows(2).all(|pair| pair[0] == pair[1]);
        if bytes.len() != 32 || is_repetitive {
            return Err(refusal);
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes, for the vault.
    #[must_use]
    pub const fn bytes(&self) -> &Zeroizing<Vec<u8>> {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey([not shown])")
    }
}

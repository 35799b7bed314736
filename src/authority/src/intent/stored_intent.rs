//! The parts of a signed intent from which it can be rebuilt without another signature: time, id, key id and signature.
//! Everything else follows from the transaction and the settings.

use sakshi_domain::time::Timestamp;
use uuid::Uuid;

/// The stored parts of a signed intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredIntent<'a> {
    /// The time of the signature.
    pub(super) at: Timestamp,
    /// The `jti`.
    pub(super) jti: Uuid,
    /// The id of the signing key.
    pub(super) kid: &'a str,
    /// The signature.
    pub(super) signature: &'a [u8],
}

impl<'a> StoredIntent<'a> {
    /// Encodes the parts; `None` for a key id that is too long.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.kid.len()).ok()?;
        Some(
            [&self.at.millis().to_be_bytes()[..], self.jti.as_bytes(), &[length], self.kid.as_bytes(), self.signature]
                .concat(),
        )
    }

    /// Decodes the parts; `None` if the bytes are malformed.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (jti, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (kid, signature) = rest.split_at_checked(usize::from(*length))?;
        let at = Timestamp::from_millis(i64::from_be_bytes(*at));
        Some(Self { at, jti: Uuid::from_bytes(*jti), kid: std::str::from_utf8(kid).ok()?, signature })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_parts_survive_encoding_and_malformed_bytes_are_refused() {
        let parts = StoredIntent {
            at: Timestamp::from_millis(1_800_000_000_123),
            jti: Uuid::from_bytes([7; 16]),
            kid: "key-1",
            signature: &[9; 256],
        };
        let bytes = parts.to_bytes().unwrap();
        assert_eq!(StoredIntent::from_bytes(&bytes), Some(parts.clone()));
        let fixed_length = bytes.len() - parts.signature.len();
        for length in 0..fixed_length {
            assert_eq!(StoredIntent::from_bytes(&bytes[..length]), None, "{length}");
        }
        assert_eq!(StoredIntent { kid: &"k".repeat(256), ..parts }.to_bytes(), None);
    }
}

//! The parts of a signed intent that make it again without another signature: its time, its id, its key's id, and the
//! signature. Everything else follows from the transaction and the settings.

use sakshi_domain::time::Timestamp;
use uuid::Uuid;

/// The parts of a signed intent that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptIntent<'a> {
    /// The time of the signature.
    pub(super) at: Timestamp,
    /// Its `jti`.
    pub(super) jti: Uuid,
    /// The id of its key.
    pub(super) kid: &'a str,
    /// Its signature.
    pub(super) signature: &'a [u8],
}

impl<'a> KeptIntent<'a> {
    /// Encodes the parts; `None` for a key id that is too long.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.kid.len()).ok()?;
        Some(
            [&self.at.millis().to_be_bytes()[..], self.jti.as_bytes(), &[length], self.kid.as_bytes(), self.signature]
                .concat(),
        )
    }

    /// Decodes the parts; `None` for other bytes.
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Option<Self> {
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
    fn what_is_kept_is_read_as_it_was_written_and_anything_else_is_nothing() {
        let kept = KeptIntent {
            at: Timestamp::from_millis(1_800_000_000_123),
            jti: Uuid::from_bytes([7; 16]),
            kid: "key-1",
            signature: &[9; 256],
        };
        let bytes = kept.to_bytes().unwrap();
        assert_eq!(KeptIntent::of_bytes(&bytes), Some(kept.clone()));
        for length in 0..30 {
            assert_eq!(KeptIntent::of_bytes(&bytes[..length]), None, "{length}");
        }
        assert_eq!(KeptIntent { kid: &"k".repeat(256), ..kept }.to_bytes(), None);
    }
}

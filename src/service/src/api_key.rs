//! API keys: `sk_`, then 40 characters of Base64url with 208 random bits and a 32-bit checksum.
//!
//! The checksum lets a node refuse a mistyped or invented key without a question to the store. Only the SHA-256 of a
//! key is stored.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::tenancy::KeyDigest;

/// Prefix of every key.
pub const PREFIX: &str = "sk_";
/// Random bytes of a key.
const RANDOM_BYTES: usize = 26;
const CHECKSUM_BYTES: usize = 4;
/// Number of characters of a key.
pub(crate) const KEY_CHARS: usize = PREFIX.len() + (RANDOM_BYTES + CHECKSUM_BYTES) / 3 * 4;

const _: () = assert!((RANDOM_BYTES + CHECKSUM_BYTES).is_multiple_of(3), "no padding and no unused bits");
const _: () = assert!(RANDOM_BYTES * 8 >= 192);

/// A well-formed key; shown once, when it is issued.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Generates a key and the digest to store; `None` when the system has no randomness.
    #[must_use]
    pub fn issue() -> Option<(Self, KeyDigest)> {
        let mut bytes = [0_u8; RANDOM_BYTES + CHECKSUM_BYTES];
        let (random, stored_checksum) = bytes.split_at_mut(RANDOM_BYTES);
        rand::fill(random).ok()?;
        stored_checksum.copy_from_slice(&checksum(random));
        let key = Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)));
        let digest = key.digest();
        Some((key, digest))
    }

    /// Parses a key; checks its form and checksum.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let body = text.strip_prefix(PREFIX).filter(|_| text.len() == KEY_CHARS)?;
        let mut bytes = [0_u8; RANDOM_BYTES + CHECKSUM_BYTES];
        URL_SAFE_NO_PAD.decode_slice(body, &mut bytes).ok().filter(|length| *length == bytes.len())?;
        let (random, stored_checksum) = bytes.split_at(RANDOM_BYTES);
        (checksum(random) == stored_checksum).then(|| Self(text.to_owned()))
    }

    /// Returns the digest that is stored.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(sha256(&[self.0.as_bytes()]))
    }

    /// Returns the key itself, to be shown once to its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([not shown])")
    }
}

/// Returns the first bytes of a SHA-256, by which a mistyped key is detected.
fn checksum(random: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let full = sha256(&[b"sakshi api key", random]);
    [full[0], full[1], full[2], full[3]]
}

/// Returns the SHA-256 of the concatenated parts.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issued_key_is_recognised_and_its_digest_is_stable() {
        let (key, digest) = ApiKey::issue().unwrap();
        assert_eq!(key.reveal().len(), KEY_CHARS);
        assert_eq!(ApiKey::parse(key.reveal()).unwrap().digest(), digest);
        assert_ne!(ApiKey::issue().unwrap().1, digest);
    }

    #[test]
    fn a_mistyped_key_is_refused_by_its_checksum() {
        let (key, _) = ApiKey::issue().unwrap();
        for position in PREFIX.len()..KEY_CHARS {
            let mut text = key.reveal().to_owned().into_bytes();
            text[position] = if text[position] == b'A' { b'B' } else { b'A' };
            assert!(ApiKey::parse(std::str::from_utf8(&text).unwrap()).is_none(), "{position}");
        }
        let long = format!("{}A", key.reveal());
        for text in ["", "sk_", &key.reveal()[1..], &key.reveal()[..KEY_CHARS - 1], &long, &"é".repeat(30)] {
            assert!(ApiKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn debug_output_does_not_show_the_key() {
        let (key, _) = ApiKey::issue().unwrap();
        assert!(!format!("{key:?}").contains(&key.reveal()[3..]));
    }
}

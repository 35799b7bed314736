//! XAES-256-GCM (C2SP, <https://c2sp.org/XAES-256-GCM>): AES-256-GCM under a separate key for each nonce of 192
//! random bits.
//!
//! Under one key AES-GCM may seal 2³² messages with random nonces (NIST SP 800-38D §8.3), which a large installation
//! reaches in days. Here 2⁸⁰ messages stay below the same probability of a repeated nonce. The key of a message is
//! derived as in SP 800-108, in counter mode with CMAC.

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_256, EncryptingKey, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;

/// Bytes of a nonce: the first half derives the key of the message, and the second is the nonce under it.
pub(crate) const XNONCE_LEN: usize = 2 * NONCE_LEN;
const BLOCK_LEN: usize = 16;
/// Reduces a doubled block of CMAC (SP 800-38B §5.3).
const CMAC_REDUCTION: u128 = 0x87;

/// A key from which the keys of messages are derived.
pub(crate) struct XaesKey {
    /// Encrypts single blocks.
    block_cipher: EncryptingKey,
    /// The first subkey of CMAC (SP 800-38B §6.1).
    subkey: [u8; BLOCK_LEN],
}

impl XaesKey {
    /// Prepares a key.
    ///
    /// # Errors
    /// [`Unspecified`] when the key is not 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<Self, Unspecified> {
        let block_cipher = EncryptingKey::ecb(UnboundCipherKey::new(&AES_256, key)?)?;
        let mut zeros = [0; BLOCK_LEN];
        block_cipher.encrypt(&mut zeros)?;
        let encrypted_zeros = u128::from_be_bytes(zeros);
        let reduction = if encrypted_zeros >> 127 == 1 { CMAC_REDUCTION } else { 0 };
        Ok(Self { block_cipher, subkey: ((encrypted_zeros << 1) ^ reduction).to_be_bytes() })
    }

    /// Derives the AES-GCM key and nonce of a message from its 192-bit nonce.
    ///
    /// # Errors
    /// [`Unspecified`] when the library fails.
    pub(crate) fn message_key(&self, nonce: &[u8; XNONCE_LEN]) -> Result<(LessSafeKey, Nonce), Unspecified> {
        let (first, second) = nonce.split_at(NONCE_LEN);
        let mut key = [0; 2 * BLOCK_LEN];
        // The input block of the key derivation: counter, label `X`, a zero byte, and the first half of the nonce.
        for (block, counter) in key.chunks_exact_mut(BLOCK_LEN).zip(1..) {
            block[..4].copy_from_slice(&[0, counter, b'X', 0]);
            block[4..].copy_from_slice(first);
            block.iter_mut().zip(self.subkey).for_each(|(byte, mask)| *byte ^= mask);
        }
        self.block_cipher.encrypt(&mut key)?;
        let key = zeroize::Zeroizing::new(key);
        Ok((LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &*key)?), Nonce::try_assume_unique_for_key(second)?))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::aead::Aad;

    use super::*;

    #[test]
    fn messages_match_the_vectors_of_the_specification() {
        for (key, aad, expected) in [
            (1_u8, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
            (3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
        ] {
            let (key, nonce) = XaesKey::new(&[key; 32]).unwrap().message_key(b"ABCDEFGHIJKLMNOPQRSTUVWX").unwrap();
            let mut message = b"XAES-256-GCM".to_vec();
            key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut message).unwrap();
            assert_eq!(message.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
        }
        assert!(XaesKey::new(&[1; 31]).is_err());
    }
}

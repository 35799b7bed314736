//! Encryption at rest: AES-256-GCM with a fresh nonce for every ciphertext, bound to the record that
//! it belongs to (NIST SP 800-38D).
//!
//! The id of the key is stored with the ciphertext, so that keys can be changed: the first key seals,
//! every key opens.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Ciphertext with what is needed to open it, except the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// First four bytes of the key's SHA-256.
    pub key_id: [u8; 4],
    /// The nonce, never used twice with one key.
    pub nonce: [u8; NONCE_LEN],
    /// Ciphertext and tag.
    pub ciphertext: Vec<u8>,
}

impl Sealed {
    /// Bytes of [`Sealed::to_bytes`].
    #[must_use]
    pub const fn size(&self) -> usize {
        HEAD + self.ciphertext.len()
    }

    /// One byte string: key id, nonce, ciphertext.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.key_id[..], &self.nonce, &self.ciphertext].concat()
    }

    /// Reads what [`Sealed::to_bytes`] wrote; `None` when it is too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (key_id, rest) = bytes.split_first_chunk::<4>()?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_LEN>()?;
        Some(Self { key_id: *key_id, nonce: *nonce, ciphertext: ciphertext.to_vec() })
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.ciphertext.len())
    }
}

/// Bytes of key id and nonce, before the ciphertext.
const HEAD: usize = 4 + NONCE_LEN;

/// Why something cannot be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// A key is not 32 bytes.
    #[error("an encryption key must be 32 bytes")]
    KeyLength,
    /// There is no key.
    #[error("at least one encryption key is needed")]
    NoKey,
    /// It was sealed with a key that is not configured.
    #[error("the record was sealed with a key that is not configured")]
    UnknownKey,
    /// It was changed, or belongs to another record.
    #[error("the sealed record is not authentic")]
    NotAuthentic,
}

#[allow(clippy::expect_used)] // As in `Vault::seal`.
fn fresh_nonce() -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    rand::fill(&mut nonce).expect("the system's random source answers");
    nonce
}

/// Seals and opens records.
pub struct Vault {
    keys: Vec<([u8; 4], LessSafeKey)>,
}

impl Vault {
    /// A vault that seals with the first key and opens with every key.
    ///
    /// # Errors
    /// [`VaultError::NoKey`] without keys, [`VaultError::KeyLength`] for a key that is not 32 bytes.
    pub fn new(keys: &[Zeroizing<Vec<u8>>]) -> Result<Self, VaultError> {
        if keys.is_empty() {
            return Err(VaultError::NoKey);
        }
        let ready = |key: &Zeroizing<Vec<u8>>| {
            let unbound = UnboundKey::new(&AES_256_GCM, key).map_err(|_| VaultError::KeyLength)?;
            let mut id = [0; 4];
            id.copy_from_slice(&digest(&SHA256, key).as_ref()[..4]);
            Ok((id, LessSafeKey::new(unbound)))
        };
        keys.iter().map(ready).collect::<Result<_, _>>().map(|keys| Self { keys })
    }

    /// Seals `plain` for the record named by `owner`.
    ///
    /// # Panics
    /// Never in practice: the library refuses only inputs beyond 64 GiB or a failing random source.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn seal(&self, owner: &[u8], plain: &[u8]) -> Sealed {
        let (key_id, key) = &self.keys[0];
        let nonce = fresh_nonce();
        let mut ciphertext = Vec::with_capacity(plain.len() + AES_256_GCM.tag_len());
        ciphertext.extend_from_slice(plain);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut ciphertext)
            .expect("the record is below the cipher's bound");
        Sealed { key_id: *key_id, nonce, ciphertext }
    }

    /// Whether the current sealing key sealed this.
    pub(crate) fn seals_like(&self, sealed: &Sealed) -> bool {
        self.keys[0].0 == sealed.key_id
    }

    /// Seals what `write` appends, about `length` bytes, in place, without a copy of a large record. The
    /// format is that of [`Sealed::to_bytes`].
    ///
    /// # Errors
    /// The error of `write`.
    pub(crate) fn seal_written<E>(
        &self,
        owner: &[u8],
        length: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let nonce = fresh_nonce();
        let mut bytes = Vec::with_capacity(HEAD + length + AES_256_GCM.tag_len());
        bytes.extend_from_slice(&self.keys[0].0);
        bytes.extend_from_slice(&nonce);
        write(&mut bytes)?;
        Ok(self.close(owner, nonce, bytes))
    }

    /// Seals what follows the head, in place.
    #[allow(clippy::expect_used)] // As in `seal`.
    fn close(&self, owner: &[u8], nonce: [u8; NONCE_LEN], mut bytes: Vec<u8>) -> Vec<u8> {
        let (_, key) = &self.keys[0];
        let tag = key
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut bytes[HEAD..])
            .expect("the record is below the cipher's bound");
        bytes.extend_from_slice(tag.as_ref());
        bytes
    }

    /// Opens a ciphertext of the record named by `owner` in place, without a copy of a large record.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`] or [`VaultError::NotAuthentic`].
    pub(crate) fn open_in_place(&self, owner: &[u8], mut bytes: Vec<u8>) -> Result<Vec<u8>, VaultError> {
        let (id, rest) = bytes.split_first_chunk::<4>().ok_or(VaultError::NotAuthentic)?;
        let (nonce, _) = rest.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::NotAuthentic)?;
        let (_, key) = self.keys.iter().find(|(known, _)| known == id).ok_or(VaultError::UnknownKey)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = key.open_within(nonce, Aad::from(owner), &mut bytes, HEAD..).map_err(|_| VaultError::NotAuthentic)?.len();
        bytes.truncate(plain);
        Ok(bytes)
    }

    /// Opens a ciphertext of the record named by `owner`.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`] or [`VaultError::NotAuthentic`].
    pub fn open(&self, owner: &[u8], sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (_, key) = self.keys.iter().find(|(id, _)| *id == sealed.key_id).ok_or(VaultError::UnknownKey)?;
        let mut bytes = Zeroizing::new(sealed.ciphertext.clone());
        let plain = key
            .open_in_place(Nonce::assume_unique_for_key(sealed.nonce), Aad::from(owner), &mut bytes)
            .map_err(|_| VaultError::NotAuthentic)?
            .len();
        bytes.truncate(plain);
        Ok(bytes)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({} keys)", self.keys.len())
    }
}

/// A vault with one key of equal bytes for each of these bytes.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn test_vault(bytes: &[u8]) -> Vault {
    let keys: Vec<_> = bytes.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    Vault::new(&keys).unwrap()
}

#[cfg(test)]
mod tests {
    use super::{Sealed, VaultError, test_vault as vault};

    #[test]
    fn what_is_sealed_opens_for_its_owner_alone() {
        let vault = vault(&[1]);
        let sealed = vault.seal(b"txn-1", b"Asha Rao");
        assert!(!sealed.to_bytes().windows(4).any(|window| window == b"Asha"));
        assert_eq!(*vault.open(b"txn-1", &sealed).unwrap(), b"Asha Rao");
        assert_eq!(vault.open(b"txn-2", &sealed), Err(VaultError::NotAuthentic));
    }

    #[test]
    fn an_old_key_opens_and_no_longer_seals() {
        let old = vault(&[1]).seal(b"t", b"x");
        let rotated = vault(&[2, 1]);
        assert!(rotated.open(b"t", &old).is_ok());
        assert_ne!(rotated.seal(b"t", b"x").key_id, old.key_id);
        assert_eq!(vault(&[2]).open(b"t", &old), Err(VaultError::UnknownKey));
    }

    #[test]
    fn what_is_sealed_in_place_opens_in_place_and_as_any_other_ciphertext() {
        let vault = vault(&[1]);
        let write = |bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(b"Asha Rao");
            Ok::<_, VaultError>(())
        };
        let bytes = vault.seal_written(b"flow-1", 8, write).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"Asha"));
        assert_eq!(*vault.open(b"flow-1", &Sealed::from_bytes(&bytes).unwrap()).unwrap(), b"Asha Rao");
        let place = bytes.as_ptr();
        let opened = vault.open_in_place(b"flow-1", bytes.clone()).unwrap();
        assert_eq!(opened, b"Asha Rao");
        let opened = vault.open_in_place(b"flow-1", bytes).unwrap();
        assert_eq!(opened.as_ptr(), place, "it was not copied");
        let sealed = vault.seal_written(b"flow-1", 8, write).unwrap();
        assert_eq!(vault.open_in_place(b"flow-2", sealed.clone()), Err(VaultError::NotAuthentic));
        for length in [0, 3, 15, 16, sealed.len() - 1] {
            assert!(vault.open_in_place(b"flow-1", sealed[..length].to_vec()).is_err(), "{length}");
        }
    }

    #[test]
    fn a_changed_ciphertext_is_refused() {
        let vault = vault(&[1]);
        let mut sealed = vault.seal(b"t", b"x");
        sealed.ciphertext[0] ^= 1;
        assert_eq!(vault.open(b"t", &sealed), Err(VaultError::NotAuthentic));
        assert_eq!(Sealed::from_bytes(&sealed.to_bytes()), Some(sealed));
        assert_eq!(Sealed::from_bytes(&[0; 15]), None);
    }
}

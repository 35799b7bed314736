//! Encryption at rest: XAES-256-GCM with a random nonce for every ciphertext, bound to its record.
//!
//! The id of the key is stored with the ciphertext, so that keys can be changed: the first key seals,
//! every key opens.

use std::convert::Infallible;
use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

use crate::xaes::{XNONCE_LEN, XaesKey};

/// Bytes of key id and nonce, before the ciphertext.
const HEAD_LEN: usize = KEY_ID_LEN + XNONCE_LEN;
const KEY_ID_LEN: usize = 4;
/// Bytes of the authentication tag of AES-GCM.
const TAG_LEN: usize = 16;
/// Minimum size of a sealed value: head and tag, with an empty ciphertext.
pub(crate) const SEALED_MIN: usize = HEAD_LEN + TAG_LEN;

/// The id of an encryption key: the first bytes of its SHA-256. Every value sealed under the key begins with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncryptionKeyId(pub(crate) [u8; KEY_ID_LEN]);

impl fmt::Display for EncryptionKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EncryptionKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptionKeyId({self})")
    }
}

/// An encrypted value: the id of the key, the nonce, and the ciphertext with its tag.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Returns the size in bytes, slightly more than the size of the plain text.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns the bytes of key id, nonce and ciphertext.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.clone()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the sealed record with these bytes; `None` when there are too few bytes.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        Some(bytes.into()).filter(|bytes| bytes.len() >= HEAD_LEN).map(Self)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.size())
    }
}

/// Error of sealing or opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// A key is not 32 bytes.
    #[error("an encryption key must be 32 bytes")]
    KeyLength,
    /// There is no key.
    #[error("at least one encryption key is needed")]
    NoKey,
    /// The record was sealed with a key that is not configured.
    #[error("the record was sealed with a key that is not configured")]
    UnknownKey,
    /// The record was changed, or belongs to another owner.
    #[error("the sealed record is not authentic")]
    NotAuthentic,
}

/// The encryption keys, which seal and open records.
pub struct Vault {
    /// The first key seals; every key opens.
    keys: Vec<VaultKey>,
}

/// An encryption key with its id.
struct VaultKey {
    id: EncryptionKeyId,
    key: XaesKey,
}

impl Vault {
    /// Returns a vault that seals with the first key and opens with every key.
    ///
    /// # Errors
    /// [`VaultError::NoKey`] without keys, [`VaultError::KeyLength`] for a key that is not 32 bytes.
    pub fn new(keys: &[Zeroizing<Vec<u8>>]) -> Result<Self, VaultError> {
        if keys.is_empty() {
            return Err(VaultError::NoKey);
        }
        let prepare = |key: &Zeroizing<Vec<u8>>| {
            let mut id = [0; KEY_ID_LEN];
            id.copy_from_slice(&digest(&SHA256, key).as_ref()[..KEY_ID_LEN]);
            let key = XaesKey::new(key).map_err(|_| VaultError::KeyLength)?;
            Ok(VaultKey { id: EncryptionKeyId(id), key })
        };
        keys.iter().map(prepare).collect::<Result<_, _>>().map(|keys| Self { keys })
    }

    /// Seals `plain` for the record with the id `owner`; it opens for no other owner.
    ///
    /// # Panics
    /// Never in practice: the library refuses only inputs beyond 64 GiB or a failing random source.
    #[must_use]
    pub fn seal(&self, owner: &[u8], plain: &[u8]) -> Sealed {
        let Ok(sealed) = self.seal_with_writer(owner, plain.len(), |bytes| {
            bytes.extend_from_slice(plain);
            Ok::<_, Infallible>(())
        });
        sealed
    }

    /// Seals the bytes that `write` appends, about `length` of them. They are encrypted in place, without a copy.
    ///
    /// # Errors
    /// The error of `write`.
    #[allow(clippy::expect_used)] // As `seal` says.
    pub(crate) fn seal_with_writer<E>(
        &self,
        owner: &[u8],
        length: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Sealed, E> {
        let VaultKey { id, key } = &self.keys[0];
        let mut nonce = [0; XNONCE_LEN];
        rand::fill(&mut nonce).expect("the system's random source answers");
        let mut bytes = Vec::with_capacity(HEAD_LEN + length + AES_256_GCM.tag_len());
        bytes.extend_from_slice(&id.0);
        bytes.extend_from_slice(&nonce);
        write(&mut bytes)?;
        let (key, nonce) = key.message_key(&nonce).expect("the library derives keys");
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(owner), &mut bytes[HEAD_LEN..])
            .expect("the record is below the cipher's bound");
        bytes.extend_from_slice(tag.as_ref());
        Ok(Sealed(bytes))
    }

    /// Returns the id of the key that seals.
    #[must_use]
    pub fn sealing_key(&self) -> EncryptionKeyId {
        self.keys[0].id
    }

    /// Returns true if this value is sealed under the key that seals now.
    pub(crate) fn is_under_sealing_key(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.sealing_key().0)
    }

    /// Opens a value sealed for the record with the id `owner`.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`] when its key is not configured, [`VaultError::NotAuthentic`] when it was changed or
    /// belongs to another owner.
    pub fn open(&self, owner: &[u8], sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        self.open_in_place(owner, sealed.clone()).map(Zeroizing::new)
    }

    /// Opens a value sealed for the record with the id `owner`, without copying it.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`] when its key is not configured, [`VaultError::NotAuthentic`] when it was changed or
    /// belongs to another owner.
    pub(crate) fn open_in_place(&self, owner: &[u8], Sealed(mut bytes): Sealed) -> Result<Vec<u8>, VaultError> {
        let (id, rest) = bytes.split_first_chunk::<KEY_ID_LEN>().ok_or(VaultError::NotAuthentic)?;
        let (nonce, _) = rest.split_first_chunk::<XNONCE_LEN>().ok_or(VaultError::NotAuthentic)?;
        let VaultKey { key, .. } = self.keys.iter().find(|known| known.id.0 == *id).ok_or(VaultError::UnknownKey)?;
        let (key, nonce) = key.message_key(nonce).map_err(|_| VaultError::NotAuthentic)?;
        let plain_length = key
            .open_within(nonce, Aad::from(owner), &mut bytes, HEAD_LEN..)
            .map_err(|_| VaultError::NotAuthentic)?
            .len();
        bytes.truncate(plain_length);
        Ok(bytes)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({} keys)", self.keys.len())
    }
}

/// Returns a vault with one key for each of these bytes, which the key repeats; the first key seals.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn test_vault(bytes: &[u8]) -> Vault {
    let keys: Vec<_> = bytes.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    Vault::new(&keys).unwrap()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{HEAD_LEN, Sealed, VaultError, test_vault as vault};

    #[test]
    fn a_sealed_record_opens_only_for_its_owner() {
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
        assert!(
            rotated.is_under_sealing_key(rotated.seal(b"t", b"x").as_bytes())
                && !rotated.is_under_sealing_key(old.as_bytes())
        );
        assert_eq!(vault(&[2]).open(b"t", &old), Err(VaultError::UnknownKey));
    }

    #[test]
    fn a_large_record_is_sealed_and_opened_without_a_copy() {
        let vault = vault(&[1]);
        let sealed = vault.seal_with_writer(b"flow-1", 8, |bytes| bytes.write_all(b"Asha Rao")).unwrap();
        assert_eq!(*vault.open(b"flow-1", &sealed).unwrap(), b"Asha Rao");
        assert_eq!(vault.open_in_place(b"flow-2", sealed.clone()), Err(VaultError::NotAuthentic));
        let address = sealed.as_bytes().as_ptr();
        let opened = vault.open_in_place(b"flow-1", sealed).unwrap();
        assert_eq!(opened.as_ptr(), address, "it was not copied");
        assert_eq!(opened, b"Asha Rao");
    }

    #[test]
    fn a_changed_or_shortened_record_is_refused() {
        let vault = vault(&[1]);
        let whole = vault.seal(b"t", b"x").into_bytes();
        let open = |bytes: &[u8]| Sealed::from_bytes(bytes).map(|sealed| vault.open(b"t", &sealed).map(|_| ()));
        assert_eq!(open(&whole), Some(Ok(())));
        let mut changed = whole.clone();
        changed[HEAD_LEN] ^= 1;
        assert_eq!(open(&changed), Some(Err(VaultError::NotAuthentic)));
        for length in HEAD_LEN..whole.len() {
            assert_eq!(open(&whole[..length]), Some(Err(VaultError::NotAuthentic)), "{length}");
        }
        for length in 0..HEAD_LEN {
            assert_eq!(open(&whole[..length]), None, "{length}");
        }
    }
}

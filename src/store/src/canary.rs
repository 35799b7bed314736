//! The canary: one sealed value in every store, which shows whether a node has the keys that the store
//! was written under.
//!
//! Without a canary, a wrong key would be noticed only when an old record is read. Until then, new records would be
//! sealed with it.

use crate::error::StoreError;
use crate::vault::{Sealed, Vault, VaultError};

/// The owner for which the canary is sealed. No record has this id, so no other sealed value opens as a canary.
pub(crate) const OWNER: &[u8] = b"sakshi store canary 1";
const PLAINTEXT: &[u8] = b"This store was written under this key.";

/// Creates a canary, sealed with the current sealing key.
pub(crate) fn create(vault: &Vault) -> Vec<u8> {
    vault.seal(OWNER, PLAINTEXT).into_bytes()
}

/// Checks the keys of a node against the canary of its store. Returns a new canary to store, if the store has none or
/// one under an old key.
///
/// # Errors
/// [`StoreError::WrongKey`] when no key opens the canary, [`StoreError::Corrupt`] when it is damaged.
pub(crate) fn check(vault: &Vault, stored: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let replacement = || Some(create(vault));
    let Some(stored) = stored else { return Ok(replacement()) };
    let damaged = || StoreError::unreadable("the canary");
    let stored = Sealed::from_bytes(stored).ok_or_else(damaged)?;
    match vault.open(OWNER, &stored) {
        Ok(plaintext) if *plaintext == PLAINTEXT => {
            Ok(if vault.is_under_sealing_key(stored.as_bytes()) { None } else { replacement() })
        }
        Err(VaultError::UnknownKey) => Err(StoreError::WrongKey),
        Ok(_) | Err(_) => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::test_vault as vault;

    #[test]
    fn a_store_keeps_its_canary_while_the_sealing_key_stays() {
        let stored = check(&vault(&[1]), None).unwrap().unwrap();
        assert_eq!(check(&vault(&[1]), Some(&stored)), Ok(None));
        assert_eq!(check(&vault(&[1, 2]), Some(&stored)), Ok(None));
    }

    #[test]
    fn after_a_key_change_the_new_sealing_key_is_required() {
        let old = check(&vault(&[1]), None).unwrap().unwrap();
        let new = check(&vault(&[2, 1]), Some(&old)).unwrap().unwrap();
        assert_eq!(check(&vault(&[2]), Some(&new)), Ok(None));
        assert_eq!(check(&vault(&[1]), Some(&new)), Err(StoreError::WrongKey));
    }

    #[test]
    fn another_key_and_a_damaged_canary_are_told_apart() {
        let stored = check(&vault(&[1]), None).unwrap().unwrap();
        assert_eq!(check(&vault(&[2, 3]), Some(&stored)), Err(StoreError::WrongKey));
        let mut changed = stored.clone();
        *changed.last_mut().unwrap() ^= 1;
        let other_text = vault(&[1]).seal(OWNER, b"other").into_bytes();
        for damaged in [&changed[..], &stored[..10], b"", &other_text] {
            assert!(matches!(check(&vault(&[1]), Some(damaged)), Err(StoreError::Corrupt(_))));
        }
    }
}

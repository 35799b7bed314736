//! The canary: one sealed value in every store, which shows whether a node has the keys that the store
//! was written under.
//!
//! Without it a wrong key would be noticed only when an old record is read, and everything written
//! until then would be sealed with it.

use crate::error::StoreError;
use crate::vault::{Sealed, Vault, VaultError};

/// The owner that the canary is sealed for. No record has such an id.
pub(crate) const OWNER: &[u8] = b"sakshi store canary 1";
const PLAINTEXT: &[u8] = b"This store was written under this key.";

/// Makes a canary, sealed with the key that seals now.
pub(crate) fn fresh(vault: &Vault) -> Vec<u8> {
    vault.seal(OWNER, PLAINTEXT).into_bytes()
}

/// Checks the keys of a node against the canary in its store, if there is one. Returns a canary to be
/// stored: for a store without one, and after a change of keys, sealed with the new key.
///
/// # Errors
/// [`StoreError::WrongKey`] when none of the keys opens it, [`StoreError::Corrupt`] when it is damaged.
pub(crate) fn check(vault: &Vault, kept: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let fresh = || Some(fresh(vault));
    let Some(kept) = kept else { return Ok(fresh()) };
    let damaged = || StoreError::unreadable("the canary");
    let kept = Sealed::from_bytes(kept).ok_or_else(damaged)?;
    match vault.open(OWNER, &kept) {
        Ok(plaintext) if *plaintext == PLAINTEXT => Ok(if vault.seals_like(kept.as_bytes()) { None } else { fresh() }),
        Err(VaultError::UnknownKey) => Err(StoreError::WrongKey),
        Ok(_) | Err(_) => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::test_vault as vault;

    #[test]
    fn a_store_gets_one_canary_and_keeps_it_while_the_key_stays() {
        let kept = check(&vault(&[1]), None).unwrap().unwrap();
        assert_eq!(check(&vault(&[1]), Some(&kept)), Ok(None));
        assert_eq!(check(&vault(&[1, 2]), Some(&kept)), Ok(None));
    }

    #[test]
    fn after_a_change_of_keys_the_key_that_seals_now_is_needed() {
        let old = check(&vault(&[1]), None).unwrap().unwrap();
        let new = check(&vault(&[2, 1]), Some(&old)).unwrap().unwrap();
        assert_eq!(check(&vault(&[2]), Some(&new)), Ok(None));
        assert_eq!(check(&vault(&[1]), Some(&new)), Err(StoreError::WrongKey));
    }

    #[test]
    fn another_key_and_a_damaged_canary_are_told_apart() {
        let kept = check(&vault(&[1]), None).unwrap().unwrap();
        assert_eq!(check(&vault(&[2, 3]), Some(&kept)), Err(StoreError::WrongKey));
        let mut changed = kept.clone();
        *changed.last_mut().unwrap() ^= 1;
        let other_text = vault(&[1]).seal(OWNER, b"other").into_bytes();
        for damaged in [&changed[..], &kept[..10], b"", &other_text] {
            assert!(matches!(check(&vault(&[1]), Some(damaged)), Err(StoreError::Corrupt(_))));
        }
    }
}

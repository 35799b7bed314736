//! The people whom guests are. Most guests are a new person. A share of them has come before, with the same name, date
//! of birth and device key, and a new credential.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use sakshi_sandbox::issuer::HolderKey;
use sakshi_sandbox::keys::KeyError;
use sakshi_sandbox::residents::Resident;

/// Half of those who come again do so within this many guests, so that both answer at about the same time.
const SOON: u64 = 4;
/// Separates these choices from others made with the same seed.
const SALT: u64 = 0x7065_6f70_6c65;

/// A person with a phone.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) resident: Resident,
    pub(crate) holder: HolderKey,
}

impl Person {
    /// Creates a person like this resident, with a name and a device key of their own.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub(crate) fn like(resident: &Resident, number: u64) -> Result<Self, KeyError> {
        Ok(Self { resident: resident.named(format!("Guest {number}")), holder: HolderKey::generate()? })
    }
}

/// Returns the number of the first guest who is the same person, when this share of guests has come before.
pub(crate) fn person_of(seed: u64, guest: u64, duplicates: f64) -> u64 {
    let mut person = guest;
    // Each round leads to an earlier guest, who may have come before, too.
    while person > 0 {
        let mut dice = SmallRng::seed_from_u64((seed ^ SALT).rotate_left(32) ^ person);
        if dice.random::<f64>() >= duplicates {
            break;
        }
        let reach = if dice.random::<bool>() { person.min(SOON) } else { person };
        person -= dice.random_range(1..=reach);
    }
    person
}

/// The people who have shown a credential, by number.
#[derive(Debug, Default)]
pub(crate) struct KnownPeople(Mutex<HashMap<u64, Arc<Person>>>);

impl KnownPeople {
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Person>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Returns the person with this number: the new one, unless another guest was faster.
    pub(crate) fn get_or_insert(&self, number: u64, new: Arc<Person>) -> Arc<Person> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_insert(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_guests_who_come_again_is_as_asked() {
        const GUESTS: u64 = 20_000;
        let again =
            |share| (0..GUESTS).filter(|guest| person_of(7, *guest, share) != *guest).count() as f64 / GUESTS as f64;
        assert!((again(0.1) - 0.1).abs() < 0.01);
        assert!(again(0.0).total_cmp(&0.0).is_eq());
    }

    #[test]
    fn who_comes_again_is_somebody_who_came_first() {
        let people: Vec<u64> = (0..2_000).map(|guest| person_of(7, guest, 0.3)).collect();
        assert!(
            people.iter().zip(0..).all(|(person, guest)| *person <= guest && person_of(7, *person, 0.3) == *person)
        );
        let again: Vec<u64> = (0..)
            .zip(&people)
            .filter(|(guest, person)| *guest != **person)
            .map(|(guest, person)| guest - person)
            .collect();
        let soon = again.iter().filter(|gap| **gap <= SOON).count();
        assert!(soon * 3 > again.len() && soon < again.len(), "{soon} of {}", again.len());
    }
}

//! The people behind the guests. Most guests are new people. The others come again, with the same name, date of birth
//! and device key, and a new credential.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use sakshi_sandbox::issuer::HolderKey;
use sakshi_sandbox::keys::KeyError;
use sakshi_sandbox::residents::Resident;

/// Half of the returning people come again within this number of guests, so that both guests answer at about the same
/// time.
const SOON_GAP_MAX: u64 = 4;
/// Mixed into the seed, so that these random choices are independent of others with the same seed.
const SALT: u64 = 0x7065_6f70_6c65;

/// A person with a phone.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) resident: Resident,
    pub(crate) holder: HolderKey,
}

impl Person {
    /// Creates a person with the data of this resident, but with a new name and device key.
    ///
    /// # Errors
    /// [`KeyError`] if the cryptographic library fails.
    pub(crate) fn from_resident(resident: &Resident, number: u64) -> Result<Self, KeyError> {
        Ok(Self { resident: resident.with_name(format!("Guest {number}")), holder: HolderKey::generate()? })
    }
}

/// Returns the number of the first guest who is the same person as `guest`, if `duplicates` is the share of returning
/// people.
pub(crate) fn person_number(seed: u64, guest: u64, duplicates: f64) -> u64 {
    let mut person = guest;
    // Each round leads to an earlier guest, who may also be a returning person.
    while person > 0 {
        let mut dice = SmallRng::seed_from_u64((seed ^ SALT).rotate_left(32) ^ person);
        if dice.random::<f64>() >= duplicates {
            break;
        }
        let gap_max = if dice.random::<bool>() { person.min(SOON_GAP_MAX) } else { person };
        person -= dice.random_range(1..=gap_max);
    }
    person
}

/// The people who have presented a credential, by number.
#[derive(Debug, Default)]
pub(crate) struct KnownPeople(Mutex<HashMap<u64, Arc<Person>>>);

impl KnownPeople {
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Person>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Returns the person with this number, and inserts `new` if the number is unknown.
    pub(crate) fn get_or_insert(&self, number: u64, new: Arc<Person>) -> Arc<Person> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_insert(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    #[test]
    fn the_share_of_returning_people_is_as_requested() {
        const GUESTS: u64 = 20_000;
        let returning_share = |share| {
            (0..GUESTS).filter(|guest| person_number(SEED, *guest, share) != *guest).count() as f64 / GUESTS as f64
        };
        assert!((returning_share(0.1) - 0.1).abs() < 0.01);
        assert!(returning_share(0.0).total_cmp(&0.0).is_eq());
    }

    #[test]
    fn a_returning_person_was_an_earlier_guest() {
        let people: Vec<u64> = (0..2_000).map(|guest| person_number(SEED, guest, 0.3)).collect();
        assert!(
            people
                .iter()
                .zip(0..)
                .all(|(person, guest)| *person <= guest && person_number(SEED, *person, 0.3) == *person)
        );
        let gaps: Vec<u64> = (0..)
            .zip(&people)
            .filter(|(guest, person)| *guest != **person)
            .map(|(guest, person)| guest - person)
            .collect();
        let soon = gaps.iter().filter(|gap| **gap <= SOON_GAP_MAX).count();
        assert!(soon * 3 > gaps.len() && soon < gaps.len(), "{soon} of {}", gaps.len());
    }
}

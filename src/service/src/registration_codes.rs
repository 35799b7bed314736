//! Codes of registered guests: the numbers of an event's guests, permuted with the event's secret. No two guests of an
//! event have the same code, and the next code cannot be guessed.

use aws_lc_rs::hmac;
use sakshi_domain::event::{EventSecret, RegistrationCode};

/// Number of bits in half of a value.
const HALF_BITS: u32 = RegistrationCode::BITS / 2;
/// The lower half of a value.
const HALF_MASK: u32 = (1 << HALF_BITS) - 1;
/// Rounds of the permutation, a Feistel network (Luby and Rackoff, 1988: four rounds of a pseudorandom function).
const ROUNDS: [u8; 4] = [0, 1, 2, 3];
const ROUNDS_REVERSED: [u8; 4] = [3, 2, 1, 0];

/// Returns the code of the guest with this number.
#[must_use]
pub fn code_of(secret: &EventSecret, number: u64) -> RegistrationCode {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    RegistrationCode::from_bits(permute(secret, number, &ROUNDS))
}

/// Returns the number of the guest with this code. The event may have fewer guests.
#[must_use]
pub fn number_of(secret: &EventSecret, code: RegistrationCode) -> u64 {
    // A Feistel network is reversed by swapped halves and the rounds in reverse order.
    let swapped = swap_halves(code.value());
    swap_halves(permute(secret, swapped, &ROUNDS_REVERSED)).into()
}

fn swap_halves(value: u32) -> u32 {
    value >> HALF_BITS | (value & HALF_MASK) << HALF_BITS
}

/// Permutes the values of a code with the event's secret.
fn permute(secret: &EventSecret, value: u32, rounds: &[u8]) -> u32 {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let (mut left, mut right) = (value >> HALF_BITS & HALF_MASK, value & HALF_MASK);
    for round in rounds {
        let tag = hmac::sign(&key, &[&b"code"[..], &[*round], &right.to_be_bytes()].concat());
        let mixed = tag.as_ref().first_chunk().map_or(0, |first| u32::from_be_bytes(*first)) & HALF_MASK;
        (left, right) = (right, left ^ mixed);
    }
    left << HALF_BITS | right
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_number_has_a_unique_code_that_only_the_secret_reverses() {
        let (secret, other_secret) = (EventSecret::fixed(1), EventSecret::fixed(2));
        let mut codes = HashSet::new();
        for number in (1..5_000).chain([1_000_000, (1 << RegistrationCode::BITS) - 1]) {
            let code = code_of(&secret, number);
            assert_eq!(number_of(&secret, code), number);
            assert!(codes.insert(code.to_string()), "{number}");
        }
        let plausible = (1..1_000).filter(|number| number_of(&other_secret, code_of(&secret, *number)) < 5_000).count();
        assert!(plausible < 20, "{plausible} of 1,000 codes belong to guests of another event");
    }
}

//! Passwords of users: the rules for new ones, and their hashes (PBKDF2 with HMAC-SHA-512).

use std::num::NonZeroU32;

use aws_lc_rs::{pbkdf2, rand};
use sakshi_domain::user::User;

/// Rounds of a new hash (OWASP, Password Storage, 2023).
pub const ITERATIONS: u32 = 210_000;
/// Minimum number of characters of a password.
const CHARS_MIN: usize = 12;
/// Minimum number of different characters of a password.
const DIFFERENT_MIN: usize = 5;
/// Common passwords of at least [`CHARS_MIN`] characters.
const COMMON: &str = include_str!("../assets/common_passwords.txt");

/// Checks a password that a user chooses.
///
/// # Errors
/// A sentence with the rule that the password breaks.
pub fn check_new_password(password: &str, user: &User) -> Result<(), &'static str> {
    if password.chars().count() < CHARS_MIN {
        return Err("must have at least 12 characters");
    }
    let mut letters: Vec<char> = password.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    if letters.len() < DIFFERENT_MIN {
        return Err("must have at least 5 different characters");
    }
    let password = password.to_lowercase();
    if COMMON.lines().any(|common| common == password) {
        return Err("is among those that are tried first; choose another one");
    }
    let personal_texts = [user.email.as_str().to_owned(), user.name.as_str().to_lowercase()];
    if personal_texts.contains(&password) {
        return Err("must be neither your name nor your e-mail address");
    }
    Ok(())
}

/// Generates a salt; `None` when the system has no randomness.
#[must_use]
pub fn generate_salt() -> Option<[u8; 16]> {
    let mut salt = [0; 16];
    rand::fill(&mut salt).ok()?;
    Some(salt)
}

/// Returns the hash of a password. Takes about a tenth of a second, so it must run on the threads of the processor
/// budget.
#[must_use]
pub fn hash(password: &str, salt: &[u8; 16], iterations: u32) -> [u8; 32] {
    let (mut hash, iterations) = ([0; 32], NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN));
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, iterations, salt, password.as_bytes(), &mut hash);
    hash
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::{ClientId, UserId};
    use sakshi_domain::time::Timestamp;
    use sakshi_domain::user::UserRole;

    use super::*;

    #[test]
    fn short_common_and_personal_passwords_are_refused() {
        let user = User {
            user_id: UserId::generate(),
            client_id: ClientId::generate(),
            name: "Asha Lakshmi Rao".parse().unwrap(),
            email: "asha@example.com".parse().unwrap(),
            role: UserRole::View,
            created_at: Timestamp::from_millis(0),
            invited_until: None,
            accepted_at: None,
            signed_in_at: None,
            disabled_at: None,
        };
        for refused in
            ["elevenchars", "Password1234", "aaaaaaaabbbbbbbb", "ASHA@example.com", "asha lakshmi rao", "नमस्तेजी"]
        {
            assert!(check_new_password(refused, &user).is_err(), "{refused}");
        }
        for accepted in ["    a b c d    ", "यह मेरा गुप्त शब्द है", "mango tree on the hill"]
        {
            assert_eq!(check_new_password(accepted, &user), Ok(()), "{accepted}");
        }
    }

    #[test]
    fn every_common_password_has_the_minimum_length() {
        for common in COMMON.lines() {
            assert!(common.chars().count() >= CHARS_MIN, "{common}");
            assert_eq!(common, common.to_lowercase());
        }
    }

    /// Compares with the bytes of Python's `hashlib.pbkdf2_hmac`.
    #[test]
    fn a_hash_matches_another_implementation_and_depends_on_salt_and_rounds() {
        let one = hash("mango tree", &[1; 16], 2);
        assert_eq!(one[..8], [100, 255, 105, 56, 66, 169, 153, 157]);
        for other in [hash("mango trea", &[1; 16], 2), hash("mango tree", &[2; 16], 2), hash("mango tree", &[1; 16], 3)]
        {
            assert_ne!(one, other);
        }
    }
}

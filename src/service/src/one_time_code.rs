//! One-time codes of an authenticator app (RFC 6238 with SHA-1, six digits and steps of 30 seconds), and recovery codes
//! for users without their app.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hmac, rand};
use sakshi_domain::ids::UserId;
use sakshi_domain::time::Timestamp;

use crate::api_key::sha256;

/// Seconds of a step.
const STEP_S: i64 = 30;
/// Number of steps by which the clock of a phone may be wrong.
const DRIFT_STEPS: i64 = 1;
/// Number of bytes of a secret (RFC 4226 §4 R6).
const SECRET_BYTES: usize = 20;
/// Number of recovery codes of a user.
const RECOVERY_CODES: usize = 10;
/// Number of characters of a recovery code, which has 50 random bits.
const RECOVERY_CHARS: usize = 10;
/// Alphabet of Base32 (RFC 4648 §6).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret of an authenticator app.
pub type Secret = [u8; SECRET_BYTES];

/// A code that a person has entered.
#[derive(Clone, PartialEq, Eq)]
pub enum EnteredCode {
    /// Six digits.
    OneTime(String),
    /// A recovery code without separators.
    Recovery(String),
}

impl EnteredCode {
    /// Parses a code. Any text other than six digits counts as a recovery code.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text: String = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect();
        if text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::OneTime(text)
        } else {
            Self::Recovery(text.to_ascii_lowercase())
        }
    }
}

/// Generates a secret; `None` when the system has no randomness.
#[must_use]
pub fn generate_secret() -> Option<Secret> {
    let mut secret = [0; SECRET_BYTES];
    rand::fill(&mut secret).ok()?;
    Some(secret)
}

/// Returns the time step of a code, if it is a code of the secret at about this time.
#[must_use]
pub fn step_of(secret: &Secret, code: &str, now: Timestamp) -> Option<i64> {
    let current = now.millis().div_euclid(1_000 * STEP_S);
    let matches = |step: &i64| verify_slices_are_equal(code_at(secret, *step).as_bytes(), code.as_bytes()).is_ok();
    // All steps are compared, even after a match.
    let matching: Vec<i64> = (current - DRIFT_STEPS..=current + DRIFT_STEPS).filter(matches).collect();
    matching.first().copied()
}

/// Returns the code of a step (RFC 4226 §5.3).
#[must_use]
pub fn code_at(secret: &Secret, step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let offset = usize::from(bytes[bytes.len() - 1] & 0xF);
    let number =
        bytes[offset..offset + 4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) & 0x7FFF_FFFF;
    format!("{:06}", number % 1_000_000)
}

/// Returns a secret in Base32, in groups of four characters, for a person to type.
#[must_use]
pub fn spell_secret(secret: &Secret) -> String {
    let characters = base32(secret);
    characters.as_bytes().chunks(4).map(|four| String::from_utf8_lossy(four).into_owned()).collect::<Vec<_>>().join(" ")
}

/// Returns the `otpauth` URL that an authenticator app reads from a QR code.
#[must_use]
pub fn otpauth_url(secret: &Secret, issuer: &str, email: &str) -> String {
    let encoded = |text: &str| -> String {
        url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
    };
    format!(
        "otpauth://totp/{}:{}?secret={}&issuer={}",
        encoded(issuer),
        encoded(email),
        base32(secret),
        encoded(issuer)
    )
}

/// Generates recovery codes; `None` when the system has no randomness.
#[must_use]
pub fn generate_recovery_codes() -> Option<Vec<String>> {
    let mut codes = Vec::with_capacity(RECOVERY_CODES);
    for _ in 0..RECOVERY_CODES {
        let mut bytes = [0; RECOVERY_CHARS];
        rand::fill(&mut bytes).ok()?;
        let code: String = bytes.iter().map(|byte| char::from(BASE32[usize::from(byte & 31)])).collect();
        let code = code.to_ascii_lowercase();
        codes.push(format!("{}-{}", &code[..RECOVERY_CHARS / 2], &code[RECOVERY_CHARS / 2..]));
    }
    Some(codes)
}

/// Returns the stored form of a recovery code: its digest.
#[must_use]
pub fn recovery_digest(user: &UserId, code: &str) -> [u8; 32] {
    let code = match EnteredCode::parse(code) {
        EnteredCode::OneTime(code) | EnteredCode::Recovery(code) => code,
    };
    sha256(&[b"sakshi recovery code", user.as_str().as_bytes(), code.as_bytes()])
}

/// Encodes a secret in Base32: each five bytes as eight characters.
fn base32(bytes: &[u8; SECRET_BYTES]) -> String {
    let number = |five: &[u8]| five.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let characters = |five: &[u8]| {
        let number = number(five);
        (0..8).rev().map(move |index| char::from(BASE32[usize::try_from(number >> (5 * index) & 31).unwrap_or(0)]))
    };
    bytes.chunks_exact(5).flat_map(characters).collect()
}

const _: () = assert!(SECRET_BYTES.is_multiple_of(5), "no padding");

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = *b"12345678901234567890";

    #[test]
    fn codes_match_rfc_6238_appendix_b() {
        for (second, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")]
        {
            assert_eq!(code_at(&SECRET, second / STEP_S), code, "{second}");
        }
    }

    #[test]
    fn a_code_is_valid_in_its_own_step_and_the_steps_next_to_it() {
        // Step 100 begins at second 3000.
        let at = |second: i64| Timestamp::from_millis(second * 1_000);
        let code = code_at(&SECRET, 100);
        for (second, step) in [(2_969, None), (2_970, Some(100)), (3_000, Some(100)), (3_059, Some(100)), (3_060, None)]
        {
            assert_eq!(step_of(&SECRET, &code, at(second)), step, "{second}");
        }
        assert_eq!(step_of(&[7; SECRET_BYTES], &code, at(3_000)), None);
        assert_eq!(step_of(&SECRET, "", at(3_000)), None);
    }

    #[test]
    fn a_secret_is_spelled_and_encoded_as_apps_expect() {
        assert_eq!(spell_secret(&SECRET), "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ");
        let address = otpauth_url(&SECRET, "Sakshi: Bank", "a+b@example.com");
        assert_eq!(
            address,
            "otpauth://totp/Sakshi%3A%20Bank:a%2Bb%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Sakshi%3A%20Bank"
        );
    }

    #[test]
    fn a_recovery_code_is_read_in_any_spelling() {
        let (user, codes) = (UserId::generate(), generate_recovery_codes().unwrap());
        assert_eq!(codes.iter().collect::<std::collections::BTreeSet<_>>().len(), RECOVERY_CODES);
        let code = &codes[0];
        let written = format!(" {} ", code.to_uppercase().replace('-', " "));
        assert_eq!(recovery_digest(&user, code), recovery_digest(&user, &written));
        assert_ne!(recovery_digest(&user, code), recovery_digest(&UserId::generate(), code));
        assert!(EnteredCode::parse("123 456") == EnteredCode::OneTime("123456".to_owned()));
        assert!(matches!(EnteredCode::parse(code), EnteredCode::Recovery(text) if text.len() == RECOVERY_CHARS));
    }
}

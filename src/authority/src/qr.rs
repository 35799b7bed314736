//! The QR value: a compressed intent JWT as a decimal number, because a QR code stores digits more densely than
//! letters.
//!
//! ISO-8859-1 bytes and a byte 0xFF → gzip → unsigned big-endian integer → decimal digits.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use num_bigint::BigUint;
use sakshi_domain::limits::{INTENT_BYTES_MAX, QR_DIGITS_MAX};

/// The byte that is appended to the JWT before compression.
const END_MARK: u8 = 0xFF;

/// The reason why a QR value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QrError {
    /// The value is not a decimal number.
    #[error("the QR value is not a decimal number")]
    NotDigits,
    /// The value has more digits than a QR code, or more text than an intent.
    #[error("the QR value is too long")]
    TooLong,
    /// The number is not a gzip stream.
    #[error("the QR value does not decompress")]
    NotGzip,
}

/// Encodes an intent JWT as decimal digits. Characters outside ISO-8859-1, which a JWT does not contain, become `?`.
#[must_use]
pub fn qr_digits(jwt: &str) -> String {
    let mut latin: Vec<u8> = jwt.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
    latin.push(END_MARK);
    let mut gzip = GzEncoder::new(Vec::with_capacity(latin.len()), Compression::best());
    // Writing into a vector cannot fail.
    let compressed = gzip.write_all(&latin).and_then(|()| gzip.finish()).unwrap_or_default();
    BigUint::from_bytes_be(&compressed).to_str_radix(10)
}

/// Builds the URL in the QR code: `{qr_host}/getIntent?value=<digits>`.
#[must_use]
pub fn qr_payload(qr_host: &str, jwt: &str) -> String {
    format!("{}/getIntent?value={}", qr_host.trim_end_matches('/'), qr_digits(jwt))
}

/// Reads the intent JWT from a QR payload or from its digits.
///
/// # Errors
/// [`QrError`] if the value is not a number, not gzip, or too long.
pub fn decode_qr_payload(payload: &str) -> Result<String, QrError> {
    let digits = payload.rsplit_once("value=").map_or(payload, |(_, digits)| digits);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QrError::NotDigits);
    }
    if digits.len() > QR_DIGITS_MAX {
        return Err(QrError::TooLong);
    }
    let compressed = BigUint::parse_bytes(digits.as_bytes(), 10).ok_or(QrError::NotDigits)?.to_bytes_be();
    let mut latin = Vec::new();
    // The intent, the end mark, and one byte that shows that there is more.
    let bytes_read_max = INTENT_BYTES_MAX as u64 + 2;
    let gzip = GzDecoder::new(compressed.as_slice());
    gzip.take(bytes_read_max).read_to_end(&mut latin).map_err(|_| QrError::NotGzip)?;
    let text = latin.strip_suffix(&[END_MARK]).unwrap_or(&latin);
    if text.len() > INTENT_BYTES_MAX {
        return Err(QrError::TooLong);
    }
    Ok(text.iter().copied().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_payload_is_the_get_intent_url_of_the_host_with_digits() {
        let payload = qr_payload("https://qr.example/", "aa.bb.cc");
        let digits = payload.strip_prefix("https://qr.example/getIntent?value=").unwrap();
        assert!(digits.bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!(decode_qr_payload(&payload).unwrap(), "aa.bb.cc");
        assert_eq!(decode_qr_payload(digits).unwrap(), "aa.bb.cc");
    }

    #[test]
    fn the_number_is_the_gzip_of_the_jwt_and_an_end_mark() {
        let bytes = BigUint::parse_bytes(qr_digits("a.b.c").as_bytes(), 10).unwrap().to_bytes_be();
        let mut plain = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, b"a.b.c\xff");
    }

    #[test]
    fn at_most_one_end_mark_is_stripped() {
        let encode = |plain: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(plain).unwrap();
            BigUint::from_bytes_be(&gzip.finish().unwrap()).to_string()
        };
        assert_eq!(decode_qr_payload(&encode(b"a.b.c")).unwrap(), "a.b.c");
        assert_eq!(decode_qr_payload(&encode(b"a.b.c\xff\xff")).unwrap(), "a.b.c\u{ff}");
    }

    #[test]
    fn a_small_number_that_decompresses_to_a_huge_text_is_refused() {
        let small_number = qr_digits(&"a".repeat(1_000_000));
        assert!(small_number.len() < QR_DIGITS_MAX);
        assert_eq!(decode_qr_payload(&small_number), Err(QrError::TooLong));
        let longest = "a".repeat(INTENT_BYTES_MAX);
        assert_eq!(decode_qr_payload(&qr_digits(&longest)).as_deref(), Ok(&*longest));
        assert_eq!(decode_qr_payload(&qr_digits(&format!("{longest}a"))), Err(QrError::TooLong));
    }

    #[test]
    fn the_limit_on_the_text_applies_with_and_without_the_end_mark() {
        let encode = |length: usize, mark: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&[&b"a".repeat(length)[..], mark].concat()).unwrap();
            BigUint::from_bytes_be(&gzip.finish().unwrap()).to_string()
        };
        for mark in [&[END_MARK][..], b""] {
            assert_eq!(decode_qr_payload(&encode(INTENT_BYTES_MAX, mark)).unwrap().len(), INTENT_BYTES_MAX);
            assert_eq!(decode_qr_payload(&encode(INTENT_BYTES_MAX + 1, mark)), Err(QrError::TooLong));
        }
        assert_eq!(
            decode_qr_payload(&encode(INTENT_BYTES_MAX, &[END_MARK, b'a'])),
            Err(QrError::TooLong),
            "the text continues after the mark"
        );
    }

    #[test]
    fn malformed_qr_values_are_refused() {
        assert_eq!(decode_qr_payload(""), Err(QrError::NotDigits));
        assert_eq!(decode_qr_payload("https://qr.example/getIntent?value="), Err(QrError::NotDigits));
        for text in ["12a", "1_2", "+12", "-12"] {
            assert_eq!(decode_qr_payload(text), Err(QrError::NotDigits));
        }
        assert_eq!(decode_qr_payload("0"), Err(QrError::NotGzip));
        assert_eq!(decode_qr_payload("123456789"), Err(QrError::NotGzip));
        assert_eq!(decode_qr_payload(&"9".repeat(QR_DIGITS_MAX)), Err(QrError::NotGzip));
        assert_eq!(decode_qr_payload(&"9".repeat(QR_DIGITS_MAX + 1)), Err(QrError::TooLong));
        let digits = qr_digits("aa.bb.cc");
        assert!(decode_qr_payload(&digits[..digits.len() - 2]).is_err());
    }

    proptest! {
        #[test]
        fn every_jwt_survives_the_round_trip(jwt in "[A-Za-z0-9_.-]{0,1500}") {
            prop_assert_eq!(decode_qr_payload(&qr_payload("https://qr.example", &jwt)).unwrap(), jwt);
        }

        #[test]
        fn no_payload_makes_the_reader_panic(payload in ".{0,200}", digits in "[0-9]{0,400}") {
            let _ = decode_qr_payload(&payload);
            let _ = decode_qr_payload(&digits);
        }
    }
}

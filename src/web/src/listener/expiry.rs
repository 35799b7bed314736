//! Reads when a certificate expires, which the TLS library does not check for the server's own certificate. The library
//! checks everything else of X.509.

use sakshi_domain::time::Timestamp;

/// DER tag of the version of a certificate.
const VERSION: u8 = 0xa0;
/// DER tag of a time with a year of two digits.
const UTC_TIME: u8 = 0x17;
/// DER tag of a time with a year of four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the end of a DER certificate's validity (RFC 5280, section 4.1); `None` if it cannot be read.
pub(super) fn expires_at(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = read_element(certificate)?;
    let (_, mut fields, _) = read_element(certificate)?;
    if fields.first() == Some(&VERSION) {
        (_, _, fields) = read_element(fields)?;
    }
    // Serial number, algorithm and issuer.
    for _ in 0..3 {
        (_, _, fields) = read_element(fields)?;
    }
    let (_, validity, _) = read_element(fields)?;
    let (_, _, end) = read_element(validity)?;
    let (tag, time, _) = read_element(end)?;
    let time = std::str::from_utf8(time).ok().filter(|time| time.is_ascii())?;
    let time = match tag {
        // Years below 50 are in this century (RFC 5280, section 4.1.2.5.1).
        UTC_TIME => format!("{}{time}", if time.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    let two_digits = |from: usize| time.get(from..from + 2);
    let (year, month, day) = (time.get(..4)?, two_digits(4)?, two_digits(6)?);
    Timestamp::parse_iso8601(&format!(
        "{year}-{month}-{day}T{}:{}:{}Z",
        two_digits(8)?,
        two_digits(10)?,
        two_digits(12)?
    ))
}

/// Returns the tag and the contents of the first element, and the remaining bytes.
fn read_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (length, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(length, _)| length.len() <= 3)?;
        (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((*tag, contents, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 4);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_expiry_is_read_in_both_formats_of_a_time() {
        for (year, end) in [(2031, "2031-03-04T00:00:00Z"), (2061, "2061-03-04T00:00:00Z")] {
            assert_eq!(expires_at(&certificate(year)), Timestamp::parse_iso8601(end));
        }
    }

    #[test]
    fn a_truncated_certificate_is_not_read_and_a_corrupt_one_does_not_panic() {
        let whole = certificate(2031);
        for length in 0..whole.len() {
            assert_eq!(expires_at(&whole[..length]), None);
            let mut changed = whole.clone();
            changed[length] ^= 0xff;
            let _ = expires_at(&changed);
        }
    }
}

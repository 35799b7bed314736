//! GSTIN, the number of a business that pays goods and services tax.

use super::{Check, Detail, DetailForm, NumberForm};

pub(super) const GST: Check = Check {
    name: "gst",
    path: "/api/v1/gst/verify",
    title: "Gst",
    object: "a GSTIN",
    subject: "GSTIN",
    needs_consent: true,
    numbers: &[NumberForm {
        field: "gstin",
        refusal: "malformed_gstin",
        rule: "15 characters: state code (2 digits), PAN (10), entity code, one letter or digit, check character",
        example: "27ABCPE1234F1ZB",
        pattern: "^[0-9]{2}[A-Za-z]{5}[0-9]{4}[A-Za-z][1-9A-Za-z][0-9A-Za-z]{2}$",
        is_valid: is_gstin,
    }],
    compared: &[],
    details: &[
        Detail {
            field: "legal_name",
            source_field: "legal_name",
            form: DetailForm::Text,
            about: "The name under which the business is registered.",
            example: "Asha Rao",
        },
        Detail {
            field: "trade_name",
            source_field: "trade_name",
            form: DetailForm::Text,
            about: "The name under which the business trades.",
            example: "Example Stores",
        },
    ],
};

/// Returns true if the state code is not 00 and the last character is the check digit of the others.
fn is_gstin(text: &str) -> bool {
    let (body, last) = text.split_at(text.len() - 1);
    !body.starts_with("00") && check_digit(body) == last.chars().next()
}

/// Computes the base-36 check digit of digits and capitals: every second value is doubled, and the base-36 digits of
/// all values are added.
fn check_digit(text: &str) -> Option<char> {
    let mut sum = 0;
    for (index, character) in text.chars().enumerate() {
        let product = character.to_digit(36)? * if index % 2 == 0 { 1 } else { 2 };
        sum += product / 36 + product % 36;
    }
    char::from_digit((36 - sum % 36) % 36, 36).map(|digit| digit.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GSTINs that businesses publish.
    const KNOWN: [&str; 5] =
        ["27AAPFU0939F1ZV", "29AAGCB7383J1Z4", "24AAACC1206D1ZM", "09AAACH7409R1ZZ", "27AASCS2460H1Z0"];

    #[test]
    fn a_gstin_has_a_state_code_a_pan_and_a_check_digit() {
        let form = &GST.numbers[0];
        for known in KNOWN {
            assert_eq!(form.parse(&known.to_ascii_lowercase()).unwrap().as_str(), known);
        }
        for text in [
            "",
            "27AAPFU0939F1Z",
            "27AAPFU0939F1ZVV",
            "27AAPFU0939F1ZÉ",
            "A7AAPFU0939F1ZV",
            "27AAPF10939F1ZV",
            "27AAPFU0939F1Z-",
        ] {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
        // The check digit is right; the state, the registration or the PAN is not.
        for text in ["00AAPFU0939F1Z", "27AAPFU0939F0Z", "27AAPF10939F1Z"] {
            let text = format!("{text}{}", check_digit(text).unwrap());
            assert_eq!(form.parse(&text), Err(form), "{text}");
        }
    }

    #[test]
    fn the_check_digit_detects_a_wrong_character_and_a_transposition() {
        const CHARACTERS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        for known in KNOWN {
            for at in 0..15 {
                for wrong in CHARACTERS.chars().filter(|wrong| !known[at..].starts_with(*wrong)) {
                    let text = format!("{}{wrong}{}", &known[..at], &known[at + 1..]);
                    assert!(!is_gstin(&text), "{text}");
                }
            }
        }
        assert!(!is_gstin("29AAGCB3783J1Z4"), "7 and 3 are transposed");
    }
}

//! IFSC, the code of a bank branch. It is not personal data.

use super::{Check, Detail, DetailForm, NumberForm};

pub(super) const IFSC: Check = Check {
    name: "ifsc",
    path: "/api/v1/ifsc/verify",
    title: "Ifsc",
    object: "an IFSC",
    subject: "IFSC",
    needs_consent: false,
    numbers: &[NumberForm {
        field: "ifsc",
        refusal: "malformed_ifsc",
        rule: "four letters, a zero, and six letters or digits",
        example: "EXMP0001234",
        pattern: "^[A-Za-z]{4}0[0-9A-Za-z]{6}$",
        is_valid: |_| true,
    }],
    compared: &[],
    details: &[
        Detail {
            field: "bank",
            source_field: "bank",
            form: DetailForm::Text,
            about: "The name of the bank.",
            example: "Example Bank",
        },
        Detail {
            field: "branch",
            source_field: "branch",
            form: DetailForm::Text,
            about: "The name of the branch.",
            example: "First Example Street",
        },
        Detail {
            field: "city",
            source_field: "city",
            form: DetailForm::Text,
            about: "The city of the branch.",
            example: "Demopura",
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ifsc_is_four_letters_a_zero_and_six_letters_or_digits() {
        let form = &IFSC.numbers[0];
        assert_eq!(form.parse("exmp0ab12cd").unwrap().as_str(), "EXMP0AB12CD");
        for text in [
            "",
            "EXMP000123",
            "EXMP00012345",
            "EXMP1001234",
            "EXMPO001234",
            "EXM00001234",
            "EXMP0 01234",
            "EXMP0-01234",
        ] {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
    }
}

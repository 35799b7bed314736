//! Voter ID: the EPIC number on the photo identity card of a voter.

use super::{Check, Detail, DetailForm, NumberForm};

pub(super) const VOTER_ID: Check = Check {
    name: "voter_id",
    path: "/api/v1/voter-id/verify",
    title: "VoterId",
    object: "a voter ID",
    subject: "Voter ID",
    needs_consent: true,
    numbers: &[NumberForm {
        field: "epic_number",
        refusal: "malformed_epic_number",
        rule: "three letters and seven digits",
        example: "ABC1234567",
        pattern: "^[A-Za-z]{3}[0-9]{7}$",
        is_valid: |_| true,
    }],
    compared: &[],
    details: &[
        Detail {
            field: "name",
            source_field: "name",
            form: DetailForm::Text,
            about: "The voter's name.",
            example: "Asha Rao",
        },
        Detail {
            field: "state",
            source_field: "state",
            form: DetailForm::Text,
            about: "The state of the electoral roll.",
            example: "Examplestate",
        },
        Detail {
            field: "constituency",
            source_field: "constituency",
            form: DetailForm::Text,
            about: "The assembly constituency.",
            example: "Demopura North",
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epic_number_is_three_letters_and_seven_digits() {
        let form = &VOTER_ID.numbers[0];
        assert_eq!(form.parse("abc1234567").unwrap().as_str(), "ABC1234567");
        for text in ["", "ABC123456", "ABC12345678", "AB12345678", "ABCD123456", "ABC12345 7", "ABC/123456"] {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
    }
}

//! A bank account: the account number and the IFSC of the branch.

use super::ifsc::IFSC;
use super::{Check, Compared, ComparedKind, Detail, DetailForm, NumberForm};

pub(super) const BANK_ACCOUNT: Check = Check {
    name: "bank_account",
    path: "/api/v1/bank-account/verify",
    title: "BankAccount",
    object: "a bank account",
    subject: "Account",
    needs_consent: true,
    numbers: &[
        NumberForm {
            field: "account_number",
            refusal: "malformed_account_number",
            rule: "9 to 18 digits",
            example: "123456789012",
            pattern: "^[0-9]{9,18}$",
            is_valid: |_| true,
        },
        IFSC.numbers[0],
    ],
    compared: &[Compared { field: "name", source_field: "name", kind: ComparedKind::Name }],
    details: &[Detail {
        field: "name_match",
        source_field: "name_match",
        form: DetailForm::Match("name"),
        about: "True if `name` is the name of the account holder; null if the request has no `name`.",
        example: "",
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_number_has_nine_to_eighteen_digits() {
        let form = &BANK_ACCOUNT.numbers[0];
        for text in ["012345678", "123456789012345678"] {
            assert_eq!(form.parse(text).unwrap().as_str(), text);
        }
        for text in
            ["", "12345678", "1234567890123456789", "12345 6789", "12345678A", "-123456789", "１２３４５６７８９"]
        {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
    }
}

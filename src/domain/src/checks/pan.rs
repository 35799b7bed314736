//! PAN, the number of a taxpayer (specification, "Other shown endpoints").

use super::{Check, Compared, ComparedKind, Detail, DetailForm, NumberForm};

pub(super) const PAN: Check = Check {
    name: "pan",
    path: "/api/v1/pan/verify",
    title: "Pan",
    object: "a PAN",
    subject: "PAN",
    needs_consent: true,
    numbers: &[NumberForm {
        field: "pan",
        refusal: "malformed_pan",
        rule: "five letters, four digits and a letter",
        example: "ABCPE1234F",
        pattern: "^[A-Za-z]{5}[0-9]{4}[A-Za-z]$",
        is_valid: |_| true,
    }],
    compared: &[
        Compared { field: "name_as_per_pan", source_field: "name", kind: ComparedKind::Name },
        Compared { field: "date_of_birth", source_field: "date_of_birth", kind: ComparedKind::Birth },
    ],
    details: &[
        Detail {
            field: "category",
            source_field: "category",
            form: DetailForm::Word(&[
                "individual",
                "company",
                "hindu_undivided_family",
                "firm",
                "association_of_persons",
                "body_of_individuals",
                "trust",
                "government",
                "local_authority",
                "artificial_juridical_person",
            ]),
            about: "The kind of taxpayer, such as `individual` or `company`.",
            example: "individual",
        },
        Detail {
            field: "name_as_per_pan_match",
            source_field: "name_match",
            form: DetailForm::Match("name"),
            about: "True if `name_as_per_pan` is the name on record; null if the request has no such field.",
            example: "",
        },
        Detail {
            field: "date_of_birth_match",
            source_field: "date_of_birth_match",
            form: DetailForm::Match("date_of_birth"),
            about: "True if `date_of_birth` is the date on record; null if the request has no such field.",
            example: "",
        },
        Detail {
            field: "nationalid_seeding_status",
            source_field: "nationalid_seeding_status",
            form: DetailForm::Word(&["y", "n", "na"]),
            about: "`y` if the PAN is linked with a national ID, `n` if not, `na` if it need not be.",
            example: "y",
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pan_is_five_letters_four_digits_and_a_letter() {
        let form = &PAN.numbers[0];
        assert_eq!(form.parse("abcpe1234f").unwrap().as_str(), "ABCPE1234F");
        for text in [
            "",
            "ABCPE1234",
            "ABCPE12345",
            "ABCPE1234FF",
            "1BCPE1234F",
            "ABCPE12F4F",
            "ABCPÉ234F",
            " ABCPE1234",
            "ABC PE1234",
        ] {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
        assert!(!format!("{:?}", form.parse("ABCPE1234F").unwrap()).contains("1234"));
    }
}

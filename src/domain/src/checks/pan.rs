//! PAN, the number of a taxpayer (specification, "Other shown endpoints").

use super::number::is_shaped;
use super::{Check, Compared, ComparedKind, NumberForm, Said, SaidForm};

pub(super) const PAN: Check = Check {
    name: "pan",
    path: "/api/v1/pan/verify",
    title: "Pan",
    noun: "PAN",
    needs_consent: true,
    numbers: &[NumberForm {
        field: "pan",
        refusal: "malformed_pan",
        rule: "five letters, four digits and a letter",
        example: "ABCPE1234F",
        length: (10, 10),
        pattern: "^[A-Za-z]{5}[0-9]{4}[A-Za-z]$",
        fits: is_pan,
    }],
    compared: &[
        Compared { field: "name_as_per_pan", told_as: "name", kind: ComparedKind::Name },
        Compared { field: "date_of_birth", told_as: "date_of_birth", kind: ComparedKind::Birth },
    ],
    said: &[
        Said {
            field: "category",
            told_as: "category",
            form: SaidForm::Word(&[
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
            about: "Who holds it.",
            example: "individual",
        },
        Said {
            field: "name_as_per_pan_match",
            told_as: "name_match",
            form: SaidForm::Match("name"),
            about: "Whether the name is the one on record.",
            example: "",
        },
        Said {
            field: "date_of_birth_match",
            told_as: "date_of_birth_match",
            form: SaidForm::Match("date_of_birth"),
            about: "Whether the date of birth is the one on record.",
            example: "",
        },
        Said {
            field: "nationalid_seeding_status",
            told_as: "nationalid_seeding_status",
            form: SaidForm::Word(&["y", "n", "na"]),
            about: "Whether it is linked with a national ID: `y`, `n`, or `na` where it need not be.",
            example: "y",
        },
    ],
};

/// Whether it is one; the number of a business has one inside.
pub(super) fn is_pan(text: &str) -> bool {
    is_shaped(text, "AAAAA9999A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pan_is_five_letters_four_digits_and_a_letter() {
        let form = &PAN.numbers[0];
        assert_eq!(form.parse("abcpe1234f").unwrap().as_str(), "ABCPE1234F");
        for text in ["", "ABCPE1234", "ABCPE12345", "ABCPE1234FF", "1BCPE1234F", "ABCPE12F4F", "ABCPÉ234F", " ABCPE1234", "ABC PE1234"] {
            assert_eq!(form.parse(text), Err(form), "{text}");
        }
        assert!(!format!("{:?}", form.parse("ABCPE1234F").unwrap()).contains("1234"));
    }
}

//! Selects the requested claims of a credential, under their canonical names and in one format each. Id
//! numbers are dropped everywhere.

use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::flow::dates::Day;
use sakshi_domain::transaction::VerifiedClaims;
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;
use crate::claims::{credential_name, from_credential_name};

/// Names of id numbers, in lower case.
const ID_NUMBERS: [&str; 3] = ["uid", "vid", "maskeduid"];

/// The requested claims of a credential.
pub(super) struct Requested {
    pub(super) claims: VerifiedClaims,
    /// Absent, null or blank.
    pub(super) missing: ClaimSet,
    /// Present, but in an unknown format.
    pub(super) malformed: ClaimSet,
}

/// Selects the requested claims of a processed payload.
///
/// # Errors
/// A claim, requested or not, occurs in two spellings, so that it is ambiguous.
pub(super) fn requested_claims(
    payload: Map<String, Value>,
    requested: ClaimSet,
) -> Result<Requested, CredentialRefusal> {
    let mut kept = Map::new();
    let mut malformed = Vec::new();
    let mut seen = Vec::new();
    for (name, value) in payload {
        let Some(claim) = from_credential_name(&name) else { continue };
        if seen.contains(&claim) {
            return Err(CredentialRefusal::ClaimRepeated);
        }
        seen.push(claim);
        if !requested.contains(claim) {
            continue;
        }
        if is_blank(&value) {
            continue;
        }
        match normalised(claim, without_id_numbers(value)) {
            Some(value) => drop(kept.insert(credential_name(claim).to_owned(), value)),
            None => malformed.push(claim),
        }
    }
    let malformed: ClaimSet = malformed.into_iter().collect();
    let missing = requested
        .iter()
        .filter(|claim| !kept.contains_key(credential_name(*claim)) && !malformed.contains(*claim))
        .collect();
    Ok(Requested { claims: VerifiedClaims::new(kept), missing, malformed })
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// Returns true for the name of an id number.
pub(super) fn is_id_number(name: &str) -> bool {
    ID_NUMBERS.contains(&name.to_ascii_lowercase().as_str())
}

fn without_id_numbers(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(name, _)| !is_id_number(name));
            Value::Object(kept.map(|(name, value)| (name, without_id_numbers(value))).collect())
        }
        Value::Array(array) => Value::Array(array.into_iter().map(without_id_numbers).collect()),
        scalar => scalar,
    }
}

/// Converts date of birth, gender and flags to the format that the API promises; `None` when the format is
/// unknown. Other claims are unchanged.
fn normalised(claim: Claim, value: Value) -> Option<Value> {
    match claim {
        Claim::Dob => date_of_birth(value.as_str()?.trim()).map(Value::String),
        Claim::Gender => {
            let first = value.as_str()?.trim().chars().next().filter(char::is_ascii_alphabetic)?;
            Some(Value::from(first.to_ascii_uppercase().to_string()))
        }
        Claim::AgeAbove18 | Claim::AgeAbove50 | Claim::AgeAbove60 | Claim::AgeAbove75 | Claim::NriStatus => {
            value.as_bool().or_else(|| yes_or_no(value.as_str()?.trim())).map(Value::Bool)
        }
        _ => Some(value),
    }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "y" => Some(true),
        "no" | "false" | "n" => Some(false),
        _ => None,
    }
}

/// Reads a complete date, or only a year, because some residents do not know more.
fn date_of_birth(text: &str) -> Option<String> {
    let year = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if year { Some(text.to_owned()) } else { complete_date(text) }
}

/// Converts `YYYY-MM-DD`, `dd/MM/yyyy` or `dd-MM-yyyy` to `YYYY-MM-DD`; `None` when there is no such day.
fn complete_date(text: &str) -> Option<String> {
    let separator = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| matches!(c, '-' | '/'))?;
    let mut parts = text.split(separator);
    let (Some(first), Some(month), Some(last), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    let (year, day) = match (first.len(), last.len(), separator) {
        (4, 2, '-') => (first, last),
        (2, 4, _) => (last, first),
        _ => return None,
    };
    let date = format!("{year}-{month}-{day}");
    Day::parse(&date).is_ok().then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(claim: Claim, value: Value) -> Requested {
        let payload = [(credential_name(claim).to_owned(), value)].into_iter().collect();
        requested_claims(payload, [claim].into_iter().collect()).unwrap()
    }

    fn kept(claim: Claim, value: Value) -> Value {
        let Requested { claims, missing, malformed } = judged(claim, value);
        assert!(missing.is_empty() && malformed.is_empty());
        claims.as_map()[credential_name(claim)].clone()
    }

    fn is_malformed(claim: Claim, value: Value) -> bool {
        let Requested { claims, missing, malformed } = judged(claim, value);
        missing.is_empty() && claims.as_map().is_empty() && malformed.contains(claim)
    }

    #[test]
    fn a_complete_date_of_birth_is_written_year_first_and_a_bare_year_stays() {
        for (given, expected) in [
            ("1990-02-28", "1990-02-28"),
            (" 28/02/1990 ", "1990-02-28"),
            ("28-02-1990", "1990-02-28"),
            ("29-02-2000", "2000-02-29"),
            ("1990", "1990"),
            (" 1990 ", "1990"),
        ] {
            assert_eq!(kept(Claim::Dob, json!(given)), json!(expected), "{given}");
        }
    }

    #[test]
    fn a_date_of_birth_that_is_no_day_of_the_calendar_is_malformed() {
        for given in [
            "31/02/1990",
            "29-02-1900",
            "1990/02/28",
            "1990-13-01",
            "00-01-1990",
            "1-2-1990",
            "1990-1-2",
            "+1-02-1990",
            "99/99/9999",
            "199",
            "19900102",
            "+990",
            "abc",
            "é",
            "1990-02-28T00:00:00Z",
        ] {
            assert!(is_malformed(Claim::Dob, json!(given)), "{given}");
        }
        for given in [json!(1990), json!(19_900_102), json!(true), json!(["1990-02-28"]), json!({"year": 1990})] {
            assert!(is_malformed(Claim::Dob, given.clone()), "{given}");
        }
    }

    #[test]
    fn gender_is_one_upper_case_letter_and_what_has_none_is_malformed() {
        for (given, expected) in [("M", "M"), (" f ", "F"), ("Transgender", "T"), ("male", "M")] {
            assert_eq!(kept(Claim::Gender, json!(given)), json!(expected));
        }
        for given in [json!("स्त्री"), json!("é"), json!("1"), json!("-"), json!(1), json!(true), json!(["M"])]
        {
            assert!(is_malformed(Claim::Gender, given.clone()), "{given}");
        }
    }

    #[test]
    fn ages_and_residence_are_booleans_and_what_means_neither_is_malformed() {
        for claim in [Claim::AgeAbove18, Claim::AgeAbove50, Claim::AgeAbove60, Claim::AgeAbove75, Claim::NriStatus] {
            for (given, expected) in [
                (json!("Yes"), true),
                (json!("true"), true),
                (json!(true), true),
                (json!("No"), false),
                (json!("FALSE"), false),
                (json!(false), false),
            ] {
                assert_eq!(kept(claim, given), json!(expected));
            }
            for given in
                [json!("unknown"), json!("maybe"), json!("1"), json!(1), json!(0), json!([true]), json!({"over": true})]
            {
                assert!(is_malformed(claim, given.clone()), "{given}");
            }
        }
    }

    #[test]
    fn other_claims_stay_as_the_issuer_signed_them() {
        for (claim, given) in
            [(Claim::Name, json!("No")), (Claim::Pincode, json!(560_001)), (Claim::Address, json!({"house": "7"}))]
        {
            assert_eq!(kept(claim, given.clone()), given);
        }
    }

    #[test]
    fn null_and_blank_claims_are_missing() {
        let payload = json!({"residentName": null, "dob": " ", "gender": "M"});
        let requested: ClaimSet = [Claim::Name, Claim::Dob, Claim::Gender, Claim::Email].into_iter().collect();
        let Requested { claims, missing, .. } =
            requested_claims(payload.as_object().unwrap().clone(), requested).unwrap();
        assert_eq!(missing, [Claim::Name, Claim::Dob, Claim::Email].into_iter().collect());
        assert_eq!(claims.as_map().len(), 1);
    }

    #[test]
    fn id_numbers_and_what_was_not_asked_for_are_dropped() {
        let payload = json!({
            "ResidentName": "Asha", "dob": "1990-01-01", "uid": "1", "UID": "2", "vid": "3", "maskedUID": "4",
            "localVtc": "x",
            "address": {"house": "7", "UID": "5", "inner": [{"Vid": "6", "floor": 2}]},
        });
        let requested: ClaimSet = [Claim::Name, Claim::Address].into_iter().collect();
        let Requested { claims, missing, .. } =
            requested_claims(payload.as_object().unwrap().clone(), requested).unwrap();
        let expected = json!({"residentName": "Asha", "address": {"house": "7", "inner": [{"floor": 2}]}});
        assert_eq!(json!(claims.as_map()), expected);
        assert!(missing.is_empty());
    }

    #[test]
    fn a_claim_in_two_spellings_is_refused_whether_or_not_it_was_asked_for() {
        for (one, other) in [("residentName", "ResidentName"), ("dob", "Dob"), ("isNRI", "IsNRI")] {
            let payload = json!({one: "Asha", other: "Asha"});
            let requested = requested_claims(payload.as_object().unwrap().clone(), [Claim::Name].into_iter().collect());
            assert_eq!(requested.err(), Some(CredentialRefusal::ClaimRepeated), "{one}");
        }
    }
}

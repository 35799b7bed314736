//! Selects the requested claims of a credential, under canonical names and in canonical formats. Id numbers are
//! dropped everywhere.

use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::flow::dates::Day;
use sakshi_domain::transaction::VerifiedClaims;
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;
use crate::claims::{credential_name, from_credential_name};

/// Names of id numbers, in lower case.
const ID_NUMBERS: [&str; 3] = ["uid", "vid", "maskeduid"];

/// The requested claims of a credential.
pub(super) struct RequestedClaims {
    pub(super) claims: VerifiedClaims,
    /// RequestedClaims claims that are absent, null or blank.
    pub(super) missing: ClaimSet,
    /// RequestedClaims claims in an unknown format.
    pub(super) malformed: ClaimSet,
}

/// Selects the requested claims of a processed payload.
///
/// # Errors
/// [`CredentialRefusal::ClaimRepeated`] if a claim, requested or not, occurs in two spellings and is therefore
/// ambiguous.
pub(super) fn requested_claims(
    payload: Map<String, Value>,
    requested: ClaimSet,
) -> Result<RequestedClaims, CredentialRefusal> {
    let mut selected = Map::new();
    let mut malformed = Vec::new();
    let mut present = Vec::new();
    for (name, value) in payload {
        let Some(claim) = from_credential_name(&name) else { continue };
        if present.contains(&claim) {
            return Err(CredentialRefusal::ClaimRepeated);
        }
        present.push(claim);
        if !requested.contains(claim) {
            continue;
        }
        if is_blank(&value) {
            continue;
        }
        match normalise(claim, without_id_numbers(value)) {
            Some(value) => drop(selected.insert(credential_name(claim).to_owned(), value)),
            None => malformed.push(claim),
        }
    }
    let malformed: ClaimSet = malformed.into_iter().collect();
    let missing = requested
        .iter()
        .filter(|claim| !selected.contains_key(credential_name(*claim)) && !malformed.contains(*claim))
        .collect();
    Ok(RequestedClaims { claims: VerifiedClaims::new(selected), missing, malformed })
}

/// Returns true for null, and for a text without visible characters.
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

/// Removes the members with the names of id numbers, at any depth.
fn without_id_numbers(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let members = object.into_iter().filter(|(name, _)| !is_id_number(name));
            Value::Object(members.map(|(name, value)| (name, without_id_numbers(value))).collect())
        }
        Value::Array(array) => Value::Array(array.into_iter().map(without_id_numbers).collect()),
        scalar => scalar,
    }
}

/// Converts date of birth, gender and flags to the format of the API; `None` if the format is unknown. Other
/// claims are unchanged.
fn normalise(claim: Claim, value: Value) -> Option<Value> {
    match claim {
        Claim::Dob => parse_date_of_birth(value.as_str()?.trim()).map(Value::String),
        Claim::Gender => {
            let first = value.as_str()?.trim().chars().next().filter(char::is_ascii_alphabetic)?;
            Some(Value::from(first.to_ascii_uppercase().to_string()))
        }
        Claim::AgeAbove18 | Claim::AgeAbove50 | Claim::AgeAbove60 | Claim::AgeAbove75 | Claim::NriStatus => {
            value.as_bool().or_else(|| parse_flag(value.as_str()?.trim())).map(Value::Bool)
        }
        _ => Some(value),
    }
}

fn parse_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "y" => Some(true),
        "no" | "false" | "n" => Some(false),
        _ => None,
    }
}

/// Reads a complete date, or only a year: some people do not know their exact date of birth.
fn parse_date_of_birth(text: &str) -> Option<String> {
    let is_year = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_year { Some(text.to_owned()) } else { parse_complete_date(text) }
}

/// Converts `YYYY-MM-DD`, `dd/MM/yyyy` or `dd-MM-yyyy` to `YYYY-MM-DD`; `None` if there is no such day.
fn parse_complete_date(text: &str) -> Option<String> {
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

    /// Requests one claim of a payload that has it with this value.
    fn request(claim: Claim, value: Value) -> RequestedClaims {
        let payload = [(credential_name(claim).to_owned(), value)].into_iter().collect();
        requested_claims(payload, [claim].into_iter().collect()).unwrap()
    }

    fn normalised_value(claim: Claim, value: Value) -> Value {
        let RequestedClaims { claims, missing, malformed } = request(claim, value);
        assert!(missing.is_empty() && malformed.is_empty());
        claims.as_map()[credential_name(claim)].clone()
    }

    fn is_malformed(claim: Claim, value: Value) -> bool {
        let RequestedClaims { claims, missing, malformed } = request(claim, value);
        missing.is_empty() && claims.as_map().is_empty() && malformed.contains(claim)
    }

    #[test]
    fn a_date_of_birth_is_a_date_or_a_year() {
        for (input, expected) in [
            ("1990-02-28", "1990-02-28"),
            (" 28/02/1990 ", "1990-02-28"),
            ("28-02-1990", "1990-02-28"),
            ("29-02-2000", "2000-02-29"),
            ("1990", "1990"),
            (" 1990 ", "1990"),
        ] {
            assert_eq!(normalised_value(Claim::Dob, json!(input)), json!(expected), "{input}");
        }
    }

    #[test]
    fn a_date_of_birth_that_is_not_a_calendar_day_is_malformed() {
        for input in [
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
            assert!(is_malformed(Claim::Dob, json!(input)), "{input}");
        }
        for input in [json!(1990), json!(19_900_102), json!(true), json!(["1990-02-28"]), json!({"year": 1990})] {
            assert!(is_malformed(Claim::Dob, input.clone()), "{input}");
        }
    }

    #[test]
    fn gender_is_one_upper_case_letter() {
        for (input, expected) in [("M", "M"), (" f ", "F"), ("Transgender", "T"), ("male", "M")] {
            assert_eq!(normalised_value(Claim::Gender, json!(input)), json!(expected));
        }
        for input in [json!("स्त्री"), json!("é"), json!("1"), json!("-"), json!(1), json!(true), json!(["M"])]
        {
            assert!(is_malformed(Claim::Gender, input.clone()), "{input}");
        }
    }

    #[test]
    fn age_and_residence_flags_are_booleans() {
        for claim in [Claim::AgeAbove18, Claim::AgeAbove50, Claim::AgeAbove60, Claim::AgeAbove75, Claim::NriStatus] {
            for (input, expected) in [
                (json!("Yes"), true),
                (json!("true"), true),
                (json!(true), true),
                (json!("No"), false),
                (json!("FALSE"), false),
                (json!(false), false),
            ] {
                assert_eq!(normalised_value(claim, input), json!(expected));
            }
            for input in
                [json!("unknown"), json!("maybe"), json!("1"), json!(1), json!(0), json!([true]), json!({"over": true})]
            {
                assert!(is_malformed(claim, input.clone()), "{input}");
            }
        }
    }

    #[test]
    fn other_claims_are_unchanged() {
        for (claim, input) in
            [(Claim::Name, json!("No")), (Claim::Pincode, json!(560_001)), (Claim::Address, json!({"house": "7"}))]
        {
            assert_eq!(normalised_value(claim, input.clone()), input);
        }
    }

    #[test]
    fn null_and_blank_claims_are_missing() {
        let payload = json!({"residentName": null, "dob": " ", "gender": "M"});
        let requested: ClaimSet = [Claim::Name, Claim::Dob, Claim::Gender, Claim::Email].into_iter().collect();
        let RequestedClaims { claims, missing, .. } =
            requested_claims(payload.as_object().unwrap().clone(), requested).unwrap();
        assert_eq!(missing, [Claim::Name, Claim::Dob, Claim::Email].into_iter().collect());
        assert_eq!(claims.as_map().len(), 1);
    }

    #[test]
    fn id_numbers_and_claims_that_were_not_requested_are_dropped() {
        let payload = json!({
            "ResidentName": "Asha", "dob": "1990-01-01", "uid": "1", "UID": "2", "vid": "3", "maskedUID": "4",
            "localVtc": "x",
            "address": {"house": "7", "UID": "5", "inner": [{"Vid": "6", "floor": 2}]},
        });
        let requested: ClaimSet = [Claim::Name, Claim::Address].into_iter().collect();
        let RequestedClaims { claims, missing, .. } =
            requested_claims(payload.as_object().unwrap().clone(), requested).unwrap();
        let expected = json!({"residentName": "Asha", "address": {"house": "7", "inner": [{"floor": 2}]}});
        assert_eq!(json!(claims.as_map()), expected);
        assert!(missing.is_empty());
    }

    #[test]
    fn a_claim_in_two_spellings_is_refused_even_if_not_requested() {
        for (first, second) in [("residentName", "ResidentName"), ("dob", "Dob"), ("isNRI", "IsNRI")] {
            let payload = json!({first: "Asha", second: "Asha"});
            let requested = requested_claims(payload.as_object().unwrap().clone(), [Claim::Name].into_iter().collect());
            assert_eq!(requested.err(), Some(CredentialRefusal::ClaimRepeated), "{first}");
        }
    }
}

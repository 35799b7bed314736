//! From what a credential discloses to what is kept: requested claims only, under their canonical
//! names, in one spelling each. Id numbers are dropped wherever they stand.

use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::transaction::VerifiedClaims;
use serde_json::{Map, Value};

use crate::claims::{credential_name, from_credential_name};

/// Names of id numbers, in lower case.
const ID_NUMBERS: [&str; 3] = ["uid", "vid", "maskeduid"];

/// The requested claims of a processed payload, and those that it lacks: absent, null or blank.
pub(super) fn requested_claims(payload: Map<String, Value>, requested: ClaimSet) -> (VerifiedClaims, ClaimSet) {
    let mut kept = Map::new();
    for (name, value) in payload {
        let Some(claim) = from_credential_name(&name).filter(|claim| requested.contains(*claim)) else { continue };
        if !is_blank(&value) {
            kept.insert(credential_name(claim).to_owned(), normalised(claim, without_id_numbers(value)));
        }
    }
    let missing = requested.iter().filter(|claim| !kept.contains_key(credential_name(*claim))).collect();
    (VerifiedClaims::new(kept), missing)
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

fn without_id_numbers(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(name, _)| !ID_NUMBERS.contains(&name.to_ascii_lowercase().as_str()));
            Value::Object(kept.map(|(name, value)| (name, without_id_numbers(value))).collect())
        }
        Value::Array(array) => Value::Array(array.into_iter().map(without_id_numbers).collect()),
        scalar => scalar,
    }
}

/// One spelling for what is seen in several; anything else stays as the issuer signed it.
fn normalised(claim: Claim, value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let text = text.trim();
    let spelled = match claim {
        Claim::Dob => complete_date(text).map(Value::String),
        Claim::Gender => {
            text.chars().next().filter(char::is_ascii_alphabetic).map(|first| Value::from(first.to_ascii_uppercase().to_string()))
        }
        Claim::AgeAbove18 | Claim::AgeAbove50 | Claim::AgeAbove60 | Claim::AgeAbove75 | Claim::NriStatus => {
            yes_or_no(text).map(Value::Bool)
        }
        _ => None,
    };
    spelled.unwrap_or(value)
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "y" => Some(true),
        "no" | "false" | "n" => Some(false),
        _ => None,
    }
}

/// `YYYY-MM-DD` from that, `dd/MM/yyyy` or `dd-MM-yyyy`, when it is a day of the calendar.
fn complete_date(text: &str) -> Option<String> {
    let separator = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| matches!(c, '-' | '/'))?;
    let mut parts = text.split(separator);
    let (Some(first), Some(month), Some(last), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else { return None };
    let (year, day) = match (first.len(), last.len(), separator) {
        (4, 2, '-') => (first, last),
        (2, 4, _) => (last, first),
        _ => return None,
    };
    let digits = |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) || !digits(day, 2) {
        return None;
    }
    let number = |part: &str| part.parse::<u32>().ok();
    let days = days_in_month(number(year)?, number(month)?)?;
    (1..=days).contains(&number(day)?).then(|| format!("{year}-{month}-{day}"))
}

fn days_in_month(year: u32, month: u32) -> Option<u32> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => Some(if leap { 29 } else { 28 }),
        4 | 6 | 9 | 11 => Some(30),
        1..=12 => Some(31),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(claim: Claim, value: Value) -> Value {
        let payload = [(credential_name(claim).to_owned(), value)].into_iter().collect();
        let (claims, _) = requested_claims(payload, [claim].into_iter().collect());
        claims.as_map().get(credential_name(claim)).cloned().unwrap_or(Value::Null)
    }

    #[test]
    fn a_complete_date_of_birth_is_written_year_first_and_any_other_stays() {
        for (given, expected) in [
            ("1990-02-28", "1990-02-28"),
            (" 28/02/1990 ", "1990-02-28"),
            ("28-02-1990", "1990-02-28"),
            ("29-02-2000", "2000-02-29"),
            ("1990", "1990"),
            ("31/02/1990", "31/02/1990"),
            ("1990/02/28", "1990/02/28"),
            ("1990-13-01", "1990-13-01"),
            ("00-01-1990", "00-01-1990"),
            ("1-2-1990", "1-2-1990"),
            ("+1-02-1990", "+1-02-1990"),
            ("é", "é"),
        ] {
            assert_eq!(kept(Claim::Dob, json!(given)), json!(expected), "{given}");
        }
        assert_eq!(kept(Claim::Dob, json!(1990)), json!(1990));
    }

    #[test]
    fn gender_is_one_upper_case_letter() {
        for (given, expected) in [("M", "M"), ("f", "F"), ("Transgender", "T"), ("male", "M"), ("स्त्री", "स्त्री")]
        {
            assert_eq!(kept(Claim::Gender, json!(given)), json!(expected));
        }
    }

    #[test]
    fn ages_and_residence_are_booleans_and_nothing_else_becomes_one() {
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
            assert_eq!(kept(claim, json!("unknown")), json!("unknown"));
        }
        assert_eq!(kept(Claim::Name, json!("No")), json!("No"));
    }

    #[test]
    fn null_and_blank_claims_are_missing() {
        let payload = json!({"residentName": null, "dob": " ", "gender": "M"});
        let requested: ClaimSet = [Claim::Name, Claim::Dob, Claim::Gender, Claim::Email].into_iter().collect();
        let (claims, missing) = requested_claims(payload.as_object().unwrap().clone(), requested);
        assert_eq!(missing, [Claim::Name, Claim::Dob, Claim::Email].into_iter().collect());
        assert_eq!(claims.as_map().len(), 1);
    }

    #[test]
    fn id_numbers_and_what_was_not_asked_for_are_dropped() {
        let payload = json!({
            "ResidentName": "Asha", "dob": "1990-01-01", "uid": "1", "UID": "2", "vid": "3", "maskedUID": "4", "localVtc": "x",
            "address": {"house": "7", "UID": "5", "inner": [{"Vid": "6", "floor": 2}]},
        });
        let requested: ClaimSet = [Claim::Name, Claim::Address].into_iter().collect();
        let (claims, missing) = requested_claims(payload.as_object().unwrap().clone(), requested);
        let expected = json!({"residentName": "Asha", "address": {"house": "7", "inner": [{"floor": 2}]}});
        assert_eq!(json!(claims.as_map()), expected);
        assert!(missing.is_empty());
    }
}

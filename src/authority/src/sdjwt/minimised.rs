//! Reduces a credential to the requested claims, for storage as evidence (protocol, section 2: id numbers are never
//! stored, and claims only if they were requested).

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::limits::CREDENTIAL_VALUES_MAX;
use sakshi_wire::json::ValuesLeft;
use serde_json::Value;

use super::disclosure::{Disclosure, Disclosures};
use super::normalise::is_id_number;
use super::processing;
use super::segments::{Jws, Segments};
use crate::claims::{from_credential_name, is_credential_name};

/// Removes the disclosures of claims that were not requested, and with them the key binding, which covers all
/// disclosures. Returns `None` if such a claim or an id number cannot be removed, because the issuer has signed it in
/// plain text.
#[must_use]
pub fn minimise(credential: &str, requested: ClaimSet) -> Option<String> {
    let segments = Segments::split(credential).ok()?;
    let is_requested = |name: &str| from_credential_name(name).is_some_and(|claim| requested.contains(claim));
    let values_left = ValuesLeft::new(CREDENTIAL_VALUES_MAX);
    let is_wanted = |text: &&&str| match Disclosure::read(text, &values_left) {
        Ok(Disclosure::Member { name, value }) => is_requested(&name) && !has_id_number(&value),
        _ => false,
    };
    let wanted: Vec<&str> = segments.disclosures.iter().filter(is_wanted).copied().collect();
    let values_left = ValuesLeft::new(CREDENTIAL_VALUES_MAX);
    let payload = Jws::read(segments.issuer_jws).ok()?.payload(&values_left).ok()?;
    let payload = processing::process(payload, Disclosures::read(&wanted, &values_left).ok()?).ok()?;
    let is_unwanted = |name: &String| is_credential_name(name) && !is_requested(name);
    if payload.keys().any(is_unwanted) || has_id_number(&Value::Object(payload)) {
        return None;
    }
    if wanted.len() == segments.disclosures.len() {
        return Some(credential.to_owned());
    }
    Some([segments.issuer_jws].into_iter().chain(wanted).flat_map(|part| [part, "~"]).collect())
}

/// Returns true if a member at any depth has the name of an id number.
fn has_id_number(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| is_id_number(name) || has_id_number(value)),
        Value::Array(items) => items.iter().any(has_id_number),
        _ => false,
    }
}

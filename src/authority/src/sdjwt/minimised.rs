//! Reduces a credential to the requested claims, for storage as evidence (protocol, section 2: id numbers are never
//! stored, and claims only if they were requested).

use std::collections::HashSet;

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::limits::CREDENTIAL_VALUES_MAX;
use sakshi_wire::json::ValuesLeft;
use serde_json::Value;

use super::disclosure::{Digest, Disclosure, Disclosures, digest_of};
use super::normalise::is_id_number;
use super::processing::{self, ARRAY_DIGEST, DIGESTS};
use super::segments::{Jws, Segments};
use crate::claims::{from_credential_name, is_credential_name};

/// Removes the disclosures of claims that were not requested and of id numbers, and with them the key binding, which
/// covers all disclosures. Returns `None` if such a claim or an id number cannot be removed, because the issuer has
/// signed it in plain text. The caller has verified the credential.
#[must_use]
pub fn minimise(credential: &str, requested: ClaimSet) -> Option<String> {
    let segments = Segments::split(credential).ok()?;
    let is_requested = |name: &str| from_credential_name(name).is_some_and(|claim| requested.contains(claim));
    let values_left = ValuesLeft::new(CREDENTIAL_VALUES_MAX);
    let payload = Jws::read(segments.issuer_jws).ok()?.payload(&values_left).ok()?;
    let disclosures = Disclosures::read(&segments.disclosures, &values_left).ok()?;
    let mut selection = Selection { disclosures, wanted: HashSet::new() };
    for (name, value) in &payload {
        match value {
            Value::Array(digests) if name == DIGESTS => {
                digests.iter().for_each(|digest| selection.select(digest, is_requested));
            }
            value if is_requested(name) => selection.select_within(value),
            _ => {}
        }
    }
    let is_wanted = |text: &&str| digest_of(text).is_ok_and(|digest| selection.wanted.contains(&digest));
    let wanted: Vec<&str> = segments.disclosures.iter().copied().filter(is_wanted).collect();
    let values_left = ValuesLeft::new(CREDENTIAL_VALUES_MAX);
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

/// Selects the disclosures of requested claims, and those within their values.
struct Selection {
    /// The disclosures that were not reached yet.
    disclosures: Disclosures,
    wanted: HashSet<Digest>,
}

impl Selection {
    /// Selects the disclosure of a digest, with those within its value, unless it is a member whose name is not wanted.
    fn select(&mut self, digest: &Value, is_wanted: impl Fn(&str) -> bool) {
        let Some(text) = digest.as_str() else { return };
        let Ok(digest) = Digest::try_from(text.as_bytes()) else { return };
        let value = match self.disclosures.take(text) {
            Some(Disclosure::Member { name, value }) if is_wanted(&name) => value,
            Some(Disclosure::Element { value }) => value,
            _ => return,
        };
        self.wanted.insert(digest);
        self.select_within(&value);
    }

    /// Selects the disclosures whose digests a value contains, at any depth.
    fn select_within(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::Array(digests) if name == DIGESTS => {
                            digests.iter().for_each(|digest| self.select(digest, |name| !is_id_number(name)));
                        }
                        Value::String(_) if name == ARRAY_DIGEST => self.select(value, |_| false),
                        _ => self.select_within(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.select_within(item)),
            _ => {}
        }
    }
}

/// Returns true if a member at any depth has the name of an id number.
fn has_id_number(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| is_id_number(name) || has_id_number(value)),
        Value::Array(items) => items.iter().any(has_id_number),
        _ => false,
    }
}

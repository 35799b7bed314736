//! Replaces digests by their disclosures (RFC 9901 §7.1), and removes digests without a disclosure.

use std::collections::HashSet;

use sakshi_domain::limits::CREDENTIAL_DEPTH_MAX;
use serde_json::{Map, Value};

use super::disclosure::{Disclosure, Disclosures};
use super::refusal::CredentialRefusal;

const DIGESTS: &str = "_sd";
const HASH_ALGORITHM: &str = "_sd_alg";
const ARRAY_DIGEST: &str = "...";

/// Initial capacity for digests; the authority has forty claims.
const DIGESTS_EXPECTED: usize = 64;

/// Returns the payload with all disclosures in place of their digests.
pub(super) fn process(
    mut payload: Map<String, Value>,
    disclosures: Disclosures,
) -> Result<Map<String, Value>, CredentialRefusal> {
    match payload.remove(HASH_ALGORITHM) {
        None => {}
        Some(Value::String(name)) if name == "sha-256" || name == "SHA-256" => {}
        Some(_) => return Err(CredentialRefusal::HashAlgorithmNotAllowed),
    }
    let mut placing = Placing { disclosures, seen: HashSet::with_capacity(DIGESTS_EXPECTED) };
    let payload = placing.object(payload, 1)?;
    if placing.disclosures.are_all_taken() { Ok(payload) } else { Err(CredentialRefusal::DisclosureUnreferenced) }
}

/// The state of replacing digests.
struct Placing {
    disclosures: Disclosures,
    /// All digests so far, including decoys.
    seen: HashSet<String>,
}

impl Placing {
    fn value(&mut self, value: Value, depth: usize) -> Result<Value, CredentialRefusal> {
        match value {
            Value::Object(object) => self.object(object, depth + 1).map(Value::Object),
            Value::Array(array) => self.array(array, depth + 1).map(Value::Array),
            scalar => Ok(scalar),
        }
    }

    fn object(
        &mut self,
        mut object: Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, CredentialRefusal> {
        check_depth(depth)?;
        if object.contains_key(HASH_ALGORITHM) {
            return Err(CredentialRefusal::HashAlgorithmMisplaced);
        }
        if object.contains_key(ARRAY_DIGEST) {
            return Err(CredentialRefusal::ArrayDigestMalformed);
        }
        let digests = object.remove(DIGESTS);
        for value in object.values_mut() {
            if value.is_object() || value.is_array() {
                *value = self.value(value.take(), depth)?;
            }
        }
        let digests = match digests {
            None => return Ok(object),
            Some(Value::Array(digests)) => digests,
            Some(_) => return Err(CredentialRefusal::DigestsMalformed),
        };
        for digest in digests {
            let Value::String(digest) = digest else { return Err(CredentialRefusal::DigestsMalformed) };
            match self.take(digest)? {
                None => {}
                Some(Disclosure::Element { .. }) => return Err(CredentialRefusal::DisclosureMisplaced),
                Some(Disclosure::Member { name, .. }) if object.contains_key(&name) => {
                    return Err(CredentialRefusal::NameTaken);
                }
                Some(Disclosure::Member { name, value }) => {
                    let value = self.value(value, depth)?;
                    object.insert(name, value);
                }
            }
        }
        Ok(object)
    }

    fn array(&mut self, array: Vec<Value>, depth: usize) -> Result<Vec<Value>, CredentialRefusal> {
        check_depth(depth)?;
        let mut elements = Vec::with_capacity(array.len());
        for element in array {
            match read_element(element)? {
                Element::Plain(value) => elements.push(self.value(value, depth)?),
                Element::Digest(digest) => match self.take(digest)? {
                    None => {}
                    Some(Disclosure::Member { .. }) => return Err(CredentialRefusal::DisclosureMisplaced),
                    Some(Disclosure::Element { value }) => elements.push(self.value(value, depth)?),
                },
            }
        }
        Ok(elements)
    }

    /// Takes the disclosure of a digest, which must not have occurred before.
    fn take(&mut self, digest: String) -> Result<Option<Disclosure>, CredentialRefusal> {
        let disclosure = self.disclosures.take(&digest);
        if self.seen.insert(digest) { Ok(disclosure) } else { Err(CredentialRefusal::DigestRepeated) }
    }
}

/// An element of an array: a value, or the digest of a disclosure.
enum Element {
    Plain(Value),
    Digest(String),
}

/// Reads an element of an array.
fn read_element(element: Value) -> Result<Element, CredentialRefusal> {
    let Value::Object(mut object) = element else { return Ok(Element::Plain(element)) };
    match object.remove(ARRAY_DIGEST) {
        None => Ok(Element::Plain(Value::Object(object))),
        Some(Value::String(digest)) if object.is_empty() => Ok(Element::Digest(digest)),
        Some(_) => Err(CredentialRefusal::ArrayDigestMalformed),
    }
}

fn check_depth(depth: usize) -> Result<(), CredentialRefusal> {
    if depth > CREDENTIAL_DEPTH_MAX { Err(CredentialRefusal::TooDeep) } else { Ok(()) }
}

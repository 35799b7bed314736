//! Replaces digests by their disclosures (RFC 9901 §7.1), and removes digests without a disclosure.

use std::collections::HashSet;

use sakshi_domain::limits::CREDENTIAL_DEPTH_MAX;
use serde_json::{Map, Value};

use super::disclosure::{Disclosure, Disclosures};
use super::refusal::CredentialRefusal;

/// Name of the member with the digests of an object.
pub(super) const DIGESTS: &str = "_sd";
const HASH_ALGORITHM: &str = "_sd_alg";
/// Name of the member with the digest of an element of an array.
pub(super) const ARRAY_DIGEST: &str = "...";

/// Initial capacity for digests. A credential has one for each of the authority's forty claims, and decoys.
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
    let top_level = 1;
    let mut replacer = DigestReplacer { disclosures, digests: HashSet::with_capacity(DIGESTS_EXPECTED) };
    let payload = replacer.process_object(payload, top_level)?;
    if replacer.disclosures.are_all_taken() { Ok(payload) } else { Err(CredentialRefusal::DisclosureUnreferenced) }
}

/// Replaces the digests of a payload by their disclosures.
struct DigestReplacer {
    disclosures: Disclosures,
    /// All digests so far, including decoys, which have no disclosure.
    digests: HashSet<String>,
}

impl DigestReplacer {
    /// Processes a value that is a member or an element of an object or array at this depth.
    fn process_value(&mut self, value: Value, depth: usize) -> Result<Value, CredentialRefusal> {
        match value {
            Value::Object(object) => self.process_object(object, depth + 1).map(Value::Object),
            Value::Array(array) => self.process_array(array, depth + 1).map(Value::Array),
            scalar => Ok(scalar),
        }
    }

    /// Processes an object: first its plain members, then its digests.
    fn process_object(
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
                *value = self.process_value(value.take(), depth)?;
            }
        }
        let digests = match digests {
            None => return Ok(object),
            Some(Value::Array(digests)) => digests,
            Some(_) => return Err(CredentialRefusal::DigestsMalformed),
        };
        for digest in digests {
            let Value::String(digest) = digest else { return Err(CredentialRefusal::DigestsMalformed) };
            match self.take_disclosure(digest)? {
                None => {}
                Some(Disclosure::Element { .. }) => return Err(CredentialRefusal::DisclosureMisplaced),
                Some(Disclosure::Member { name, .. }) if object.contains_key(&name) => {
                    return Err(CredentialRefusal::NameTaken);
                }
                Some(Disclosure::Member { name, value }) => {
                    let value = self.process_value(value, depth)?;
                    object.insert(name, value);
                }
            }
        }
        Ok(object)
    }

    /// Processes an array. Digests without a disclosure are removed.
    fn process_array(&mut self, array: Vec<Value>, depth: usize) -> Result<Vec<Value>, CredentialRefusal> {
        check_depth(depth)?;
        let mut elements = Vec::with_capacity(array.len());
        for element in array {
            match read_element(element)? {
                Element::Plain(value) => elements.push(self.process_value(value, depth)?),
                Element::Digest(digest) => match self.take_disclosure(digest)? {
                    None => {}
                    Some(Disclosure::Member { .. }) => return Err(CredentialRefusal::DisclosureMisplaced),
                    Some(Disclosure::Element { value }) => elements.push(self.process_value(value, depth)?),
                },
            }
        }
        Ok(elements)
    }

    /// Takes the disclosure of a digest, which must not have occurred before.
    fn take_disclosure(&mut self, digest: String) -> Result<Option<Disclosure>, CredentialRefusal> {
        let disclosure = self.disclosures.take(&digest);
        if self.digests.insert(digest) { Ok(disclosure) } else { Err(CredentialRefusal::DigestRepeated) }
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

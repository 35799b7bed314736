//! Disclosures: `[salt, name, value]` for a member of an object, `[salt, value]` for an element of an array
//! (RFC 9901 §4.2). A digest covers the text as received.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::limits::CREDENTIAL_DEPTH_MAX;
use sakshi_wire::json::{JsonError, JsonRefusal, ValuesLeft, read};
use serde_json::Value;

use super::refusal::CredentialRefusal;
use crate::encoding::{base64url_digest, from_base64url};

/// A digest as a credential contains it: 43 characters of base64url.
pub(super) type Digest = [u8; 43];

/// The content of a disclosure: a member of an object, or an element of an array.
pub(super) enum Disclosure {
    Member { name: String, value: Value },
    Element { value: Value },
}

/// The disclosures of a credential by their digests. Each can be taken once.
pub(super) struct Disclosures(HashMap<Digest, Option<Disclosure>>);

impl Disclosures {
    /// Reads the disclosures of a credential. `values_left` limits the JSON values of the whole credential.
    pub(super) fn read(texts: &[&str], values_left: &ValuesLeft) -> Result<Self, CredentialRefusal> {
        let mut by_digest = HashMap::with_capacity(texts.len());
        for text in texts {
            if by_digest.insert(digest_of(text)?, Some(Disclosure::read(text, values_left)?)).is_some() {
                return Err(CredentialRefusal::DisclosureRepeated);
            }
        }
        Ok(Self(by_digest))
    }

    /// Takes the disclosure with this digest, if the holder presented it.
    pub(super) fn take(&mut self, digest: &str) -> Option<Disclosure> {
        let digest: &Digest = digest.as_bytes().try_into().ok()?;
        self.0.get_mut(digest).and_then(Option::take)
    }

    /// Returns true if every disclosure was taken.
    pub(super) fn are_all_taken(&self) -> bool {
        self.0.values().all(Option::is_none)
    }
}

impl Disclosure {
    /// Reads one disclosure.
    pub(super) fn read(text: &str, values_left: &ValuesLeft) -> Result<Self, CredentialRefusal> {
        let json = from_base64url(text).ok_or_else(|| CredentialRefusal::of_base64url(text))?;
        // The array of a disclosure adds one level to its value, as does the object or array that it belongs to.
        let parts = match read(&json, CREDENTIAL_DEPTH_MAX, values_left) {
            Ok(Value::Array(parts)) => parts,
            Ok(_) | Err(JsonError { refusal: JsonRefusal::Malformed, .. }) => {
                return Err(CredentialRefusal::DisclosureMalformed);
            }
            Err(JsonError { refusal, .. }) => return Err(refusal.into()),
        };
        if !(2..=3).contains(&parts.len()) {
            return Err(CredentialRefusal::DisclosureMalformed);
        }
        let mut parts = parts.into_iter();
        if !matches!(parts.next(), Some(Value::String(_))) {
            return Err(CredentialRefusal::SaltNotAString);
        }
        match (parts.next(), parts.next()) {
            (Some(value), None) => Ok(Self::Element { value }),
            (Some(Value::String(name)), Some(value)) => match name.as_str() {
                "_sd" | "..." => Err(CredentialRefusal::NameReserved),
                "_sd_alg" => Err(CredentialRefusal::HashAlgorithmMisplaced),
                _ => Ok(Self::Member { name, value }),
            },
            _ => Err(CredentialRefusal::NameNotAString),
        }
    }
}

/// Computes the digest of a disclosure.
pub(super) fn digest_of(text: &str) -> Result<Digest, CredentialRefusal> {
    let mut encoded = [0; 43];
    // The digest always fits.
    let is_encoded = base64url_digest(digest(&SHA256, text.as_bytes()).as_ref(), &mut encoded);
    if is_encoded { Ok(encoded) } else { Err(CredentialRefusal::DisclosureMalformed) }
}

//! Splits the text of a credential: `<issuer JWS>~<disclosure>~…~[<KB-JWT>]` (RFC 9901 §4).

use sakshi_domain::limits::{
    CREDENTIAL_BYTES_MAX, CREDENTIAL_DEPTH_MAX, DISCLOSURES_MAX, JOSE_HEADER_CHARS_MAX, JOSE_HEADER_VALUES_MAX,
    JOSE_SIGNATURE_CHARS_MAX,
};
use sakshi_wire::json::{JsonRefusal, ValuesLeft, read_object};
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;
use crate::encoding::from_base64url;

/// The parts of a credential, as received.
pub(super) struct Segments<'a> {
    pub(super) issuer_jws: &'a str,
    pub(super) disclosures: Vec<&'a str>,
    /// The KB-JWT, which hashes [`Segments::presented`].
    pub(super) key_binding: Option<&'a str>,
    /// Everything up to and including the last tilde.
    pub(super) presented: &'a str,
}

impl<'a> Segments<'a> {
    /// Splits a credential at its tildes.
    pub(super) fn split(credential: &'a str) -> Result<Self, CredentialRefusal> {
        if credential.len() > CREDENTIAL_BYTES_MAX {
            return Err(CredentialRefusal::TooLarge);
        }
        let last = credential.rfind('~').ok_or(CredentialRefusal::NotAnSdJwt)?;
        let (presented, key_binding) = credential.split_at(last + 1);
        let mut parts = presented[..last].split('~');
        let issuer_jws = parts.next().filter(|jws| !jws.is_empty()).ok_or(CredentialRefusal::NotAnSdJwt)?;
        let mut disclosures = Vec::new();
        for disclosure in parts {
            if disclosure.is_empty() {
                return Err(CredentialRefusal::NotAnSdJwt);
            }
            if disclosures.len() == DISCLOSURES_MAX {
                return Err(CredentialRefusal::TooManyDisclosures);
            }
            disclosures.push(disclosure);
        }
        let key_binding = Some(key_binding).filter(|jws| !jws.is_empty());
        Ok(Self { issuer_jws, disclosures, key_binding, presented })
    }
}

/// An unverified compact JWS. The small header is parsed immediately. The payload, which may be megabytes, is
/// parsed only after the signature is verified.
pub(super) struct Jws<'a> {
    pub(super) header: Map<String, Value>,
    payload: &'a str,
    pub(super) signature: Vec<u8>,
    /// The signed text: header and payload.
    pub(super) signed_text: &'a str,
}

impl<'a> Jws<'a> {
    /// Splits a JWS and parses its header.
    pub(super) fn read(text: &'a str) -> Result<Self, CredentialRefusal> {
        let mut segments = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (segments.next(), segments.next(), segments.next(), segments.next())
        else {
            return Err(CredentialRefusal::SegmentCount);
        };
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return Err(CredentialRefusal::EmptySegment);
        }
        if header.len() > JOSE_HEADER_CHARS_MAX || signature.len() > JOSE_SIGNATURE_CHARS_MAX {
            return Err(CredentialRefusal::TooLarge);
        }
        let signed_text = &text[..header.len() + 1 + payload.len()];
        let signature = decode(signature)?;
        let header = decode_object(header, &ValuesLeft::new(JOSE_HEADER_VALUES_MAX))?;
        Ok(Self { header, payload, signature, signed_text })
    }

    /// Parses the payload. The caller has verified the signature, or knows that the payload is small.
    pub(super) fn payload(&self, values_left: &ValuesLeft) -> Result<Map<String, Value>, CredentialRefusal> {
        decode_object(self.payload, values_left)
    }
}

fn decode(segment: &str) -> Result<Vec<u8>, CredentialRefusal> {
    from_base64url(segment).ok_or_else(|| CredentialRefusal::of_base64url(segment))
}

fn decode_object(segment: &str, values_left: &ValuesLeft) -> Result<Map<String, Value>, CredentialRefusal> {
    Ok(read_object(&decode(segment)?, CREDENTIAL_DEPTH_MAX, values_left)?)
}

impl From<JsonRefusal> for CredentialRefusal {
    fn from(refusal: JsonRefusal) -> Self {
        match refusal {
            JsonRefusal::Malformed => Self::NotJson,
            JsonRefusal::TooDeep => Self::TooDeep,
            JsonRefusal::TooManyValues => Self::TooManyValues,
            JsonRefusal::RepeatedName => Self::RepeatedName,
        }
    }
}

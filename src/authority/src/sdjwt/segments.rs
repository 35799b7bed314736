//! The text of a credential, taken apart: `<issuer JWS>~<disclosure>~…~[<KB-JWT>]` (RFC 9901 §4).

use sakshi_domain::limits::{CREDENTIAL_BYTES_MAX, CREDENTIAL_DEPTH_MAX, DISCLOSURES_MAX};
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;
use crate::encoding::from_base64url;
use crate::json::{JsonRefusal, parse_object};

/// A credential's parts, as received.
pub(super) struct Segments<'a> {
    pub(super) issuer_jws: &'a str,
    pub(super) disclosures: Vec<&'a str>,
    /// The KB-JWT; what it hashes is [`Segments::presented`].
    pub(super) key_binding: Option<&'a str>,
    /// Everything up to and including the last tilde.
    pub(super) presented: &'a str,
}

impl<'a> Segments<'a> {
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

/// A compact JWS, decoded but not verified.
pub(super) struct Jws<'a> {
    pub(super) header: Map<String, Value>,
    pub(super) payload: Map<String, Value>,
    pub(super) signature: Vec<u8>,
    /// What the signature is over.
    pub(super) signed: &'a str,
}

impl<'a> Jws<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, CredentialRefusal> {
        let mut segments = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) = (segments.next(), segments.next(), segments.next(), segments.next())
        else {
            return Err(CredentialRefusal::SegmentCount);
        };
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return Err(CredentialRefusal::EmptySegment);
        }
        let signed = &text[..header.len() + 1 + payload.len()];
        let signature = from_base64url(signature).ok_or(CredentialRefusal::NotBase64url)?;
        Ok(Self { header: object(header)?, payload: object(payload)?, signature, signed })
    }
}

fn object(segment: &str) -> Result<Map<String, Value>, CredentialRefusal> {
    let text = from_base64url(segment).ok_or(CredentialRefusal::NotBase64url)?;
    Ok(parse_object(&text, CREDENTIAL_DEPTH_MAX)?)
}

impl From<JsonRefusal> for CredentialRefusal {
    fn from(refusal: JsonRefusal) -> Self {
        match refusal {
            JsonRefusal::Malformed => Self::NotJson,
            JsonRefusal::TooDeep => Self::TooDeep,
            JsonRefusal::RepeatedName => Self::RepeatedName,
        }
    }
}

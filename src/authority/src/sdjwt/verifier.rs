//! Runs all checks of a credential, cheap ones first. The payload is read only after the issuer's signature is
//! verified.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::Trait;
use sakshi_domain::limits::CREDENTIAL_VALUES_MAX;
use sakshi_domain::transaction::{Answer, AnswerDigest, CredentialIdentity, VerifiedClaims};
use sakshi_wire::json::ValuesLeft;
use serde_json::{Map, Value};

use super::disclosure::Disclosures;
use super::key_binding::{self, Expectation, KeyBinding};
use super::keys::{Jwks, TrustedIssuer};
use super::normalise::RequestedClaims;
use super::refusal::CredentialRefusal;
use super::segments::{Jws, Segments};
use super::status::{CredentialStatus, StatusFault};
use super::{jose, normalise, processing, traits, validity};

/// A credential that passed every check.
#[derive(Debug)]
pub struct VerifiedCredential {
    /// The requested claims that the credential discloses.
    pub claims: VerifiedClaims,
    /// The requested claims that the credential does not disclose.
    pub missing: ClaimSet,
    /// The requested claims whose values have an unknown form; they are not stored.
    pub malformed: ClaimSet,
    /// Identity of the credential, computed from header and payload as received, because only these are signed.
    /// Anyone with a copy can reorder or omit disclosures, remove the key binding, and change an ECDSA signature
    /// to its second valid value.
    pub identity: CredentialIdentity,
    /// SHA-256 of everything up to and including the last tilde. Without the key binding, a redelivery with a
    /// new key binding has the same digest.
    pub digest: AnswerDigest,
    /// True if a key binding proves that the holder made this presentation for this transaction. It is not a replay
    /// then.
    pub holder_bound: bool,
    /// The place where the state of the credential is published.
    pub status: CredentialStatus,
    /// The `iss` of the issuer.
    pub issuer: String,
    /// The issuer's key that signed the credential, as a JWK.
    pub issuer_key: Arc<Value>,
    /// The time until `exp`.
    pub valid_for: Duration,
    /// SHA-256 of the credential's id and of the holder's key, where present.
    traits: Vec<Trait>,
}

impl VerifiedCredential {
    /// Returns the traits of the person: the credential, the holder's key, and the name with the date of birth if both
    /// were shared.
    #[must_use]
    pub fn traits(&self) -> Vec<Trait> {
        self.traits.iter().copied().chain(traits::trait_of_claims(&self.claims)).collect()
    }

    /// Builds the answer for the transaction.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        let Self { claims, missing, malformed, identity, digest, holder_bound, .. } = self;
        Answer::Credential { claims: Arc::new(claims), missing, malformed, holder_bound, identity, digest }
    }
}

/// Computes the digest of an unverified credential; see [`VerifiedCredential::digest`].
#[must_use]
pub fn credential_digest(credential: &str) -> AnswerDigest {
    AnswerDigest(sha256(credential.rfind('~').map_or(credential, |last| &credential[..=last])))
}

/// Returns the `kid` of an unverified credential.
#[must_use]
pub fn credential_key_id(credential: &str) -> Option<String> {
    let jws = Segments::split(credential).and_then(|segments| Jws::read(segments.issuer_jws)).ok()?;
    jws.header.get("kid")?.as_str().map(str::to_owned)
}

/// Computes the identity: the issue time in seconds, and 224 bits of the SHA-256 of the signed text. Identities of the
/// same time are adjacent in a sorted index, so inserts touch few pages.
fn compute_identity(payload: &Map<String, Value>, signed_text: &str) -> CredentialIdentity {
    let issued_at = payload.get("iat").and_then(Value::as_u64).and_then(|seconds| u32::try_from(seconds).ok());
    let mut bytes = sha256(signed_text);
    bytes[..4].copy_from_slice(&issued_at.unwrap_or_default().to_be_bytes());
    CredentialIdentity(bytes)
}

fn sha256(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}

/// Verifier of credentials of trusted issuers, whose keys can be replaced at any time.
#[derive(Debug)]
pub struct Verifier {
    issuers: RwLock<Arc<[TrustedIssuer]>>,
    key_binding: KeyBinding,
}

impl Verifier {
    /// Creates a verifier that trusts these issuers. Without issuers it refuses every credential.
    #[must_use]
    pub fn new(issuers: Vec<TrustedIssuer>, key_binding: KeyBinding) -> Self {
        Self { issuers: RwLock::new(issuers.into()), key_binding }
    }

    /// Replaces the keys of a trusted issuer. Verifications in progress continue with the old keys.
    pub fn replace_keys(&self, issuer: &str, jwks: &Jwks) {
        let mut issuers = self.issuers.write().unwrap_or_else(PoisonError::into_inner);
        let with_new_keys = |trusted: &TrustedIssuer| {
            if trusted.issuer == issuer {
                TrustedIssuer { issuer: issuer.to_owned(), jwks: jwks.clone() }
            } else {
                trusted.clone()
            }
        };
        *issuers = issuers.iter().map(with_new_keys).collect();
    }

    /// Verifies a credential for a transaction.
    ///
    /// # Errors
    /// [`CredentialRefusal`] of the first rule that the credential breaks (protocol, section 6; RFC 9901 §7).
    pub fn verify(
        &self,
        credential: &str,
        expected: &Expectation<'_>,
    ) -> Result<VerifiedCredential, CredentialRefusal> {
        let segments = Segments::split(credential)?;
        let key_binding = self.key_binding.admit(segments.key_binding)?;
        let jws = Jws::read(segments.issuer_jws)?;
        let issuers = self.issuers();
        let key_id = jose::check_issuer_header(&jws.header)?;
        let (signer, issuer_key) = find_signer(&issuers, &jws, key_id)?;
        let values_left = ValuesLeft::new(CREDENTIAL_VALUES_MAX);
        let payload = jws.payload(&values_left)?;
        let issuer = check_issuer(&issuers, &payload, signer)?;
        let identity = compute_identity(&payload, jws.signed_text);
        let payload = processing::process(payload, Disclosures::read(&segments.disclosures, &values_left)?)?;
        let valid_for = validity::check(&payload, issuer, expected.now)?;
        // One pass over possibly megabytes serves both `sd_hash` and the answer's digest.
        let digest = AnswerDigest(sha256(segments.presented));
        if let Some(key_binding) = key_binding {
            key_binding::verify(key_binding, &payload, &digest.0, expected)?;
        }
        let status = CredentialStatus::read(&payload, issuer);
        let traits = traits::traits_of_payload(&payload, issuer);
        let RequestedClaims { claims, missing, malformed } = normalise::requested_claims(payload, expected.requested)?;
        Ok(VerifiedCredential {
            claims,
            missing,
            malformed,
            identity,
            digest,
            holder_bound: key_binding.is_some(),
            status,
            issuer: issuer.to_owned(),
            issuer_key,
            valid_for,
            traits,
        })
    }

    /// Verifies that a key of this issuer signed a status answer. Returns the key as a JWK.
    pub(super) fn verify_status_signature(
        &self,
        jws: &Jws<'_>,
        key_id: &str,
        issuer: &str,
    ) -> Result<Arc<Value>, StatusFault> {
        let issuers = self.issuers();
        let trusted = issuers.iter().filter(|trusted| trusted.issuer == issuer);
        let mut keys = trusted.flat_map(|trusted| trusted.jwks.get(key_id)).peekable();
        keys.peek().ok_or(StatusFault::KeyUnknown)?;
        let signing = keys.find(|key| key.key.verify_sig(jws.signed_text.as_bytes(), &jws.signature).is_ok());
        signing.map(|key| Arc::clone(&key.jwk)).ok_or(StatusFault::Unsigned)
    }

    fn issuers(&self) -> Arc<[TrustedIssuer]> {
        Arc::clone(&*self.issuers.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the issuer whose key verifies the signature, and the key as a JWK. Does not read the payload, so a forged
/// credential costs only a hash and a signature check.
fn find_signer<'a>(
    issuers: &'a [TrustedIssuer],
    jws: &Jws<'_>,
    kid: &str,
) -> Result<(&'a TrustedIssuer, Arc<Value>), CredentialRefusal> {
    if issuers.is_empty() {
        return Err(CredentialRefusal::IssuerNotTrusted);
    }
    let mut keys =
        issuers.iter().flat_map(|issuer| issuer.jwks.get(kid).iter().map(move |key| (issuer, key))).peekable();
    keys.peek().ok_or(CredentialRefusal::KeyIdUnknown)?;
    let signer = keys.find(|(_, key)| key.key.verify_sig(jws.signed_text.as_bytes(), &jws.signature).is_ok());
    signer.map(|(issuer, key)| (issuer, Arc::clone(&key.jwk))).ok_or(CredentialRefusal::SignatureInvalid)
}

/// Checks that the payload names the signer as its issuer, and returns that name. `validity::check` repeats the check
/// after processing.
fn check_issuer<'a>(
    issuers: &[TrustedIssuer],
    payload: &Map<String, Value>,
    signer: &'a TrustedIssuer,
) -> Result<&'a str, CredentialRefusal> {
    match payload.get("iss").and_then(Value::as_str) {
        Some(name) if name == signer.issuer => Ok(&signer.issuer),
        Some(name) if issuers.iter().any(|trusted| trusted.issuer == name) => Err(CredentialRefusal::SignatureInvalid),
        _ => Err(CredentialRefusal::IssuerNotTrusted),
    }
}

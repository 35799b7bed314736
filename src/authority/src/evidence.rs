//! Evidence of a verification: the credential as received, and the data that verified it, in a sealed file. The file
//! can be checked years later without this service.
//!
//! The file is a JWS in flattened JSON form (RFC 7515 §7.2.2), signed with the intent key, whose public half is in the
//! header. The payload has the SD-JWT with its disclosures (RFC 9901), the issuer's key, and the issuer's answer about
//! the credential's status.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::encoding::{base64url, from_base64url};
use crate::intent::{SignatureFault, verify_with_jwk};
use crate::sdjwt::{
    CredentialRefusal, CredentialStatus, Expectation, Jwks, KeyBinding, StatusFault, TrustedIssuer, Verifier,
};

/// The `typ` in the header of a sealed file.
pub const TYPE: &str = "evidence+jws";

/// Amount by which times in a file may be in the wrong order: clocks of nodes differ, and checks take a while.
const SKEW: Duration = Duration::from_secs(600);

/// Upper bound on the time for which a status answer is used (setting `authority.status_cache_s`).
const STATUS_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The proof that a node stores after verifying a credential. It contains all shared claims.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The credential as received, with its key binding if present. Disclosures that were not requested are removed,
    /// and with them the key binding, which covers all disclosures.
    pub credential: String,
    /// True if the holder had bound the credential to the transaction.
    pub holder_bound: bool,
    /// The audience of the key binding.
    pub audience: String,
    /// The `iss` of the issuer.
    pub issuer: String,
    /// The issuer's key that verified the credential, as a JWK.
    pub issuer_key: Value,
    /// The issuer's answer about the credential's status; `None` if it was not requested.
    pub status: Option<StatusProof>,
    /// Time of the verification, by the clock of the node.
    pub received_at: Timestamp,
}

/// The issuer's signed answer about the status of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusProof {
    /// The answer, as a compact JWS.
    pub token: String,
    /// The issuer's key that verified the answer, as a JWK.
    pub key: Value,
    /// Time at which the answer was read and valid, by the clock of the node.
    pub checked_at: Timestamp,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof({} bytes redacted)", self.credential.len())
    }
}

/// The payload of a sealed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The version of the payload's format.
    pub version: u32,
    /// The id of the transaction, which is the nonce of a key binding.
    pub txn_id: TxnId,
    /// The client that requested the verification.
    pub client_id: ClientId,
    /// The app that requested the verification.
    pub app_id: AppId,
    /// The client's own reference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_reference_id: Option<String>,
    /// The purpose shown to the person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub purpose: Option<String>,
    /// The requested claims.
    pub requested: ClaimSet,
    /// Time at which the transaction was opened.
    pub opened_at: Timestamp,
    /// Time at which the transaction was completed.
    pub verified_at: Timestamp,
    /// True if the verification passed.
    pub verification_passed: bool,
    /// The proof.
    #[serde(flatten)]
    pub proof: Proof,
}

impl Evidence {
    /// The version of the format that this release writes.
    pub const VERSION: u32 = 1;
}

/// The reason why an evidence file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceFault {
    /// The file is not an evidence file.
    #[error("the file is not an evidence file in a form that is known")]
    Malformed,
    /// The signature of the file is invalid.
    #[error("the signature of the file is invalid: the file was changed")]
    Seal,
    /// The key that sealed the file is not trusted.
    #[error("the key that sealed the file is not among those that are trusted")]
    SealKey,
    /// The key that signed the credential or the status answer is not trusted.
    #[error("the key that signed the credential is not among those that are trusted")]
    IssuerKey,
    /// The credential does not pass verification.
    #[error("the credential is refused: {0}")]
    Credential(CredentialRefusal),
    /// The status answer cannot be used.
    #[error("the answer about the status of the credential cannot be used: {0}")]
    Status(StatusFault),
    /// The status of the credential was not valid.
    #[error("the status of the credential was not `valid`")]
    NotValid,
    /// The times in the file contradict each other.
    #[error("the times in the file contradict each other")]
    Times,
    /// The verification passed, but the credential lacks a requested claim.
    #[error("the credential does not share every claim that was asked for")]
    Incomplete,
}

/// An evidence file with a valid signature.
#[derive(Clone, Debug)]
pub struct SealedEvidence {
    /// The payload.
    pub evidence: Evidence,
    /// The id of the key that sealed the file.
    pub kid: String,
    /// The key that sealed the file, as a JWK.
    pub key: Value,
}

/// The result of checking the credential of an evidence file again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvidenceCheck {
    /// The requested claims that the credential shares in a known form.
    pub shared: ClaimSet,
    /// True if the file has a valid key binding.
    pub holder_bound: bool,
    /// The status of the credential, as far as the file proves it.
    pub status: ProvenStatus,
}

/// The status of a credential, as far as its evidence file proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvenStatus {
    /// The issuer's answer states that the credential was valid.
    Valid,
    /// The credential has no status.
    Absent,
    /// The credential has a status, but the file has no answer of the issuer.
    Unproven,
}

/// Builds the protected header of a file that is sealed with this key.
pub(crate) fn protected_header(algorithm: &str, kid: &str, key: &Value) -> Value {
    json!({ "alg": algorithm, "typ": TYPE, "kid": kid, "jwk": key })
}

/// Computes the thumbprint of an RSA or P-256 key (RFC 7638).
#[must_use]
pub fn thumbprint(jwk: &Value) -> Option<String> {
    let members: &[&str] = match jwk.get("kty")?.as_str()? {
        "RSA" => &["e", "kty", "n"],
        "EC" => &["crv", "kty", "x", "y"],
        _ => return None,
    };
    // The thumbprint needs the members sorted by name, as `Map` keeps them.
    let required: Map<String, Value> =
        members.iter().map(|name| Some(((*name).to_owned(), jwk.get(*name)?.clone()))).collect::<Option<_>>()?;
    Some(base64url(digest(&SHA256, Value::Object(required).to_string().as_bytes()).as_ref()))
}

/// Returns true if a set of JWKs contains this key.
fn contains_key(trusted: &[Value], key: &Value) -> bool {
    let key_thumbprint = thumbprint(key);
    key_thumbprint.is_some() && trusted.iter().any(|known| thumbprint(known) == key_thumbprint)
}

impl SealedEvidence {
    /// Reads a file, and checks its signature with the key in its header. If there are `trusted` keys, the key must be
    /// one of them.
    ///
    /// # Errors
    /// [`EvidenceFault::Malformed`], [`EvidenceFault::Seal`] or [`EvidenceFault::SealKey`].
    pub fn open(file: &[u8], trusted: Option<&[Value]>) -> Result<Self, EvidenceFault> {
        /// A JWS in flattened JSON form.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct FlattenedJws {
            payload: String,
            protected: String,
            signature: String,
        }
        let malformed = || EvidenceFault::Malformed;
        let FlattenedJws { payload, protected, signature } = serde_json::from_slice(file).map_err(|_| malformed())?;
        let decode = |text: &str| from_base64url(text).ok_or_else(malformed);
        let header: Value = serde_json::from_slice(&decode(&protected)?).map_err(|_| malformed())?;
        let text = |name: &str| header.get(name).and_then(Value::as_str).ok_or_else(malformed);
        if text("typ")? != TYPE || header.get("crit").is_some() {
            return Err(malformed());
        }
        let key = header.get("jwk").cloned().ok_or_else(malformed)?;
        let signed_text = format!("{protected}.{payload}");
        verify_with_jwk(&key, text("alg")?, signed_text.as_bytes(), &decode(&signature)?).map_err(
            |fault| match fault {
                SignatureFault::Invalid => EvidenceFault::Seal,
                SignatureFault::UnusableKey => malformed(),
            },
        )?;
        if trusted.is_some_and(|trusted| !contains_key(trusted, &key)) {
            return Err(EvidenceFault::SealKey);
        }
        let evidence: Evidence = serde_json::from_slice(&decode(&payload)?).map_err(|_| malformed())?;
        if evidence.version != Evidence::VERSION {
            return Err(malformed());
        }
        Ok(Self { evidence, kid: text("kid")?.to_owned(), key })
    }
}

impl Evidence {
    /// Verifies the credential and the status answer again, each as at the time of its first check. If there are
    /// `trusted` keys of the issuer, the keys in the file must be among them.
    ///
    /// # Errors
    /// [`EvidenceFault`] of the first check that fails.
    pub fn check(&self, trusted: Option<&[Value]>) -> Result<EvidenceCheck, EvidenceFault> {
        let Proof { credential, audience, issuer, issuer_key, status, received_at, .. } = &self.proof;
        let mut keys = [issuer_key].into_iter().chain(status.as_ref().map(|status| &status.key));
        if trusted.is_some_and(|trusted| !keys.all(|key| contains_key(trusted, key))) {
            return Err(EvidenceFault::IssuerKey);
        }
        self.check_times()?;
        let verifier = verifier_with(issuer, issuer_key)?;
        let expected = Expectation { nonce: self.txn_id, audience, now: *received_at, requested: self.requested };
        let verified = verifier.verify(credential, &expected).map_err(EvidenceFault::Credential)?;
        if self.verification_passed && !(verified.missing.is_empty() && verified.malformed.is_empty()) {
            return Err(EvidenceFault::Incomplete);
        }
        let proven_status = match (status, &verified.status) {
            (Some(proof), CredentialStatus::At(reference)) => {
                // Only the answer's own key may verify the answer; the credential's key is for the credential.
                let document =
                    verifier_with(issuer, &proof.key)?.read_status(reference, proof.token.as_bytes(), proof.checked_at);
                let document = document.map_err(EvidenceFault::Status)?;
                if document.state(reference).map_err(EvidenceFault::Status)?.refusal().is_some() {
                    return Err(EvidenceFault::NotValid);
                }
                ProvenStatus::Valid
            }
            (Some(_), _) => return Err(EvidenceFault::Malformed),
            (None, CredentialStatus::Absent) => ProvenStatus::Absent,
            (None, _) => ProvenStatus::Unproven,
        };
        let is_shared = |claim: &sakshi_domain::claims::Claim| {
            !verified.missing.contains(*claim) && !verified.malformed.contains(*claim)
        };
        Ok(EvidenceCheck {
            shared: self.requested.iter().filter(is_shared).collect(),
            holder_bound: verified.holder_bound,
            status: proven_status,
        })
    }

    /// Checks that the times are in order, within the skew of nodes' clocks, and that the status answer was current
    /// when the credential was received.
    fn check_times(&self) -> Result<(), EvidenceFault> {
        let received = self.proof.received_at;
        let is_current = |status: &StatusProof| {
            status.checked_at <= received + SKEW && status.checked_at + STATUS_AGE_MAX >= received
        };
        let are_in_order = self.opened_at <= received + SKEW && received <= self.verified_at + SKEW;
        if are_in_order && self.proof.status.as_ref().is_none_or(is_current) {
            Ok(())
        } else {
            Err(EvidenceFault::Times)
        }
    }
}

/// Builds a verifier that trusts only this issuer and this key.
fn verifier_with(issuer: &str, key: &Value) -> Result<Verifier, EvidenceFault> {
    let jwks = Jwks::parse(json!({ "keys": [key] }).to_string().as_bytes()).map_err(|_| EvidenceFault::Malformed)?;
    Ok(Verifier::new(vec![TrustedIssuer { issuer: issuer.to_owned(), jwks }], KeyBinding::WhenPresent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_matches_the_example_of_rfc_7638() {
        let modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJE\
            CPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2Q\
            vzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6\
            WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let jwk = json!({ "kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB", "n": modulus });
        assert_eq!(thumbprint(&jwk).as_deref(), Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"));
        assert_eq!(thumbprint(&json!({ "kty": "oct", "k": "AA" })), None);
        assert_eq!(thumbprint(&json!({ "kty": "RSA", "e": "AQAB" })), None);
    }

    #[test]
    fn a_malformed_file_is_refused_before_its_signature_is_checked() {
        for file in [
            "",
            "{}",
            "[]",
            r#"{"payload":"","protected":"","signature":"","more":""}"#,
            r#"{"payload":"e30","protected":"e30","signature":"AA"}"#,
        ] {
            assert_eq!(SealedEvidence::open(file.as_bytes(), None).err(), Some(EvidenceFault::Malformed), "{file}");
        }
    }
}

//! Evidence of a verification: the credential as received, with the data that verified it, in a sealed file. It can be
//! checked years later without this service.
//!
//! The file is a JWS in its flattened JSON form (RFC 7515 §7.2.2), signed with the intent key, whose public half is in
//! its header. Its payload holds the SD-JWT with its disclosures (RFC 9901), the issuer's key, and the issuer's answer
//! about the credential's status.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::encoding::{base64url, from_base64url};
use crate::intent::verify_with_jwk;
use crate::sdjwt::{
    CredentialRefusal, CredentialStatus, Expectation, Jwks, KeyBinding, StatusFault, TrustedIssuer, Verifier,
};

/// `typ` of the header of a sealed file.
pub const TYPE: &str = "evidence+jws";

/// Upper bound on the difference of nodes' clocks, and on the time between two checks.
const SKEW: Duration = Duration::from_secs(600);

/// Upper bound on the time for which a status answer is used (`authority.status_cache_s`).
const STATUS_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The proof that a node stores after it has verified a credential. It holds all that was shared.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The credential as received, with its key binding if there was one. Disclosures that were not requested are
    /// removed, and with them the key binding, which covers all disclosures.
    pub credential: String,
    /// True if the credential's holder had bound it to the transaction.
    pub holder_bound: bool,
    /// The audience of the key binding.
    pub audience: String,
    /// The issuer's name.
    pub issuer: String,
    /// The issuer's key that verified it, as a JWK.
    pub issuer_key: Value,
    /// The issuer's answer about its status; `None` where none was requested.
    pub status: Option<StatusProof>,
    /// The time of the check, by the clock of the node.
    pub received_at: Timestamp,
}

/// The issuer's signed answer about the status of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusProof {
    /// The answer, a compact JWS.
    pub token: String,
    /// The issuer's key that verified it, as a JWK.
    pub key: Value,
    /// Time at which it was read, by the clock of the node. It was valid then.
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
    /// The form of this payload.
    pub version: u32,
    /// The transaction: the nonce of a key binding.
    pub txn_id: TxnId,
    /// The client that asked.
    pub client_id: ClientId,
    /// Its app.
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
    /// Time at which it was completed.
    pub verified_at: Timestamp,
    /// True if the verification passed.
    pub verification_passed: bool,
    /// The proof.
    #[serde(flatten)]
    pub proof: Proof,
}

impl Evidence {
    /// The version of the form that is written.
    pub const VERSION: u32 = 1;
}

/// A fault of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceFault {
    /// Not an evidence file.
    #[error("the file is not an evidence file in a form that is known")]
    Malformed,
    /// Its seal does not fit.
    #[error("the seal does not fit: the file was changed")]
    Seal,
    /// Another key than one that is trusted has sealed it.
    #[error("the key that sealed the file is not among those that are trusted")]
    SealKey,
    /// Another key than one that is trusted has signed the credential.
    #[error("the key that signed the credential is not among those that are trusted")]
    IssuerKey,
    /// The credential is refused.
    #[error("the credential is refused: {0}")]
    Credential(CredentialRefusal),
    /// The answer about its status cannot be used.
    #[error("the answer about the status of the credential cannot be used: {0}")]
    Status(StatusFault),
    /// The credential was not valid.
    #[error("the status of the credential was not `valid`")]
    NotValid,
    /// Its times contradict each other.
    #[error("the times in the file contradict each other")]
    Times,
    /// The credential does not hold what the file says that it shared.
    #[error("the credential does not share every claim that was asked for")]
    Incomplete,
}

/// A file whose seal fits.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The payload.
    pub evidence: Evidence,
    /// The id of the key that sealed it.
    pub kid: String,
    /// That key as a JWK.
    pub key: Value,
}

/// A credential that was checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The claims that were requested and shared, in a known form.
    pub shared: ClaimSet,
    /// True if the file has the key binding, and it is valid.
    pub holder_bound: bool,
    /// The status, as far as it is known.
    pub status: CheckedStatus,
}

/// The status of a credential that was checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedStatus {
    /// The issuer had said that it was valid.
    Valid,
    /// The credential names no place for its status.
    Absent,
    /// The credential names one, but the file has no answer from there.
    Unproven,
}

/// Builds the protected header of a file that this key seals.
pub(crate) fn header(algorithm: &str, kid: &str, key: &Value) -> Value {
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
    // Their order is that of their names, and `Map` sorts them.
    let of_key: Map<String, Value> =
        members.iter().map(|name| Some(((*name).to_owned(), jwk.get(*name)?.clone()))).collect::<Option<_>>()?;
    Some(base64url(digest(&SHA256, Value::Object(of_key).to_string().as_bytes()).as_ref()))
}

/// Returns true if a set of JWKs has this key.
fn has(trusted: &[Value], key: &Value) -> bool {
    let wanted = thumbprint(key);
    wanted.is_some() && trusted.iter().any(|known| thumbprint(known) == wanted)
}

impl Sealed {
    /// Reads a file, and checks its seal with the key in its header. With `trusted` keys, that must be one of them.
    ///
    /// # Errors
    /// [`EvidenceFault::Malformed`], [`EvidenceFault::Seal`] and [`EvidenceFault::SealKey`].
    pub fn open(file: &[u8], trusted: Option<&[Value]>) -> Result<Self, EvidenceFault> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Flattened {
            payload: String,
            protected: String,
            signature: String,
        }
        let malformed = || EvidenceFault::Malformed;
        let Flattened { payload, protected, signature } = serde_json::from_slice(file).map_err(|_| malformed())?;
        let decoded = |text: &str| from_base64url(text).ok_or_else(malformed);
        let header: Value = serde_json::from_slice(&decoded(&protected)?).map_err(|_| malformed())?;
        let text = |name: &str| header.get(name).and_then(Value::as_str).ok_or_else(malformed);
        if text("typ")? != TYPE || header.get("crit").is_some() {
            return Err(malformed());
        }
        let key = header.get("jwk").cloned().ok_or_else(malformed)?;
        let signed = format!("{protected}.{payload}");
        match verify_with_jwk(&key, text("alg")?, signed.as_bytes(), &decoded(&signature)?) {
            Some(true) => {}
            Some(false) => return Err(EvidenceFault::Seal),
            None => return Err(malformed()),
        }
        if trusted.is_some_and(|trusted| !has(trusted, &key)) {
            return Err(EvidenceFault::SealKey);
        }
        let evidence: Evidence = serde_json::from_slice(&decoded(&payload)?).map_err(|_| malformed())?;
        if evidence.version != Evidence::VERSION {
            return Err(malformed());
        }
        Ok(Self { evidence, kid: text("kid")?.to_owned(), key })
    }
}

impl Evidence {
    /// Verifies the credential and the answer about its status again, each as of its first check. With `trusted` keys
    /// of the issuer, those in the file must be among them.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check(&self, trusted: Option<&[Value]>) -> Result<Checked, EvidenceFault> {
        let Proof { credential, audience, issuer, issuer_key, status, received_at, .. } = &self.proof;
        let mut keys = [issuer_key].into_iter().chain(status.as_ref().map(|status| &status.key));
        if trusted.is_some_and(|trusted| !keys.all(|key| has(trusted, key))) {
            return Err(EvidenceFault::IssuerKey);
        }
        self.check_times()?;
        let verifier = verifier_with(issuer, issuer_key)?;
        let expected = Expectation { nonce: self.txn_id, audience, now: *received_at, requested: self.requested };
        let verified = verifier.verify(credential, &expected).map_err(EvidenceFault::Credential)?;
        if self.verification_passed && !(verified.missing.is_empty() && verified.malformed.is_empty()) {
            return Err(EvidenceFault::Incomplete);
        }
        let checked_status = match (status, &verified.status) {
            (Some(proof), CredentialStatus::At(reference)) => {
                // Verified with the answer's own key alone; the credential's key has signed the credential.
                let document =
                    verifier_with(issuer, &proof.key)?.read_status(reference, proof.token.as_bytes(), proof.checked_at);
                let document = document.map_err(EvidenceFault::Status)?;
                if document.state(reference).map_err(EvidenceFault::Status)?.refusal().is_some() {
                    return Err(EvidenceFault::NotValid);
                }
                CheckedStatus::Valid
            }
            (Some(_), _) => return Err(EvidenceFault::Malformed),
            (None, CredentialStatus::Absent) => CheckedStatus::Absent,
            (None, _) => CheckedStatus::Unproven,
        };
        let is_shared = |claim: &sakshi_domain::claims::Claim| {
            !verified.missing.contains(*claim) && !verified.malformed.contains(*claim)
        };
        Ok(Checked {
            shared: self.requested.iter().filter(is_shared).collect(),
            holder_bound: verified.holder_bound,
            status: checked_status,
        })
    }

    /// Checks that the times follow each other, within the skew of nodes' clocks, and that the status was read when the
    /// credential came.
    fn check_times(&self) -> Result<(), EvidenceFault> {
        let received = self.proof.received_at;
        let is_status_of_then = |status: &StatusProof| {
            status.checked_at <= received + SKEW && status.checked_at + STATUS_AGE_MAX >= received
        };
        let follow = self.opened_at <= received + SKEW && received <= self.verified_at + SKEW;
        if follow && self.proof.status.as_ref().is_none_or(is_status_of_then) {
            Ok(())
        } else {
            Err(EvidenceFault::Times)
        }
    }
}

/// Builds a verifier for credentials and answers of this issuer that this key has signed.
fn verifier_with(issuer: &str, key: &Value) -> Result<Verifier, EvidenceFault> {
    let jwks = Jwks::parse(json!({ "keys": [key] }).to_string().as_bytes()).map_err(|_| EvidenceFault::Malformed)?;
    Ok(Verifier::new(vec![TrustedIssuer { issuer: issuer.to_owned(), jwks }], KeyBinding::WhenPresent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_is_that_of_the_example_in_rfc_7638() {
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
    fn what_is_no_evidence_is_refused_before_anything_is_verified() {
        for file in [
            "",
            "{}",
            "[]",
            r#"{"payload":"","protected":"","signature":"","more":""}"#,
            r#"{"payload":"e30","protected":"e30","signature":"AA"}"#,
        ] {
            assert_eq!(Sealed::open(file.as_bytes(), None).err(), Some(EvidenceFault::Malformed), "{file}");
        }
    }
}

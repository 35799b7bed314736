//! The sandbox issuer: SD-JWT credentials in the identity authority's profile.
//!
//! Its credentials differ from real ones only in the key. Salts, digests, decoys, key binding and
//! signatures are the same, so the whole verifier is tested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::keys::{KeyError, SigningKey};
use crate::residents::{PublishedState, Resident};

/// Validity of a credential.
const CREDENTIAL_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3_600);
/// Validity of a signed status.
const STATUS_LIFETIME: Duration = Duration::from_secs(60);
/// Number of decoys: digests without a disclosure, which hide the number of claims (RFC 9901 §4.2.5).
const DECOYS: usize = 2;

/// The holder's key, to which a credential is bound.
#[derive(Debug)]
pub struct HolderKey(SigningKey);

impl HolderKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn generate() -> Result<Self, KeyError> {
        SigningKey::generate().map(Self)
    }

    /// Appends a key-binding JWT to a credential (RFC 9901 §4.3). It proves possession of the key for an audience and a
    /// nonce.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn bind(&self, credential: &str, nonce: &str, audience: &str, now: Timestamp) -> Result<String, KeyError> {
        let header = json!({"alg": "ES256", "typ": "kb+jwt"});
        let payload = json!({"iat": now.seconds(), "aud": audience, "nonce": nonce, "sd_hash": sha256(credential)});
        Ok(format!("{credential}{}", self.0.sign(&header, &payload)?))
    }
}

/// The keys of the residents' phones, generated at their first use.
#[derive(Debug, Default)]
pub struct HolderKeys(Mutex<HashMap<&'static str, Arc<HolderKey>>>);

impl HolderKeys {
    /// Returns the key of a resident's phone.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn get_or_generate(&self, resident: &Resident) -> Result<Arc<HolderKey>, KeyError> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(resident.id) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(HolderKey::generate()?);
        keys.insert(resident.id, Arc::clone(&key));
        Ok(key)
    }
}

/// An issuer that only the sandbox trusts.
#[derive(Debug)]
pub struct SandboxIssuer {
    key: SigningKey,
    /// The `iss` of credentials.
    name: String,
    key_id: String,
}

impl SandboxIssuer {
    /// Creates an issuer with a new key. Its name becomes the `iss` of credentials.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn generate(name: impl Into<String>) -> Result<Self, KeyError> {
        SigningKey::generate().map(|key| Self::new(name.into(), key))
    }

    /// Creates an issuer with a stored key. Its name becomes the `iss` of credentials.
    ///
    /// # Errors
    /// The bytes are not a P-256 key in PKCS#8.
    pub fn from_pkcs8(name: impl Into<String>, bytes: &[u8]) -> Result<Self, KeyError> {
        SigningKey::from_pkcs8(bytes).map(|key| Self::new(name.into(), key))
    }

    fn new(name: String, key: SigningKey) -> Self {
        let key_id = key.thumbprint();
        Self { key, name, key_id }
    }

    /// Returns the private key as PKCS#8, to be stored.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        self.key.to_pkcs8()
    }

    /// Returns the issuer's name, the `iss` of its credentials.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.name
    }

    /// Returns the id of the issuer's key, the `kid` of its credentials.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.key_id
    }

    /// Returns the issuer's public key as a JWK set.
    #[must_use]
    pub fn jwks_json(&self) -> String {
        let mut key = self.key.public_jwk();
        key["kid"] = json!(self.key_id);
        key["alg"] = json!("ES256");
        key["use"] = json!("sig");
        json!({"keys": [key]}).to_string()
    }

    /// Issues a credential without a `status`; see [`SandboxIssuer::issue_with_status`].
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn issue(
        &self,
        resident: &Resident,
        claims: ClaimSet,
        holder: &HolderKey,
        now: Timestamp,
    ) -> Result<String, KeyError> {
        self.issue_with_status(resident, claims, holder, now, |_| None)
    }

    /// Issues a credential with those `claims` that the resident has. The credential names the holder's key, has no
    /// key-binding JWT yet, and ends in `~`. `status_url` builds the member `status` from the credential's id.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn issue_with_status(
        &self,
        resident: &Resident,
        claims: ClaimSet,
        holder: &HolderKey,
        now: Timestamp,
        status_url: impl FnOnce(Uuid) -> Option<String>,
    ) -> Result<String, KeyError> {
        let disclosures = claims
            .iter()
            .filter_map(|claim| Some((credential_name(claim), resident.claim(claim, now)?)))
            .map(|(name, value)| build_disclosure(name, &value))
            .collect::<Result<Vec<String>, KeyError>>()?;
        let mut digests: Vec<String> = disclosures.iter().map(|disclosure| sha256(disclosure)).collect();
        for _ in 0..DECOYS {
            digests.push(sha256(&random_salt()?));
        }
        // Sorted digests do not reveal the order of the claims.
        digests.sort_unstable();

        let id = Uuid::new_v4();
        let header = json!({"alg": "ES256", "typ": "vc+sd-jwt", "kid": self.key_id});
        let mut payload = json!({
            "iss": self.name,
            "id": id,
            "iat": now.seconds(),
            "exp": (now + CREDENTIAL_LIFETIME).seconds(),
            "_sd_alg": "SHA-256",
            "_sd": digests,
            "cnf": {"jwk": holder.0.public_jwk()},
        });
        if let Some(url) = status_url(id) {
            payload["status"] = json!(url);
        }
        let mut credential = self.key.sign(&header, &payload)?;
        credential.push('~');
        for disclosure in disclosures {
            credential.push_str(&disclosure);
            credential.push('~');
        }
        Ok(credential)
    }
}

impl SandboxIssuer {
    /// Signs the issuer's answer about the state of a credential.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn status_answer(
        &self,
        credential_id: Uuid,
        state: PublishedState,
        now: Timestamp,
    ) -> Result<String, KeyError> {
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": self.key_id});
        let expiry = (now + STATUS_LIFETIME).seconds();
        let payload = json!({"iss": self.name, "sub": credential_id, "status": state.as_str(), "iat": now.seconds(),
            "exp": expiry});
        self.key.sign(&header, &payload)
    }
}

/// Builds the disclosure of a claim, with a random salt (RFC 9901 §4.2.1).
fn build_disclosure(name: &str, value: &Value) -> Result<String, KeyError> {
    Ok(URL_SAFE_NO_PAD.encode(json!([random_salt()?, name, value]).to_string()))
}

/// Generates 128 random bits, in base64url.
fn random_salt() -> Result<String, KeyError> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| KeyError::Library)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Computes the SHA-256 of a text, in base64url.
fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

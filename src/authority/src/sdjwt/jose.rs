//! Checks of JOSE headers (RFC 7515 §4). A header must name the only accepted algorithm.

use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;
use super::status::StatusFault;

/// The only accepted `alg`.
const ALGORITHM: &str = "ES256";

/// The types of an SD-JWT credential: that of the authority, and its newer name.
const CREDENTIAL_TYPES: [&str; 2] = ["vc+sd-jwt", "dc+sd-jwt"];

/// The `typ` of a key binding (RFC 9901 §4.3).
const KEY_BINDING_TYPE: &str = "kb+jwt";

/// The `typ` of a Token Status List.
const STATUS_LIST_TYPE: &str = "statuslist+jwt";

/// Header parameters that contain or reference a key.
const KEY_PARAMETERS: [&str; 4] = ["jwk", "x5c", "jku", "x5u"];

/// Checks the header of the issuer's JWS and returns its `kid`.
pub(super) fn check_issuer_header(header: &Map<String, Value>) -> Result<&str, CredentialRefusal> {
    if text(header, "alg") != Some(ALGORITHM) {
        return Err(CredentialRefusal::AlgorithmNotAllowed);
    }
    if header.contains_key("crit") {
        return Err(CredentialRefusal::CriticalHeader);
    }
    if !text(header, "typ").is_some_and(|typ| CREDENTIAL_TYPES.contains(&typ)) {
        return Err(CredentialRefusal::TypeNotAllowed);
    }
    if KEY_PARAMETERS.iter().any(|name| header.contains_key(*name)) {
        return Err(CredentialRefusal::KeyInToken);
    }
    text(header, "kid").ok_or(CredentialRefusal::KeyIdMissing)
}

/// Checks the header of a KB-JWT.
pub(super) fn check_key_binding_header(header: &Map<String, Value>) -> Result<(), CredentialRefusal> {
    if text(header, "alg") != Some(ALGORITHM) {
        return Err(CredentialRefusal::KeyBindingAlgorithm);
    }
    if header.contains_key("crit") {
        return Err(CredentialRefusal::KeyBindingCritical);
    }
    if text(header, "typ") != Some(KEY_BINDING_TYPE) {
        return Err(CredentialRefusal::KeyBindingType);
    }
    Ok(())
}

/// Checks the header of a status answer, the issuer's statement about a credential's state, and returns its `kid`. A
/// list must have the type of lists. The answer about a single credential may have any type but those of credentials
/// and key bindings.
pub(super) fn check_status_header(header: &Map<String, Value>, is_list: bool) -> Result<&str, StatusFault> {
    if text(header, "alg") != Some(ALGORITHM)
        || header.contains_key("crit")
        || KEY_PARAMETERS.iter().any(|name| header.contains_key(*name))
    {
        return Err(StatusFault::Unsigned);
    }
    let typ = text(header, "typ");
    let has_allowed_type = if is_list {
        typ == Some(STATUS_LIST_TYPE)
    } else {
        typ != Some(KEY_BINDING_TYPE) && !typ.is_some_and(|typ| CREDENTIAL_TYPES.contains(&typ))
    };
    if !has_allowed_type {
        return Err(StatusFault::Malformed);
    }
    text(header, "kid").ok_or(StatusFault::Unsigned)
}

fn text<'a>(header: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    header.get(name).and_then(Value::as_str)
}

//! Envelope encryption: the settings contain the encryption key, encrypted for a key on a token. The token decrypts it
//! once, at the start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsOaepParams, PkcsOaepSource};
use cryptoki::mechanism::{Mechanism, MechanismType};
use zeroize::Zeroizing;

use super::module::{Module, TokenError};
use super::uri::KeyUri;

/// Error for an encryption key of another form.
const FORM_ERROR: &str = "must be 32 bytes, encrypted with RSA-OAEP for the key on the token, in Base64";

/// Decrypts a key that was encrypted with RSA-OAEP (RFC 8017 §7.1), with SHA-256 or SHA-1.
///
/// # Errors
/// The token cannot be used, or the bytes are not encrypted for it.
pub(crate) fn unwrap_key(uri: &KeyUri, wrapped: &str) -> Result<Zeroizing<Vec<u8>>, TokenError> {
    let wrapped = STANDARD.decode(wrapped.trim()).map_err(|_| TokenError::Unwrapped(FORM_ERROR))?;
    let module = Module::load(uri)?;
    let key_session = module.call(|library| module.open(library))?;
    let hashes_with_masks =
        [(MechanismType::SHA256, PkcsMgfType::MGF1_SHA256), (MechanismType::SHA1, PkcsMgfType::MGF1_SHA1)];
    let decrypt = |(hash, mask): (MechanismType, PkcsMgfType)| {
        let mechanism = Mechanism::RsaPkcsOaep(PkcsOaepParams::new(hash, mask, PkcsOaepSource::empty()));
        key_session.session.decrypt(&mechanism, key_session.key, &wrapped).ok().map(Zeroizing::new)
    };
    let key = hashes_with_masks.into_iter().find_map(decrypt).ok_or(TokenError::Unwrapped(FORM_ERROR))?;
    if key.len() == 32 { Ok(key) } else { Err(TokenError::Unwrapped(FORM_ERROR)) }
}

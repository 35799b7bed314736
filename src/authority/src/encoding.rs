//! Base64url without padding (RFC 7515 §2). Decoding is strict: no padding, no other alphabet, no stray
//! trailing bits.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Appends the encoding of `bytes`.
pub(crate) fn push_base64url(bytes: &[u8], text: &mut String) {
    URL_SAFE_NO_PAD.encode_string(bytes, text);
}

/// Encodes `bytes`.
pub(crate) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a text; `None` if it is not in the strict form.
pub(crate) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Encodes a SHA-256 digest into 43 characters, without an allocation. Returns false if it does not fit.
pub(crate) fn base64url_digest(digest: &[u8], encoded: &mut [u8; 43]) -> bool {
    URL_SAFE_NO_PAD.encode_slice(digest, encoded).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_strict_form_is_decoded() {
        assert_eq!(from_base64url("-_8"), Some(vec![0xfb, 0xff]));
        for text in ["-_8=", "+/8", "-_9", "-_8 ", "-", "é"] {
            assert_eq!(from_base64url(text), None, "{text}");
        }
    }
}

//! A file that JSON carries as Base64: a signed PDF, a locker document, an e-stamp.
//!
//! The file stays in Base64 from the connector's body to the client's webhook. It is checked in chunks and
//! never decoded as a whole.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::limits::{FILE_BYTES_MAX, FILE_CHARS_MAX};

/// Characters that are decoded at a time.
const CHUNK_CHARS: usize = 4_096;
/// Bytes that a chunk encodes.
const CHUNK_BYTES: usize = CHUNK_CHARS / 4 * 3;

/// A file of 1 byte to 10 MiB as standard Base64 with padding. `Debug` hides it, and it cannot be cloned.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base64File(Box<str>);

impl Base64File {
    /// Checks the Base64 text of a file, and takes it over without a copy.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn new(text: Box<str>) -> Result<Self, String> {
        if text.len() > FILE_CHARS_MAX {
            return Err(format!("must be Base64 of at most {FILE_BYTES_MAX} bytes"));
        }
        let mut chunks = text.as_bytes().chunks(CHUNK_CHARS).peekable();
        let mut is_valid = chunks.peek().is_some();
        let (mut decoded, mut bytes) = ([0; CHUNK_BYTES], 0);
        while let Some(chunk) = chunks.next() {
            let length = STANDARD.decode_slice(chunk, &mut decoded);
            // Padding ends a file, so only the last chunk may be shorter.
            is_valid &= length.as_ref().is_ok_and(|length| chunks.peek().is_none() || *length == CHUNK_BYTES);
            bytes += length.unwrap_or_default();
        }
        // The limit on characters alone would allow two more bytes.
        if bytes > FILE_BYTES_MAX {
            return Err(format!("must be Base64 of at most {FILE_BYTES_MAX} bytes"));
        }
        if is_valid {
            Ok(Self(text))
        } else {
            Err("must be standard Base64 with padding and without line breaks".to_owned())
        }
    }

    /// Returns the Base64 text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Base64File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64File({} characters)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize) -> Box<str> {
        STANDARD.encode(vec![0x5A; bytes]).into()
    }

    #[test]
    fn a_file_of_at_most_ten_mebibytes_is_accepted_without_a_copy() {
        let text = file(FILE_BYTES_MAX);
        assert_eq!(text.len(), FILE_CHARS_MAX);
        let address = text.as_ptr();
        let accepted = Base64File::new(text).unwrap();
        assert_eq!(accepted.as_str().as_ptr(), address, "the text was moved, not copied");
        assert!(Base64File::new(file(FILE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn only_standard_base64_is_accepted() {
        for length in [1, 2, 3, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 2] {
            assert!(Base64File::new(file(length)).is_ok(), "{length}");
        }
        let inner_padding = format!("{}{}", file(CHUNK_BYTES - 1), file(3));
        for text in ["", "A", "AA", "AAA", "AB==", "_-__", "AAAA\nAAAA", "AAA=AAAA", &inner_padding] {
            assert!(Base64File::new(text.into()).is_err(), "{text}");
        }
        assert!(!format!("{:?}", Base64File::new("QUJD".into()).unwrap()).contains("QUJD"));
    }
}

//! A small picture of an operator's: the identity app's icon, or a client's logo.

/// A PNG or SVG file of at most [`Icon::BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Icon {
    /// Bytes of a picture. The pages are small, and so is what they load.
    pub const BYTES_MAX: usize = 16_384;

    /// A PNG or SVG file; `None` if it is neither, or too large.
    #[must_use]
    pub fn of_file(bytes: Vec<u8>) -> Option<Self> {
        let begins = |with: &[u8]| bytes.trim_ascii_start().starts_with(with);
        let content_type = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            "image/png"
        } else if begins(b"<svg") || begins(b"<?xml") {
            "image/svg+xml"
        } else {
            return None;
        };
        (bytes.len() <= Self::BYTES_MAX).then_some(Self { content_type, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icon_is_a_small_png_or_svg_file() {
        let of = |bytes: &[u8]| Icon::of_file(bytes.to_vec()).map(|icon| icon.content_type);
        assert_eq!(of(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(of(b"\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>"), Some("image/svg+xml"));
        assert_eq!(of(b"<?xml version=\"1.0\"?><svg/>"), Some("image/svg+xml"));
        for other in [&b""[..], b"GIF89a", b"<html>", &[b"<svg>".as_slice(), &[b' '; Icon::BYTES_MAX]].concat()] {
            assert_eq!(of(other), None);
        }
    }
}

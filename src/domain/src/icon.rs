//! A small picture from an operator: the identity app's icon, a client's logo, or the picture of an event.

/// A PNG or SVG file of at most [`Icon::BYTES_MAX`] bytes, or as the picture of an event a PNG, SVG or JPEG file of at
/// most [`Icon::PICTURE_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// The media type.
    pub content_type: &'static str,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

impl Icon {
    /// Maximum bytes of an icon or a logo, to keep pages small.
    pub const BYTES_MAX: usize = 16_384;
    /// Maximum bytes of the picture of an event. The page then loads within 1.2 s at 400 kbit/s.
    pub const PICTURE_BYTES_MAX: usize = 24_576;

    /// Reads a PNG or SVG file; `None` if it is neither, or too large.
    #[must_use]
    pub fn from_icon_file(bytes: Vec<u8>) -> Option<Self> {
        Self::from_picture_file(bytes).filter(|icon| icon.content_type != JPEG && icon.bytes.len() <= Self::BYTES_MAX)
    }

    /// Reads a JPEG, PNG or SVG file; `None` if it is none of them, or too large.
    #[must_use]
    pub fn from_picture_file(bytes: Vec<u8>) -> Option<Self> {
        let content_type = if is_png(&bytes) {
            "image/png"
        } else if is_jpeg(&bytes) {
            JPEG
        } else if std::str::from_utf8(&bytes).is_ok_and(is_svg) {
            "image/svg+xml"
        } else {
            return None;
        };
        (bytes.len() <= Self::PICTURE_BYTES_MAX).then_some(Self { content_type, bytes })
    }
}

const JPEG: &str = "image/jpeg";

/// Returns true if the file has the first and the last marker of a JPEG.
fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xd8\xff") && bytes.ends_with(b"\xff\xd9")
}

/// Returns true if the file has the signature, the first and the last chunk of a PNG.
fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR") && bytes.ends_with(b"\0\0\0\0IEND\xaeB`\x82")
}

/// Returns true if the first element of the file is `svg`.
fn is_svg(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_ascii_start();
    for _ in 0..PROLOGUE_MAX {
        let (begin, end) = match rest {
            _ if rest.starts_with("<?") => ("<?", "?>"),
            _ if rest.starts_with("<!--") => ("<!--", "-->"),
            _ if rest.starts_with("<!DOCTYPE svg") => ("<!", ">"),
            _ => break,
        };
        let Some((_, after)) = rest[begin.len()..].split_once(end) else { return false };
        rest = after.trim_ascii_start();
    }
    rest.strip_prefix("<svg").is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n', '>', '/']))
}

/// Maximum number of declarations, comments and processing instructions before the `svg` element.
const PROLOGUE_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icon_is_a_small_png_or_svg_file() {
        let content_type = |bytes: &[u8]| Icon::from_icon_file(bytes.to_vec()).map(|icon| icon.content_type);
        assert_eq!(content_type(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR...\0\0\0\0IEND\xaeB`\x82"), Some("image/png"));
        assert_eq!(
            content_type(b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- made --><!DOCTYPE svg PUBLIC 'x'>\n<svg\n/>"),
            Some("image/svg+xml")
        );
        assert_eq!(content_type(b"\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>"), Some("image/svg+xml"));
        assert_eq!(content_type(b"<?xml version=\"1.0\"?><svg/>"), Some("image/svg+xml"));
        for other in [
            &b""[..],
            b"GIF89a",
            b"<html>",
            b"<?xml version='1.0'?><html/>",
            b"<!-- <svg>",
            b"<svgs/>",
            b"\x89PNG\r\n\x1a\nrest",
            &[b"<svg>".as_slice(), &[b' '; Icon::BYTES_MAX]].concat(),
            b"\xff\xd8\xff\xe0..\xff\xd9",
        ] {
            assert_eq!(content_type(other), None);
        }
        let picture = |bytes: &[u8]| Icon::from_picture_file(bytes.to_vec()).map(|icon| icon.content_type);
        assert_eq!(picture(b"\xff\xd8\xff\xe0..\xff\xd9"), Some("image/jpeg"));
        assert_eq!(picture(&[b"<svg>".as_slice(), &[b' '; Icon::BYTES_MAX]].concat()), Some("image/svg+xml"));
        for other in
            [&b"\xff\xd8\xff\xe0..."[..], b"<html>", &[b"<svg>".as_slice(), &[b' '; Icon::PICTURE_BYTES_MAX]].concat()]
        {
            assert_eq!(picture(other), None);
        }
    }
}

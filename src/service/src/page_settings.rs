//! What the operator has the pages say: how the identity app is called, how it looks and where it is installed from, and where
//! the privacy notice is. Everything may be left out.

use sakshi_domain::language::Language;

/// What the pages name and link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSettings {
    /// The identity app's name.
    pub app_name: Option<String>,
    /// Its name in some of the languages.
    pub app_names: Vec<(Language, String)>,
    /// Its icon.
    pub app_icon: Option<Icon>,
    /// Where it is installed from on Android; an https URL.
    pub android_store: Option<String>,
    /// The same on iPhone and iPad.
    pub ios_store: Option<String>,
    /// The privacy notice; an https URL.
    pub privacy_url: Option<String>,
}

impl PageSettings {
    /// The identity app's name in the language with this tag.
    #[must_use]
    pub fn app_name_in(&self, tag: &str) -> Option<&str> {
        let own = self.app_names.iter().find(|(language, _)| language.tag() == tag).map(|(_, name)| name);
        own.or(self.app_name.as_ref()).map(String::as_str)
    }
}

/// A picture, ready to be sent.
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

    #[test]
    fn a_language_without_a_name_of_its_own_has_the_common_one() {
        let hindi = Language::parse("hindi").unwrap();
        let pages = PageSettings {
            app_name: Some("Parichay".into()), app_names: vec![(hindi, "परिचय".into())], ..PageSettings::default()
        };
        assert_eq!((pages.app_name_in("hi"), pages.app_name_in("ta")), (Some("परिचय"), Some("Parichay")));
        assert_eq!(PageSettings::default().app_name_in("hi"), None);
    }
}

//! The brand of a client: its name and look on pages. Only the operator sets it, to prevent impersonation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::http_url::{HttpUrl, Schemes};

/// The brand of a client. An unset part has its default; an event's brand overrides its client's, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brand {
    /// The displayed name, if it differs from the client's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The logo.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "valid_or_unset")]
    pub logo: Option<LogoId>,
    /// The picture on event pages.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "valid_or_unset")]
    pub picture: Option<LogoId>,
    /// The colour of buttons and links.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "valid_or_unset")]
    pub colour: Option<Colour>,
    /// The contact for people who need help.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "valid_or_unset")]
    pub support: Option<Contact>,
    /// The client's privacy notice.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub privacy_url: Option<HttpUrl>,
}

/// Reads a part. A stored value that the present rules refuse counts as unset.
fn valid_or_unset<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

impl Brand {
    /// Returns true if no part is set.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    /// Fills unset parts from a fallback.
    #[must_use]
    pub fn or(self, fallback: &Self) -> Self {
        Self {
            name: self.name.or_else(|| fallback.name.clone()),
            logo: self.logo.or(fallback.logo),
            picture: self.picture.or(fallback.picture),
            colour: self.colour.or(fallback.colour),
            support: self.support.or_else(|| fallback.support.clone()),
            privacy_url: self.privacy_url.or_else(|| fallback.privacy_url.clone()),
        }
    }
}

/// A change to a brand: `None` leaves a part unchanged, `Some(None)` removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrandPatch {
    /// The new name.
    pub name: Option<Option<String>>,
    /// The new logo.
    pub logo: Option<Option<LogoId>>,
    /// The new picture.
    pub picture: Option<Option<LogoId>>,
    /// The new colour.
    pub colour: Option<Option<Colour>>,
    /// The new contact.
    pub support: Option<Option<Contact>>,
    /// The URL of the new privacy notice.
    pub privacy_url: Option<Option<HttpUrl>>,
}

impl Brand {
    /// Returns the ids of the logo and the picture.
    pub fn files(&self) -> impl Iterator<Item = LogoId> {
        self.logo.into_iter().chain(self.picture)
    }

    /// Applies a change.
    pub fn apply(&mut self, patch: BrandPatch) {
        let BrandPatch { name, logo, picture, colour, support, privacy_url } = patch;
        self.name = name.unwrap_or_else(|| self.name.take());
        self.logo = logo.unwrap_or(self.logo);
        self.picture = picture.unwrap_or(self.picture);
        self.colour = colour.unwrap_or(self.colour);
        self.support = support.unwrap_or_else(|| self.support.take());
        self.privacy_url = privacy_url.unwrap_or_else(|| self.privacy_url.take());
    }
}

/// Id of an uploaded logo or picture: 128 random bits, as 32 hexadecimal digits. Anyone with the id can load the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogoId(pub [u8; 16]);

impl fmt::Display for LogoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for LogoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogoId({self})")
    }
}

impl FromStr for LogoId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let has_valid_digits = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| has_valid_digits);
        number.map(|number| Self(number.to_be_bytes())).ok_or("must be 32 hexadecimal digits")
    }
}

/// A colour with enough contrast to the pages' light backgrounds, as `#rrggbb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Colour([u8; 3]);

/// Minimum contrast of a colour to light backgrounds (WCAG 2.2, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;
/// Contrast to dark backgrounds (WCAG 2.2, 1.4.6), for which a colour is lightened.
const CONTRAST_DARK: f64 = 7.0;
/// The darkest of the light backgrounds (`--field` of the style sheet).
const LIGHT_BACKGROUND: [u8; 3] = [0xf3, 0xf5, 0xf9];
/// The lightest of the dark backgrounds.
const DARK_BACKGROUND: [u8; 3] = [0x1e, 0x26, 0x32];
/// Share of black or white in a hovered button, in percent.
const HOVER_SHARE: u16 = 18;

/// A colour and its hover variant, in one scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accent {
    /// Buttons and links.
    pub plain: [u8; 3],
    /// Hovered buttons and links.
    pub deep: [u8; 3],
}

impl Colour {
    /// Returns the colour for light backgrounds.
    #[must_use]
    pub fn light(self) -> Accent {
        Accent { plain: self.0, deep: mix(self.0, [0; 3], HOVER_SHARE) }
    }

    /// Returns the colour for dark backgrounds, lightened as far as needed.
    #[must_use]
    pub fn dark(self) -> Accent {
        let lighter = (0..=100).step_by(4).map(|share| mix(self.0, [0xff; 3], share));
        let plain =
            lighter.into_iter().find(|colour| contrast(*colour, DARK_BACKGROUND) >= CONTRAST_DARK).unwrap_or([0xff; 3]);
        Accent { plain, deep: mix(plain, [0xff; 3], HOVER_SHARE) }
    }
}

impl FromStr for Colour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text
            .strip_prefix('#')
            .filter(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number =
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or("must be a colour such as #7a1f3d")?;
        let [_, red, green, blue] = number.to_be_bytes();
        let contrast = contrast([red, green, blue], LIGHT_BACKGROUND);
        if contrast >= CONTRAST_MIN {
            Ok(Self([red, green, blue]))
        } else {
            Err(format!(
                "must be darker: its contrast with the page is {contrast:.1}, and at least {CONTRAST_MIN} is needed"
            ))
        }
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&css(self.0))
    }
}

/// Formats a colour for style sheets.
#[must_use]
pub fn css([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Mixes a colour with a share of another colour, in percent.
fn mix(colour: [u8; 3], with: [u8; 3], share: u16) -> [u8; 3] {
    let mix_part = |own: u8, other: u8| ((u16::from(own) * (100 - share) + u16::from(other) * share) / 100) as u8;
    [mix_part(colour[0], with[0]), mix_part(colour[1], with[1]), mix_part(colour[2], with[2])]
}

/// Returns the contrast of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio").
fn contrast(first: [u8; 3], second: [u8; 3]) -> f64 {
    let (first, second) = (luminance(first), luminance(second));
    (first.max(second) + 0.05) / (first.min(second) + 0.05)
}

/// Returns the luminance of a colour (WCAG 2.2, "relative luminance").
fn luminance(colour: [u8; 3]) -> f64 {
    let linear = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

/// An e-mail address, a telephone number or an https URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Contact(String);

/// Maximum characters of a contact.
const CONTACT_CHARS_MAX: usize = 200;

impl Contact {
    /// Returns the contact for display.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.strip_prefix("https://").map_or(&self.0, |rest| rest.trim_end_matches('/'))
    }

    /// Returns the `https:`, `mailto:` or `tel:` link to the contact.
    #[must_use]
    pub fn link(&self) -> String {
        match &*self.0 {
            url if url.starts_with("https://") => url.to_owned(),
            address if address.contains('@') => format!("mailto:{address}"),
            number => format!("tel:{}", number.replace([' ', '-'], "")),
        }
    }
}

impl FromStr for Contact {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain =
            text.len() <= CONTACT_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        let is_url = HttpUrl::parse(text, Schemes::HttpsOnly).is_ok();
        let is_address_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte))
        };
        let is_address = text
            .split_once('@')
            .is_some_and(|(name, host)| is_address_part(name) && is_address_part(host) && host.contains('.'));
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let number = text.strip_prefix('+').unwrap_or(text);
        let is_number = (3..=15).contains(&digits)
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ' || byte == b'-');
        let is_valid = is_plain && (is_url || is_address || is_number);
        is_valid.then(|| Self(text.to_owned())).ok_or("must be an e-mail address, a telephone number or an https URL")
    }
}

/// Implements `TryFrom<String>` for types that are stored as text.
macro_rules! impl_try_from_string {
    ($($type:ty),+) => {
        $(impl TryFrom<String> for $type {
            type Error = <Self as FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        })+
    };
}
impl_try_from_string!(LogoId, Colour, Contact);

impl From<LogoId> for String {
    fn from(id: LogoId) -> Self {
        id.to_string()
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> Self {
        colour.to_string()
    }
}

impl From<Contact> for String {
    fn from(contact: Contact) -> Self {
        contact.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_that_is_too_light_is_refused_with_its_contrast() {
        assert_eq!("#7A1F3D".parse::<Colour>().unwrap().to_string(), "#7a1f3d");
        let refusal = |text: &str| text.parse::<Colour>().unwrap_err();
        assert_eq!(refusal("#ffcc00"), "must be darker: its contrast with the page is 1.4, and at least 4.5 is needed");
        for text in ["", "7a1f3d", "#7a1f3", "#7a1f3d0", "#+a1f3d", "red", "#é1f3d"] {
            assert_eq!(refusal(text), "must be a colour such as #7a1f3d", "{text}");
        }
    }

    #[test]
    fn every_accepted_colour_is_readable_in_both_schemes_and_when_hovered() {
        let steps = (0..=255_u8).step_by(15);
        let all = steps.clone().flat_map(|red| {
            steps.clone().flat_map(move |green| (0..=255).step_by(15).map(move |blue| [red, green, blue]))
        });
        let accepted: Vec<Colour> = all.filter_map(|colour| css(colour).parse().ok()).collect();
        assert!(accepted.len() > 500, "{}", accepted.len());
        for colour in accepted {
            let (light, dark) = (colour.light(), colour.dark());
            for plain in [light.plain, light.deep] {
                // Button text is white.
                assert!(
                    contrast(plain, LIGHT_BACKGROUND) >= CONTRAST_MIN && contrast(plain, [0xff; 3]) >= CONTRAST_MIN,
                    "{colour}"
                );
            }
            for plain in [dark.plain, dark.deep] {
                // Button text is as dark as the page.
                assert!(
                    contrast(plain, DARK_BACKGROUND) >= CONTRAST_DARK
                        && contrast(plain, [0x0d, 0x11, 0x18]) >= CONTRAST_DARK,
                    "{colour}"
                );
            }
        }
        assert!((contrast([0; 3], [0xff; 3]) - 21.0).abs() < 1e-9);
    }

    #[test]
    fn a_contact_is_an_address_a_number_or_a_url() {
        let read = |text: &str| text.parse::<Contact>().map(|contact| (contact.as_str().to_owned(), contact.link()));
        assert_eq!(read("help@bank.example").unwrap(), ("help@bank.example".into(), "mailto:help@bank.example".into()));
        assert_eq!(read("+91 80-1234 5678").unwrap(), ("+91 80-1234 5678".into(), "tel:+918012345678".into()));
        assert_eq!(
            read("https://bank.example/help/").unwrap(),
            ("bank.example/help".into(), "https://bank.example/help/".into())
        );
        for text in [
            "",
            "12",
            "@",
            "a@b",
            "a@b.c?cc=x",
            "http://bank.example/",
            "javascript:alert(1)",
            "call us",
            "+",
            "1+2345",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_events_brand_overrides_its_clients() {
        let brand = |name: Option<&str>, colour: Option<&str>| Brand {
            name: name.map(str::to_owned),
            colour: colour.map(|colour| colour.parse().unwrap()),
            ..Brand::default()
        };
        let both = brand(Some("Fair"), None).or(&brand(Some("Bank"), Some("#7a1f3d")));
        assert_eq!(both, brand(Some("Fair"), Some("#7a1f3d")));
        let stored = serde_json::to_string(&both).unwrap();
        assert_eq!(stored, r##"{"name":"Fair","colour":"#7a1f3d"}"##);
        assert_eq!(serde_json::from_str::<Brand>(&stored).unwrap(), both);
        let light =
            serde_json::from_str::<Brand>(r##"{"name":"Fair","colour":"#ffcc00","support":"call us"}"##).unwrap();
        assert_eq!(light, brand(Some("Fair"), None), "refused values count as unset");
    }

    #[test]
    fn a_change_sets_and_removes_the_named_parts_only() {
        let mut brand = Brand { name: Some("Bank".into()), logo: Some(LogoId([1; 16])), ..Brand::default() };
        brand.apply(BrandPatch {
            name: Some(None),
            support: Some("help@bank.example".parse().ok()),
            ..BrandPatch::default()
        });
        assert_eq!(
            brand,
            Brand { logo: Some(LogoId([1; 16])), support: "help@bank.example".parse().ok(), ..Brand::default() }
        );
    }

    #[test]
    fn the_id_of_a_logo_survives_formatting() {
        let id = LogoId([7; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in [
            "",
            "7",
            "+0000000000000000000000000000000",
            "0707070707070707070707070707070G",
            "070707070707070707070707070707070",
        ] {
            assert!(text.parse::<LogoId>().is_err(), "{text}");
        }
    }
}

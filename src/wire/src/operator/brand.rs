//! The brand of a client or an event.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::brand::{Brand, Colour, Contact, LogoId};
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::icon::Icon;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field, body, described};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::{Change, Label};

body! { request
    /// A change of a brand. Absent parts stay unchanged; null removes a part.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchBrandRequest {
        /// The name shown to people instead of the name of the client or organiser.
        name: Change<Option<Label>>,
        /// The logo: a PNG or SVG file of at most 16,384 bytes, in Base64. Shown at 48 by 48 pixels.
        logo: Change<Option<LogoFile>>,
        /// The picture on event pages, as wide as the page and two fifths as high: a JPEG, PNG or SVG file of at most
        /// 24,576 bytes, in Base64.
        picture: Change<Option<PictureFile>>,
        /// The colour of buttons and links, such as `#7a1f3d`, with a contrast of at least 4.5 to the page. Dark pages
        /// lighten it.
        colour: Change<Option<Colour>>,
        /// The contact for people who need help: an e-mail address, a telephone number or an https URL.
        support: Change<Option<Contact>>,
        /// The URL of the privacy notice.
        privacy_url: Change<Option<HttpUrl>>,
    }
}

body! { response
    /// A brand. A part that is null has its default. An event's brand overrides its client's, part by part.
    pub struct BrandResponse {
        /// The name shown to people.
        name: Option<String>,
        /// The path of the logo.
        logo_url: Option<String>,
        /// The path of the picture on event pages.
        picture_url: Option<String>,
        /// The colour of buttons and links.
        colour: Option<Colour>,
        /// The contact for people who need help.
        support: Option<Contact>,
        /// The URL of the privacy notice.
        privacy_url: Option<HttpUrl>,
    }
}

impl From<Brand> for BrandResponse {
    fn from(brand: Brand) -> Self {
        let Brand { name, logo, picture, colour, support, privacy_url } = brand;
        Self { name, logo_url: logo.map(logo_path), picture_url: picture.map(logo_path), colour, support, privacy_url }
    }
}

/// Returns the path of a logo or picture on the public listener.
#[must_use]
pub fn logo_path(id: LogoId) -> String {
    format!("/assets/logo/{id}")
}

/// A logo in Base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoFile(pub Icon);

/// A picture in Base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile(pub Icon);

/// Declares files in Base64: the parser of their bytes, the accepted kinds and the largest size in bytes.
macro_rules! files {
    ($($file:ident: $parse:expr, $kinds:literal, $bytes_max:expr;)+) => {
        $(impl Field for $file {
            fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
                reader.parsed(value, |text| {
                    let icon = STANDARD.decode(text).ok().and_then($parse);
                    icon.map(Self).ok_or_else(|| format!("must be a {} file of at most {} bytes in Base64", $kinds,
                        $bytes_max))
                })
            }
        }

        impl Describe for $file {
            fn schema() -> Value {
                json!({ "type": "string", "contentEncoding": "base64", "maxLength": $bytes_max.div_ceil(3) * 4 })
            }
        }

        impl Serialize for $file {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&STANDARD.encode(&self.0.bytes))
            }
        })+
    };
}
files! {
    LogoFile: Icon::from_icon_file, "PNG or SVG", Icon::BYTES_MAX;
    PictureFile: Icon::from_picture_file, "JPEG, PNG or SVG", Icon::PICTURE_BYTES_MAX;
}

impl Field for Colour {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, str::parse::<Self>)
    }
}

impl Field for Contact {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, str::parse::<Self>)
    }
}

described! {
    Colour: { "type": "string", "pattern": "^#[0-9a-fA-F]{6}$" }
    Contact: { "type": "string", "minLength": 3, "maxLength": 200 }
}

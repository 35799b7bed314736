//! The brand of a client or an event.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::brand::{Brand, Colour, Contact, LogoId};
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::icon::Icon;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::body::{Describe, Field, body, described};
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Change, Label};

body! { request
    /// A change of a brand; null removes a part.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchBrandRequest {
        /// The name that people read instead of the client's, or the organiser's.
        name: Change<Option<Label>>,
        /// A PNG or SVG file of at most 16,384 bytes, in Base64. It is shown at 48 by 48 pixels.
        logo: Change<Option<LogoFile>>,
        /// The picture that the pages of events show, as wide as the page and two fifths as high: a JPEG, PNG or SVG
        /// file in Base64.
        picture: Change<Option<PictureFile>>,
        /// The colour of buttons and links, such as `#7a1f3d`. One that is too light to be read is refused; dark pages
        /// lighten it.
        colour: Change<Option<Colour>>,
        /// The contact for people who need help: an e-mail address, a telephone number or an https URL.
        support: Change<Option<Contact>>,
        /// The privacy notice.
        privacy_url: Change<Option<HttpUrl>>,
    }
}

body! { answer
    /// A brand. Parts that are null are as without a brand; an event's brand overrides its client's, part by part.
    pub struct BrandResponse {
        /// The name that people read.
        name: Option<String>,
        /// The path of the logo.
        logo_url: Option<String>,
        /// The path of the picture that the pages of events show.
        picture_url: Option<String>,
        /// The colour of buttons and links.
        colour: Option<Colour>,
        /// The contact for people who need help.
        support: Option<Contact>,
        /// The privacy notice.
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

/// Declares files in Base64, with the parser of their bytes, their kinds and their size limit.
macro_rules! files {
    ($($file:ident: $of:expr, $kinds:literal, $most:expr;)+) => {
        $(impl Field for $file {
            fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
                place.parsed(value, |text| {
                    let icon = STANDARD.decode(text).ok().and_then($of);
                    icon.map(Self).ok_or_else(|| format!("must be a {} file of at most {} bytes in Base64", $kinds,
                        $most))
                })
            }
        }

        impl Describe for $file {
            fn schema() -> Value {
                json!({ "type": "string", "contentEncoding": "base64", "maxLength": $most.div_ceil(3) * 4 })
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
    LogoFile: Icon::of_file, "PNG or SVG", Icon::BYTES_MAX;
    PictureFile: Icon::of_picture, "JPEG, PNG or SVG", Icon::PICTURE_BYTES_MAX;
}

impl Field for Colour {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.parsed(value, str::parse::<Self>)
    }
}

impl Field for Contact {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.parsed(value, str::parse::<Self>)
    }
}

described! {
    Colour: { "type": "string", "pattern": "^#[0-9a-fA-F]{6}$" }
    Contact: { "type": "string", "minLength": 3, "maxLength": 200 }
}

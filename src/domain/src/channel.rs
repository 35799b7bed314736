//! The channel on which a person reaches the identity app (specification, OVSE rules 1 to 3).

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, Engine as _};
use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;
use crate::limits::ANDROID_PACKAGE_CHARS_MAX;

/// The Android app that sends the intent and may receive its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AndroidApp {
    /// The package id, for example `com.example.app`.
    pub app_id: String,
    /// Base64 of the SHA-256 digest of the app's signing certificate.
    pub app_signature: String,
}

/// The channel of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A mobile browser opens the verify page.
    Web,
    /// A counter, kiosk or desktop shows a QR code.
    Qr,
    /// A native Android app sends an intent.
    Android(Box<AndroidApp>),
    /// A native iOS app opens the identity app's URL.
    Ios,
}

impl Channel {
    /// Reads `channel`, `app_id` and `app_signature` of a request.
    ///
    /// # Errors
    /// [`Invalid`] for an unknown channel, and for `app_id` or `app_signature` alone, malformed, or on another channel.
    pub fn parse(channel: &str, app_id: Option<&str>, app_signature: Option<&str>) -> Result<Self, Invalid> {
        let mut invalid = Invalid::none();
        if channel != "app" {
            for (field, value) in [("app_id", app_id), ("app_signature", app_signature)] {
                if value.is_some() {
                    invalid.add(field, "is only for channel app");
                }
            }
        }
        let parsed = match (channel, app_id, app_signature) {
            ("web", ..) => Self::Web,
            ("qr", ..) => Self::Qr,
            ("app", None, None) => Self::Ios,
            ("app", Some(app_id), Some(app_signature)) => {
                invalid.check("app_id", check_package(app_id));
                let app_signature = normalise_signature(app_signature).unwrap_or_else(|sentence| {
                    invalid.add("app_signature", sentence);
                    String::new()
                });
                Self::Android(Box::new(AndroidApp { app_id: app_id.into(), app_signature }))
            }
            ("app", Some(_), None) => return Err(Invalid::one("app_signature", "is required together with app_id")),
            ("app", None, Some(_)) => return Err(Invalid::one("app_id", "is required together with app_signature")),
            _ => {
                invalid.add("channel", "must be web, qr or app");
                Self::Web
            }
        };
        invalid.or_ok().map(|()| parsed)
    }

    /// Returns the name of the channel in the API.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Qr => "qr",
            Self::Android(_) | Self::Ios => "app",
        }
    }
}

/// Checks the form of an Android package id.
fn check_package(text: &str) -> Result<(), &'static str> {
    let is_segment = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if text.len() <= ANDROID_PACKAGE_CHARS_MAX && text.contains('.') && text.split('.').all(is_segment) {
        return Ok(());
    }
    Err("must be an Android package id such as com.example.app; on iOS leave out app_id and app_signature")
}

/// Decoder of Base64 with or without padding.
const OPTIONAL_PADDING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Converts the digest of a certificate to standard Base64. Accepts the output of common tools: Base64 of either
/// alphabet, with or without padding and line ends, or hexadecimal with or without colons.
fn normalise_signature(text: &str) -> Result<String, &'static str> {
    let digest = parse_hexadecimal(text.trim()).or_else(|| {
        let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n' | ' ')).collect();
        OPTIONAL_PADDING.decode(plain.replace('-', "+").replace('_', "/")).ok()
    });
    match digest {
        Some(digest) if digest.len() == 32 => Ok(STANDARD.encode(digest)),
        _ => Err("must be the SHA-256 of the signing certificate, 32 bytes in Base64 or hexadecimal"),
    }
}

/// Reads 64 hexadecimal digits, optionally in pairs between colons.
fn parse_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let has_colons = text.contains(':');
    if has_colons && !text.split(':').all(|pair| pair.len() == 2) {
        return None;
    }
    let digits = text
        .bytes()
        .filter(|byte| *byte != b':')
        .map(|byte| char::from(byte).to_digit(16))
        .collect::<Option<Vec<u32>>>()?;
    (digits.len() == 64)
        .then(|| digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap_or_default()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 of a SHA-256 digest.
    const SIGNATURE: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

    #[test]
    fn channel_app_is_android_with_both_android_fields_and_ios_without() {
        assert_eq!(Channel::parse("app", None, None), Ok(Channel::Ios));
        let android = Channel::parse("app", Some("com.example.app"), Some(SIGNATURE)).unwrap();
        assert_eq!(android.name(), "app");
        assert!(matches!(android, Channel::Android(_)));
        assert!(Channel::parse("app", Some("com.example_2.app"), Some(SIGNATURE)).is_ok());
    }

    #[test]
    fn a_signature_in_any_common_form_becomes_standard_base64() {
        let hexadecimal =
            "E3:B0:C4:42:98:FC:1C:14:9A:FB:F4:C8:99:6F:B9:24:27:AE:41:E4:64:9B:93:4C:A4:95:99:1B:78:52:B8:55";
        for written in [
            SIGNATURE,
            SIGNATURE.trim_end_matches('='),
            "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
            "47DEQpj8HBSa+/TImW+5JCeuQeRk\r\nm5NMpJWZG3hSuFU=\n",
            hexadecimal,
            &hexadecimal.replace(':', "").to_lowercase(),
        ] {
            let Ok(Channel::Android(app)) = Channel::parse("app", Some("com.example.app"), Some(written)) else {
                panic!("{written}")
            };
            assert_eq!(app.app_signature, SIGNATURE, "{written}");
        }
        for wrong in ["", "zz", &hexadecimal[3..], &hexadecimal.replacen(':', "", 1), &SIGNATURE[4..]] {
            assert!(Channel::parse("app", Some("com.example.app"), Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn android_fields_alone_malformed_or_on_another_channel_are_refused() {
        let refused_field = |channel, app_id, signature| {
            Channel::parse(channel, app_id, signature).unwrap_err().fields()[0].field.clone()
        };
        assert_eq!(refused_field("app", Some("com.example.app"), None), "app_signature");
        assert_eq!(refused_field("app", None, Some(SIGNATURE)), "app_id");
        assert_eq!(refused_field("web", Some("com.example.app"), Some(SIGNATURE)), "app_id");
        let long_package = format!("com.{}", "x".repeat(ANDROID_PACKAGE_CHARS_MAX));
        for package in ["com.1x.app", "example", long_package.as_str()] {
            assert_eq!(refused_field("app", Some(package), Some(SIGNATURE)), "app_id", "{package}");
        }
        assert_eq!(refused_field("app", Some("com.example.app"), Some("c2hvcnQ=")), "app_signature");
        assert_eq!(refused_field("sms", None, None), "channel");
        assert_eq!(refused_field("WEB", None, None), "channel");
    }
}

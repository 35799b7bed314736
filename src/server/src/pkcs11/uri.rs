//! The URI of a key on a token: `pkcs11:` (RFC 7512), with the token's library and the file of the PIN.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use secrecy::SecretString;

use super::module::TokenError;

/// Error for a text that is not such a URI.
const FORM_ERROR: &str = "must be a PKCS#11 URI such as \
    pkcs11:token=NAME;object=NAME?module-path=/usr/lib/MODULE.so&pin-source=/run/secrets/pin, \
    with `token`, `serial` or `slot-id`, and `object` or `id`";

/// The URI of a key on a token.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyUri {
    /// The token's label.
    pub(super) token: Option<String>,
    /// The token's serial number.
    pub(super) serial: Option<String>,
    /// Number of the token's slot.
    pub(super) slot: Option<u64>,
    /// The key's label.
    pub(super) object: Option<String>,
    /// The key's id.
    pub(super) id: Option<Vec<u8>>,
    /// Library of the token.
    pub(super) module: PathBuf,
    /// The PIN of the token.
    pin: Pin,
}

#[derive(Clone, PartialEq, Eq)]
enum Pin {
    /// The PIN is in this file.
    File(PathBuf),
    /// The PIN is in the URI itself.
    Value(String),
    None,
}

/// Shows no PIN.
impl fmt::Debug for KeyUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pkcs11:token={:?};object={:?}", self.token, self.object)
    }
}

impl KeyUri {
    /// Returns true if a text starts with the scheme of a PKCS#11 URI.
    pub(crate) fn has_scheme(text: &str) -> bool {
        text.starts_with("pkcs11:")
    }

    /// Parses a URI.
    ///
    /// # Errors
    /// A sentence about the expected form.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix("pkcs11:").ok_or(FORM_ERROR)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut uri = Self {
            token: None,
            serial: None,
            slot: None,
            object: None,
            id: None,
            module: PathBuf::new(),
            pin: Pin::None,
        };
        for pair in path.split(';').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(FORM_ERROR)?;
            match name {
                "token" => set_once(&mut uri.token, decode(value)?)?,
                "serial" => set_once(&mut uri.serial, decode(value)?)?,
                "slot-id" => set_once(&mut uri.slot, value.parse().map_err(|_| FORM_ERROR)?)?,
                "object" => set_once(&mut uri.object, decode(value)?)?,
                "id" => set_once(&mut uri.id, percent_decode_str(value).collect())?,
                "type" if value == "private" => {}
                _ => return Err(FORM_ERROR),
            }
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(FORM_ERROR)?;
            let value = decode(value)?;
            match name {
                "module-path" if uri.module.as_os_str().is_empty() => uri.module = value.into(),
                "pin-source" if uri.pin == Pin::None => {
                    uri.pin = Pin::File(value.strip_prefix("file:").unwrap_or(&value).into());
                }
                "pin-value" if uri.pin == Pin::None => uri.pin = Pin::Value(value),
                _ => return Err(FORM_ERROR),
            }
        }
        let names_token = uri.token.is_some() || uri.serial.is_some() || uri.slot.is_some();
        let names_key = uri.object.is_some() || uri.id.is_some();
        if names_token && names_key && uri.module.is_absolute() { Ok(uri) } else { Err(FORM_ERROR) }
    }

    /// Returns a text without the PIN, if it is a URI that contains one.
    pub(crate) fn without_pin(text: &str) -> String {
        let Some((path, query)) = text.split_once('?').filter(|_| Self::has_scheme(text)) else {
            return text.to_owned();
        };
        let pairs: Vec<&str> =
            query.split('&').map(|pair| if pair.starts_with("pin-value=") { "pin-value=…" } else { pair }).collect();
        format!("{path}?{}", pairs.join("&"))
    }

    /// Returns true if the PIN is in the URI, visible to readers of the settings.
    pub(crate) const fn has_open_pin(&self) -> bool {
        matches!(self.pin, Pin::Value(_))
    }

    /// Returns the PIN, read again each time; `None` if the URI names none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn pin(&self) -> Result<Option<SecretString>, TokenError> {
        match &self.pin {
            Pin::None => Ok(None),
            Pin::Value(pin) => Ok(Some(pin.as_str().into())),
            Pin::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).into())),
                Err(error) => Err(TokenError::Pin { path: path.clone(), error: error.kind() }),
            },
        }
    }
}

/// Sets an attribute of the URI, which may occur only once.
fn set_once<T>(field: &mut Option<T>, value: T) -> Result<(), &'static str> {
    if field.is_some() {
        return Err(FORM_ERROR);
    }
    *field = Some(value);
    Ok(())
}

/// Decodes percent-encoded text.
fn decode(value: &str) -> Result<String, &'static str> {
    percent_decode_str(value).decode_utf8().map(String::from).map_err(|_| FORM_ERROR)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_uri_names_token_key_library_and_pin() {
        let text = "pkcs11:token=Bank%20HSM;object=intent;id=%01%ff;type=private?module-path=/usr/lib/m.so&pin-source=file:/run/pin";
        let uri = KeyUri::parse(text).unwrap();
        assert_eq!(
            (uri.token.as_deref(), uri.object.as_deref(), uri.id.as_deref()),
            (Some("Bank HSM"), Some("intent"), Some(&[1, 255][..]))
        );
        assert_eq!((uri.module.to_str(), uri.has_open_pin()), (Some("/usr/lib/m.so"), false));
        assert_eq!(
            uri.pin().unwrap_err(),
            TokenError::Pin { path: "/run/pin".into(), error: std::io::ErrorKind::NotFound }
        );
        let open = KeyUri::parse("pkcs11:slot-id=7;id=%01?module-path=/m.so&pin-value=12%2034").unwrap();
        assert_eq!((open.slot, open.has_open_pin()), (Some(7), true));
        assert_eq!(open.pin().unwrap().unwrap().expose_secret(), "12 34");
        assert!(!format!("{open:?}").contains("34"));
    }

    #[test]
    fn a_uri_is_shown_without_its_pin() {
        for (text, shown) in [
            ("pkcs11:id=1?pin-value=12 34&module-path=/m.so", "pkcs11:id=1?pin-value=…&module-path=/m.so"),
            ("pkcs11:id=1?module-path=/m.so&pin-value=1?2", "pkcs11:id=1?module-path=/m.so&pin-value=…"),
            ("pkcs11:id=1?module-path=/m.so&pin-source=/p", "pkcs11:id=1?module-path=/m.so&pin-source=/p"),
            ("pkcs11:id=1", "pkcs11:id=1"),
            ("https://a.example/?pin-value=1", "https://a.example/?pin-value=1"),
        ] {
            assert_eq!(KeyUri::without_pin(text), shown);
        }
    }

    #[test]
    fn a_uri_without_token_key_or_library_is_refused() {
        for text in [
            "",
            "/etc/intent.pem",
            "pkcs11:",
            "pkcs11:token=a?module-path=/m.so",
            "pkcs11:object=a?module-path=/m.so",
            "pkcs11:token=a;object=b",
            "pkcs11:token=a;object=b?module-path=m.so",
            "pkcs11:token=a;token=b;object=b?module-path=/m.so",
            "pkcs11:token=a;object=b;colour=red?module-path=/m.so",
            "pkcs11:token=a;object=b;type=cert?module-path=/m.so",
            "pkcs11:token=a;object=b?module-path=/m.so&pin-value=1&pin-source=/p",
            "pkcs11:token=%ff;object=b?module-path=/m.so",
            "pkcs11:slot-id=x;object=b?module-path=/m.so",
        ] {
            assert_eq!(KeyUri::parse(text), Err(FORM_ERROR), "{text}");
        }
    }
}

//! `[authority]`: the agreement with the identity authority.

use std::path::PathBuf;
use std::time::Duration;

use sakshi_authority::intent::{IntentSettings, LanguageForm, ModeForm};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::sdjwt::KeyBinding;
use sakshi_domain::profile::Profile;
use sakshi_domain::time::Timestamp;
use sakshi_service::credential_status::{StatusPolicy, StatusRules};
use url::Url;

use super::reader::Reader;
use super::sections::parse_origin;
use crate::pkcs11::KeyUri;

/// Error for an invalid entry of `authority.further_intent_keys`.
const FURTHER_KEY_ERROR: &str = "must be a key id, a path or a PKCS#11 URI without spaces, and if the key is to sign \
    a time such as 2026-12-01T00:00:00Z";
/// Minimum length of the scope bitmap of an intent: its first characters stand for claims, the rest is padding.
const SCOPE_BITS: u64 = 40;

/// `[authority]`; the keys with `None` are optional in the sandbox only.
#[derive(Clone, Debug)]
pub struct Authority {
    /// `iss` of accepted credentials.
    pub issuer: Option<String>,
    /// File of the issuer's public keys.
    pub jwks_path: Option<PathBuf>,
    /// URL of the issuer's public keys.
    pub jwks_url: Option<Url>,
    /// Interval between fetches of the keys.
    pub jwks_refresh: Duration,
    /// Required proof of the holder's key.
    pub key_binding: KeyBinding,
    /// Rules of credential status.
    pub status: StatusRules,
    /// Permits `authority.status = "off"` outside the sandbox, so that revoked credentials are accepted.
    pub accept_revoked: bool,
    /// URL that QR values point to.
    pub qr_host: Option<Url>,
    /// Time for which an accepted credential is refused in other transactions.
    pub credential_replay_window: Duration,
    /// Private key that signs intents.
    pub intent_key: Option<KeyPlace>,
    /// Further intent keys, each with its id and the time from which it signs.
    pub further_intent_keys: Vec<FurtherKey>,
    /// Common settings of all intents.
    pub intent: IntentSettings,
    /// Names that launch the identity app.
    pub links: AppLinks,
}

/// Location of a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In a PEM file.
    File(PathBuf),
    /// On a PKCS#11 token.
    Token(KeyUri),
}

impl KeyPlace {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if KeyUri::has_scheme(text) { KeyUri::parse(text).map(Self::Token) } else { Ok(Self::File(text.into())) }
    }

    /// Returns true if the settings contain the PIN of a token.
    pub(super) const fn has_open_pin(&self) -> bool {
        matches!(self, Self::Token(uri) if uri.has_open_pin())
    }
}

/// An entry of `authority.further_intent_keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherKey {
    /// Id of the key at the authority.
    pub kid: String,
    /// Location of the private key.
    pub place: KeyPlace,
    /// Time from which the key signs. Without a time, it signs only if operators choose it.
    pub not_before: Option<Timestamp>,
}

impl FurtherKey {
    /// Returns the text of an entry without the PIN of a token.
    fn without_pin(text: &str) -> String {
        text.split_whitespace().map(KeyUri::without_pin).collect::<Vec<_>>().join(" ")
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut words = text.split_whitespace();
        let (kid, place, time, extra) = (words.next(), words.next(), words.next(), words.next());
        let not_before = time.map(|time| Timestamp::parse_iso8601(time).ok_or(FURTHER_KEY_ERROR)).transpose()?;
        match (kid, place, extra) {
            (Some(kid), Some(place), None) => {
                Ok(Self { kid: kid.to_owned(), place: KeyPlace::parse(place)?, not_before })
            }
            _ => Err(FURTHER_KEY_ERROR),
        }
    }
}

impl Authority {
    pub(super) fn read(reader: &mut Reader, profile: Profile) -> Self {
        let path = |text: &str| Ok(PathBuf::from(text));
        let policies =
            [("off", KeyBinding::Off), ("when_present", KeyBinding::WhenPresent), ("required", KeyBinding::Required)];
        let issuer = reader.optional("authority.issuer", |text| Ok(text.to_owned()));
        Self {
            status: status_rules(reader, issuer.as_deref(), profile),
            accept_revoked: reader.flag("authority.accept_revoked"),
            issuer,
            jwks_path: reader.optional("authority.jwks_path", path),
            jwks_url: reader.optional("authority.jwks_url", parse_jwks_url),
            jwks_refresh: reader.seconds("authority.jwks_refresh_s", 60..=7 * 86_400),
            key_binding: reader.one_of("authority.key_binding", &policies),
            qr_host: reader.optional("authority.qr_host", parse_origin),
            credential_replay_window: reader.seconds("authority.credential_replay_window_s", 1..=31 * 86_400),
            intent_key: reader.optional("authority.intent_key", KeyPlace::parse),
            further_intent_keys: reader.list_shown_as(
                "authority.further_intent_keys",
                FurtherKey::without_pin,
                FurtherKey::parse,
            ),
            intent: IntentSettings {
                scope_length: reader.number("authority.sc_length", SCOPE_BITS..=1_024),
                kid: reader.required("authority.intent_kid", "must not be empty"),
                typ: reader.required("authority.intent_typ", "must not be empty"),
                issuer: reader.required("authority.intent_iss", "must not be empty"),
                lifetime: reader.seconds("authority.intent_lifetime_s", 0..=86_400),
                client_id: reader.text("authority.client_id"),
                registration: reader.text("authority.registration"),
                item: reader.required("authority.intent_i", "must not be empty"),
                mode: reader
                    .one_of("authority.intent_m", &[("integer", ModeForm::Integer), ("string", ModeForm::Text)]),
                language: reader
                    .one_of("authority.intent_lang", &[("number", LanguageForm::Number), ("iso", LanguageForm::Iso)]),
            },
            links: AppLinks {
                android_web_action: reader.text("authority.android_web_action"),
                android_app_action: reader.text("authority.android_app_action"),
                android_package: reader.optional("authority.android_package", parse_android_package),
                android_component: reader.optional("authority.android_component", parse_android_component),
                ios_scheme: reader.text("authority.ios_scheme"),
                ios_host: reader.text("authority.ios_host"),
            },
        }
    }
}

/// Reads the rules of credential status. The default host is that of the issuer, if the issuer's name is a URL.
fn status_rules(reader: &mut Reader, issuer: Option<&str>, profile: Profile) -> StatusRules {
    let policies =
        [("require", StatusPolicy::Require), ("if_present", StatusPolicy::IfPresent), ("off", StatusPolicy::Off)];
    let policy = reader.one_of("authority.status", &policies);
    let mut hosts = reader.list("authority.status_hosts", parse_host);
    if hosts.is_empty() {
        let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
        hosts.extend(issuer.and_then(|url| Some(url.host_str()?.to_owned())));
    }
    let cache_time = reader.seconds("authority.status_cache_s", 0..=3_600);
    StatusRules { policy, hosts, allow_http: profile == Profile::Sandbox, answer_ttl: cache_time }
}

/// Parses the URL of the issuer's keys. It is shown with the settings, so it holds no password.
fn parse_jwks_url(text: &str) -> Result<Url, &'static str> {
    let has_no_credentials = |url: &Url| url.username().is_empty() && url.password().is_none();
    Url::parse(text).ok().filter(has_no_credentials).ok_or("must be a URL without credentials")
}

fn parse_android_package(text: &str) -> Result<String, &'static str> {
    is_package(text).then(|| text.to_owned()).ok_or("must be an Android package id such as org.example.idapp")
}

fn parse_android_component(text: &str) -> Result<String, &'static str> {
    let is_component = text
        .split_once('/')
        .is_some_and(|(package, class)| is_package(package) && is_package(class.trim_start_matches('.')));
    is_component
        .then(|| text.to_owned())
        .ok_or("must be a package and a class such as org.example.idapp/org.example.idapp.Verify")
}

/// Returns true if a text consists of letters, digits, underscores, dots and dollar signs.
fn is_package(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}

/// Parses a host, with or without a port, as URLs spell it.
fn parse_host(text: &str) -> Result<String, &'static str> {
    const REFUSAL: &str = "must be a host such as status.example or status.example:8443";
    let url = Url::parse(&format!("https://{text}/")).map_err(|_| REFUSAL)?;
    let is_bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let host = url.host_str().filter(|_| is_bare).ok_or(REFUSAL)?;
    // The URL would drop the default port of its scheme.
    let port = text
        .rsplit_once(':')
        .map(|(_, port)| port)
        .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty());
    Ok(port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::parse_jwks_url;

    #[test]
    fn a_url_of_issuer_keys_has_no_credentials() {
        for (url, is_accepted) in [
            ("https://issuer.example/jwks.json", true),
            ("https://user@issuer.example/jwks.json", false),
            ("https://:word@issuer.example/jwks.json", false),
            ("https://user:word@issuer.example/jwks.json", false),
            ("issuer.example/jwks.json", false),
        ] {
            assert_eq!(parse_jwks_url(url).is_ok(), is_accepted, "{url}");
        }
    }
}
